// The sequence: coloured tokens, and arcs from the position looked at to the keys it attends.

import { attention, headsOf } from "./data.js";
import { currentTheme, lagColour, stateColour, stateInk } from "./colour.js";
import { across, drawing, tag, text, ticks } from "./svg.js";

const SKY = 92;
const ROW = 28;

export function drawSequence(scene, width) {
  const { state, view, window: shown, query } = scene;
  const theme = currentTheme();
  const { cell, x } = across(width, shown);
  const tokens = view.arrays.tokens;
  const edited = new Set(state.edits.map(([position]) => position));
  const parts = [];
  for (let i = shown.lo; i < shown.hi; i += 1) {
    const gap = cell > 6 ? 1 : 0.4;
    parts.push(tag("rect", {
      x: x(i) + gap / 2, y: SKY, width: Math.max(0.5, cell - gap), height: ROW, rx: Math.min(3, cell / 4),
      fill: stateColour(tokens[i]), opacity: i > query ? 0.32 : 1,
    }));
    if (cell >= 11) {
      parts.push(text(x(i) + cell / 2, SKY + 18, tokens[i], { "text-anchor": "middle", fill: stateInk(tokens[i]), opacity: i > query ? 0.5 : 1, "font-weight": 600 }));
    }
    if (edited.has(i)) parts.push(tag("circle", { cx: x(i) + cell / 2, cy: SKY + ROW + 4, r: 2.4, fill: theme.accent }));
  }
  if (query >= shown.lo && query < shown.hi) {
    parts.push(tag("rect", { x: x(query) - 1, y: SKY - 2, width: cell + 2, height: ROW + 4, rx: 4, fill: "none", stroke: theme.accent, "stroke-width": 2.5 }));
  }
  for (const tick of ticks(shown, cell)) {
    parts.push(text(x(tick) + cell / 2, SKY + ROW + 18, tick, { "text-anchor": "middle", fill: theme.faint }));
  }
  if (width >= 560) {
    parts.push(text(0, SKY + 18, "tokens", { fill: theme.soft }));
    parts.push(text(0, SKY - 30, arcsName(state.arcs), { fill: theme.soft }));
  }
  return drawing(width, SKY + ROW + 24, parts.join("") + arcs(scene, width));
}

export const arcsName = (arcs) => (arcs.includes(".") ? `head ${arcs}` : `layer ${arcs}`);

// The keys that the heads chosen attend from the query, heaviest last.
export function attended(scene, model) {
  const { state, view, query } = scene;
  const described = view.models[model];
  const chosen = headsOf(described).filter(({ name, layer }) => state.arcs === name || state.arcs === String(layer));
  const last = described.heads.length;
  const found = [];
  for (const head of chosen) {
    const weight = attention(view, model, head.index, state.length);
    for (let key = 0; key <= query; key += 1) {
      const value = weight(query, key);
      if (value > 0.004) found.push({ key, weight: value, head, lag: lagOf(head.layer, last, query - key, state.lags) });
    }
  }
  return found.sort((a, b) => a.weight - b.weight);
}

// The lag that an offset stands for: in the first layer the parent's, in the last the token's that would be copied.
export function lagOf(layer, last, offset, lags) {
  const lag = layer === 1 ? offset : layer === last ? offset + 1 : 0;
  return lags.includes(lag) ? lag : null;
}

function arcs(scene, width) {
  const { state, window: shown, query, veiled } = scene;
  if (veiled && state.arcs.startsWith(String(scene.view.models[0].heads.length))) return "";
  const theme = currentTheme();
  const { middle, gutter } = across(width, shown);
  const found = attended(scene, 0);
  const labels = [];
  const drawn = found.filter(({ key }) => key >= shown.lo).map(({ key, weight, lag }, order) => {
    const from = middle(query);
    const to = middle(key);
    const height = Math.min(SKY - 16, 12 + Math.abs(from - to) * 0.5);
    const colour = lag ? lagColour(lag) : theme.ink;
    const shape = key === query
      ? tag("circle", { cx: from, cy: SKY - 10, r: 7, fill: "none", stroke: colour, "stroke-width": 1 + 3 * weight })
      : tag("path", { d: `M${from} ${SKY - 3}C${from} ${SKY - 3 - height * 1.3} ${to} ${SKY - 3 - height * 1.3} ${to} ${SKY - 3}`, fill: "none", stroke: colour, "stroke-width": 0.8 + 4 * Math.sqrt(weight), opacity: 0.35 + 0.65 * weight });
    if (weight >= 0.03 && found.length - order <= 5) {
      labels.push({ at: (from + to) / 2, y: SKY - 6 - height, words: weight.toFixed(2), colour, weight });
    }
    return shape;
  });
  // Labels that would cover one another climb; the heaviest keeps its place.
  const placed = [];
  for (const label of labels.sort((a, b) => b.weight - a.weight)) {
    let y = label.y - (label.at > gutter ? 0 : 0);
    while (placed.some((other) => Math.abs(other.at - label.at) < 28 && Math.abs(other.y - y) < 12)) y -= 12;
    placed.push({ ...label, y: Math.max(9, y) });
  }
  return drawn.join("") + placed.map(({ at, y, words, colour }) => text(at, y, words, { "text-anchor": "middle", fill: colour, "font-weight": 600, stroke: theme.panel, "stroke-width": 3, "paint-order": "stroke" })).join("");
}
