// The evidence race: along the sequence, how much each way of choosing believes in each lag, and when it has decided.

import { decision, row } from "./data.js";
import { currentTheme, lagColour, lagDash, lagInk } from "./colour.js";
import { across, drawing, line, path, tag, text, ticks } from "./svg.js";

const HEIGHT = 74;
const GAP = 26;
const NATS = 20;
const UNMIXED = ["paper", "mask", "position"];

const number = (value) => Number(value.toPrecision(3));

function racers({ view, state }) {
  const beta = state.models[0].beta ?? 100;
  const found = [
    { name: "Exact posterior", key: "log_weights/posterior" },
    { name: "Paper's estimator", detail: `β = ${number(beta)}`, key: "log_weights/selective" },
  ];
  view.models.forEach((_, index) => found.push({ name: `Model ${"AB"[index]}`, detail: "last layer", key: `log_weights/${index}`, model: index }));
  return found;
}

// Why one β is not the same in the estimator and in a circuit: heads without a sink average each for itself.
export function raceNote({ view, state }) {
  const found = view.models.findIndex(({ kind, heads, sink }, index) => UNMIXED.includes(kind) && !sink && heads[1] > 1 && state.models[index].evidence !== "sum");
  if (found < 0) return "";
  const { heads, beta } = view.models[found];
  return `The paper's estimator averages over all transitions. Model ${"AB"[found]} has no sink: each of its ${heads[1]} heads of layer 2 averages over its own, and layer 3 adds the averages up. In long sequences its β of ${number(beta)} counts as ${number(heads[1] * beta)} in the estimator.`;
}

export function drawRace(scene, width) {
  const { state, view, query, evidence } = scene;
  const shown = { lo: 0, hi: state.length };
  const theme = currentTheme();
  const { gutter, cell, middle, right } = across(width, shown);
  const narrow = width < 560;
  const parts = [];
  let top = narrow ? 20 : 10;
  for (const { name, detail, key } of racers(scene)) {
    const logs = view.arrays[key];
    const decided = decision(logs, state.lags, query);
    const y = (value) => top + HEIGHT * (evidence ? Math.min(1, -value / NATS) : 1 - value);
    if (narrow) parts.push(text(gutter, top - 6, detail ? `${name}, ${detail}` : name, { fill: theme.soft, "font-size": 12 }));
    else {
      parts.push(text(0, top + 13, name, { fill: theme.ink, "font-size": 12 }));
      if (detail) parts.push(text(0, top + 29, detail, { fill: theme.soft }));
    }
    for (const level of [0, 0.5, 1]) parts.push(line(gutter, top + HEIGHT * level, width - right, top + HEIGHT * level, theme.line));
    if (!narrow) {
      parts.push(text(gutter - 6, top + 4, evidence ? "0" : "1", { fill: theme.faint, "text-anchor": "end" }));
      parts.push(text(gutter - 6, top + HEIGHT + 4, evidence ? `−${NATS}` : "0", { fill: theme.faint, "text-anchor": "end" }));
    }
    state.lags.forEach((lag, j) => {
      const points = [];
      for (let i = shown.lo; i < shown.hi; i += 1) {
        const weights = row(logs, i, state.lags.length);
        points.push([middle(i), y(evidence ? Math.max(-NATS, weights[j] - Math.max(...weights)) : Math.exp(weights[j]))]);
      }
      const seen = Math.max(0, Math.min(points.length, query - shown.lo + 1));
      const style = { fill: "none", stroke: lagColour(lag), "stroke-width": 2, "stroke-dasharray": lagDash(lag), "stroke-linejoin": "round" };
      parts.push(tag("path", { d: path(points.slice(Math.max(0, seen - 1))), ...style, opacity: 0.22 }));
      parts.push(tag("path", { d: path(points.slice(0, seen)), ...style }));
    });
    if (decided && decided.at >= shown.lo && decided.at < shown.hi) {
      const at = middle(decided.at);
      const words = `lag ${decided.lag} from ${decided.at}`;
      const flip = at + 90 > width;
      parts.push(line(at, top - 4, at, top + HEIGHT, lagColour(decided.lag), { "stroke-width": 1.5, "stroke-dasharray": "2 2" }));
      parts.push(text(at + (flip ? -5 : 5), top + HEIGHT / 2 + 4, words, { fill: theme.ink, "font-weight": 620, "text-anchor": flip ? "end" : "start", stroke: theme.panel, "stroke-width": 4, "paint-order": "stroke" }));
    }
    if (!narrow) {
      const now = row(logs, query, state.lags.length);
      const best = now.indexOf(Math.max(...now));
      parts.push(text(width - right + 6, top + 13, `lag ${state.lags[best]}`, { fill: lagInk(state.lags[best]), "font-weight": 650 }));
      parts.push(text(width - right + 6, top + 28, Math.exp(now[best]).toFixed(2), { fill: theme.soft }));
    }
    top += HEIGHT + GAP;
  }
  const bottom = top - GAP;
  if (query >= shown.lo && query < shown.hi) parts.push(line(middle(query), 0, middle(query), bottom, theme.accent, { "stroke-width": 1.5, opacity: 0.7 }));
  for (const tick of ticks(shown, cell)) parts.push(text(middle(tick), bottom + 15, tick, { "text-anchor": "middle", fill: theme.faint }));
  const perRow = Math.max(1, Math.floor((width - gutter) / 64));
  state.lags.forEach((lag, n) => {
    const at = gutter + 64 * (n % perRow);
    const y = bottom + 32 + 18 * Math.floor(n / perRow);
    parts.push(line(at, y, at + 16, y, lagColour(lag), { "stroke-width": 3, "stroke-dasharray": lagDash(lag) }));
    parts.push(text(at + 20, y + 4, `lag ${lag}`, { fill: theme.soft }));
  });
  return drawing(width, bottom + 24 + 18 * Math.ceil(state.lags.length / perRow), parts.join(""));
}
