// The sequence: coloured tokens, and arcs from the position looked at to the keys it attends.

import { attention, headsOf, votedLag } from "./data.js";
import { currentTheme, lagColour, lagInk, stateColour, stateInk } from "./colour.js";
import { across, drawing, tag, text, ticks } from "./svg.js";

const SKY = 92;
const ROW = 28;
const GROUND = 46;

export function drawSequence(scene, width) {
  const { state, view, window: shown, query } = scene;
  const theme = currentTheme();
  const { cell, x } = across(width, shown);
  const tokens = view.arrays.tokens;
  const edited = new Set(state.edits.map(([position]) => position));
  const parts = [];
  const all = scene.arcs === "all";
  const bottom = SKY + ROW + GROUND + 18;
  for (let i = shown.lo; i < shown.hi; i += 1) {
    const gap = cell > 6 ? 1 : 0.4;
    parts.push(tag("rect", {
      x: x(i) + gap / 2, y: SKY, width: Math.max(0.5, cell - gap), height: ROW, rx: Math.min(3, cell / 4),
      fill: stateColour(tokens[i]), opacity: i > query ? 0.32 : 1,
    }));
    if (cell >= 9.5) {
      parts.push(text(x(i) + cell / 2, SKY + 18, tokens[i], { "text-anchor": "middle", fill: stateInk(tokens[i]), opacity: i > query ? 0.5 : 1, "font-weight": 600 }));
    }
    if (edited.has(i)) parts.push(tag("circle", { cx: x(i) + cell / 2, cy: SKY - 5, r: 2.4, fill: theme.accent }));
  }
  if (query >= shown.lo && query < shown.hi) {
    parts.push(tag("rect", { x: x(query) - 1, y: SKY - 2, width: cell + 2, height: ROW + 4, rx: 4, fill: "none", stroke: theme.accent, "stroke-width": 2.5 }));
  }
  for (const tick of ticks(shown, cell)) {
    parts.push(text(x(tick) + cell / 2, bottom - 4, tick, { "text-anchor": "middle", fill: theme.faint }));
  }
  if (width >= 560) {
    parts.push(text(0, SKY + 18, "tokens", { fill: theme.soft }));
    parts.push(text(0, SKY - 30, all ? "layers 1 and 2" : arcsName(scene.arcs), { fill: theme.soft }));
    if (all) parts.push(text(0, SKY + ROW + 28, `layer ${view.models[0].heads.length}`, { fill: theme.soft }));
  }
  return drawing(width, bottom, parts.join("") + arcs(scene, width));
}

export const arcsName = (arcs) => (arcs === "all" ? "all layers" : arcs.includes(".") ? `head ${arcs}` : `layer ${arcs}`);

// The keys that the heads chosen attend from the query, heaviest last.
export function attended(scene, model) {
  const { state, view, query, veiled, channels, arcs: wanted } = scene;
  const described = view.models[model];
  const chosen = headsOf(described).filter(({ name, layer }) => ["all", name, String(layer)].includes(wanted));
  const last = described.heads.length;
  const found = [];
  for (const head of chosen) {
    const weight = attention(view, model, head.index, state.length);
    for (let key = 0; key <= query; key += 1) {
      const value = weight(query, key);
      const voted = veiled || channels?.[model]?.stale ? null : votedLag(channels?.[model], head.name, query, key, state);
      if (value > 0.004) found.push({ key, weight: value, head, lag: lagOf(head.layer, last, query - key, state.lags) ?? voted });
    }
  }
  return found.sort((a, b) => a.weight - b.weight);
}

// The lag that an offset stands for: in the first layer the parent's, in the last the token's that would be copied.
export function lagOf(layer, last, offset, lags) {
  const lag = layer === 1 ? offset : layer === last ? offset + 1 : 0;
  return lags.includes(lag) ? lag : null;
}

// Arcs above the tokens; where all layers are drawn, the last one's hang below them.
function arcs(scene, width) {
  const { view, window: shown, query, veiled, arcs: wanted, arcsModel } = scene;
  const theme = currentTheme();
  const { middle } = across(width, shown);
  const last = view.models[arcsModel].heads.length;
  const found = attended(scene, arcsModel).filter(({ key, head }) => key >= shown.lo && !(veiled && head.layer === last));
  const from = middle(query);
  const labels = [];
  const drawn = found.map(({ key, weight, lag, head }, order) => {
    const down = wanted === "all" && head.layer === last;
    const base = down ? SKY + ROW + 3 : SKY - 3;
    const to = middle(key);
    const height = 12 + ((down ? GROUND : SKY) - 32) * Math.min(1, Math.abs(from - to) / (width * 0.6)) ** 0.6;
    const peak = base + (down ? 1.3 : -1.3) * height;
    const colour = lag ? lagColour(lag) : theme.ink;
    const several = wanted === "all" && (!lag || (head.layer > 1 && head.layer < last));
    if (weight >= 0.03 && found.length - order <= 6 && !several) {
      labels.push({ at: (from + to) / 2, y: down ? base + height + 10 : base - height - 3, words: weight.toFixed(2), colour: lag ? lagInk(lag) : theme.ink, weight });
    }
    if (key === query) {
      return tag("circle", { cx: from, cy: base + (down ? 7 : -7), r: 6, fill: "none", stroke: colour, "stroke-width": 1 + 3 * weight });
    }
    return tag("path", {
      d: `M${from.toFixed(1)} ${base}C${from.toFixed(1)} ${peak.toFixed(1)} ${to.toFixed(1)} ${peak.toFixed(1)} ${to.toFixed(1)} ${base}`,
      fill: "none", stroke: colour, "stroke-width": several ? 0.6 + 2 * Math.sqrt(weight) : 0.8 + 4 * Math.sqrt(weight), opacity: several ? 0.25 : 0.4 + 0.6 * weight,
    });
  });
  // Labels that would cover one another make way; the heaviest keeps its place.
  const placed = [];
  for (const label of labels.sort((a, b) => b.weight - a.weight)) {
    let { at } = label;
    while (placed.some((other) => Math.abs(other.at - at) < 30 && Math.abs(other.y - label.y) < 12)) at -= 9;
    placed.push({ ...label, at, y: Math.max(9, label.y) });
  }
  return drawn.join("") + placed.map(({ at, y, words, colour }) => text(at, y, words, { "text-anchor": "middle", fill: colour, "font-weight": 650, stroke: theme.panel, "stroke-width": 3, "paint-order": "stroke" })).join("");
}
