// The next token: its law as the truth, the predictors and the models have it, and their KL along the sequence.

import { row } from "./data.js";
import { currentTheme, modelColour, stateColour, stateInk } from "./colour.js";
import { drawing, line, path, tag, text, ticks } from "./svg.js";

function predictors({ view }) {
  const theme = currentTheme();
  return [
    { key: "truth", name: "truth", colour: theme.ink },
    ...Object.entries(view.predictors).map(([key, name], index) => ({ key, name, colour: index ? theme.faint : theme.soft, dash: index ? `${4 * index} 3` : undefined })),
    ...view.models.map((_, index) => ({ key: String(index), name: `model ${"AB"[index]}`, colour: modelColour(index), dash: index ? "7 3" : "none" })),
  ];
}

function legend(shown, y, width, mark) {
  const theme = currentTheme();
  let x = 0;
  let out = "";
  for (const predictor of shown) {
    out += mark(predictor, x, y) + text(x + 17, y + 4, predictor.name, { fill: theme.soft });
    x += 28 + predictor.name.length * 6.6;
    if (x > width - 40) { x = 0; y += 16; }
  }
  return out;
}

export function drawBars({ view, state, query }, width) {
  const theme = currentTheme();
  const shown = predictors({ view });
  const top = 44;
  const height = 150;
  const group = width / state.states;
  const bar = Math.min(14, (group * 0.8) / shown.length);
  const parts = [legend(shown, 10, width, ({ colour }, x, y) => tag("rect", { x, y: y - 5, width: 11, height: 11, rx: 2, fill: colour }))];
  const laws = shown.map(({ key }) => row(view.arrays[`law/${key}`], query, state.states));
  const most = Math.min(1, Math.ceil(4 * Math.max(...laws.map((law) => Math.max(...law))) + 0.01) / 4);
  for (const level of [0, 0.5, 1]) parts.push(line(0, top + height * level, width, top + height * level, theme.line));
  parts.push(text(width, top - 4, most, { fill: theme.faint, "text-anchor": "end" }));
  for (let s = 0; s < state.states; s += 1) {
    const left = group * (s + 0.5) - (bar * shown.length) / 2;
    shown.forEach(({ colour }, n) => {
      const p = Math.min(1, laws[n][s] / most);
      parts.push(tag("rect", { x: left + n * bar, y: top + height * (1 - p), width: bar - 1, height: height * p, fill: colour }));
    });
    const actual = query + 1 < state.length && view.arrays.tokens[query + 1] === s;
    parts.push(tag("rect", { x: group * (s + 0.5) - 10, y: top + height + 7, width: 20, height: 20, rx: 4, fill: stateColour(s) }));
    parts.push(text(group * (s + 0.5), top + height + 21, s, { "text-anchor": "middle", fill: stateInk(s), "font-weight": 600 }));
    if (actual) parts.push(text(group * (s + 0.5), top + height + 40, "came", { "text-anchor": "middle", fill: theme.soft }));
  }
  return drawing(width, top + height + 44, parts.join(""));
}

const LOW = -4;
const HIGH = 1;

export function drawKl({ view, state, query }, width) {
  const shown = { lo: 0, hi: state.length };
  const theme = currentTheme();
  const top = 44;
  const height = 150;
  const left = 36;
  const cell = (width - left) / (shown.hi - shown.lo);
  const x = (i) => left + (i - shown.lo + 0.5) * cell;
  const y = (kl) => top + (height * (HIGH - Math.min(HIGH, Math.max(LOW, Math.log10(Math.max(kl, 1e-12)))))) / (HIGH - LOW);
  const lines = predictors({ view }).filter(({ key }) => key !== "truth");
  const parts = [legend(lines, 10, width, ({ colour, dash }, at, y0) => line(at, y0, at + 13, y0, colour, { "stroke-width": 2.5, "stroke-dasharray": dash ?? "none" }))];
  parts.push(text(width, top - 10, "KL to the truth, nats", { fill: theme.soft, "text-anchor": "end" }));
  for (let power = LOW; power <= HIGH; power += 1) {
    const level = top + (height * (HIGH - power)) / (HIGH - LOW);
    parts.push(line(left, level, width, level, theme.line));
    parts.push(text(left - 5, level + 4, power % 2 && power < 0 ? "" : power < 0 ? `1e${power}`.replace("-", "−") : 10 ** power, { fill: theme.faint, "text-anchor": "end" }));
  }
  for (const { key, colour, dash } of lines) {
    const points = [];
    for (let i = shown.lo; i < shown.hi; i += 1) points.push([x(i), y(view.arrays[`kl/${key}`][i])]);
    const seen = Math.max(0, query - shown.lo + 1);
    const style = { fill: "none", stroke: colour, "stroke-width": 1.8, "stroke-dasharray": dash ?? "none", "stroke-linejoin": "round" };
    parts.push(tag("path", { d: path(points.slice(Math.max(0, seen - 1))), ...style, opacity: 0.22 }));
    parts.push(tag("path", { d: path(points.slice(0, seen)), ...style }));
  }
  if (query >= shown.lo && query < shown.hi) parts.push(line(x(query), top - 6, x(query), top + height, theme.accent, { "stroke-width": 1.5, opacity: 0.7 }));
  for (const tick of ticks(shown, cell)) parts.push(text(x(tick), top + height + 16, tick, { "text-anchor": "middle", fill: theme.faint }));
  return drawing(width, top + height + 24, parts.join(""));
}
