// Heads in which lags mix: how they weigh the past, how they are read, and what a transition's evidence then counts.

import { row } from "./data.js";
import { currentTheme, lagColour, lagInk, rgb } from "./colour.js";
import { element } from "./maps.js";
import { drawing, line, path, tag, text, ticks } from "./svg.js";

const HEIGHT = 132;
const LEFT = 40;
const TOP = 20;
const DASHES = ["none", "5 3", "2 2", "8 3 2 3"];

const short = (value) => (value === 0 ? "0" : Math.abs(value) >= 0.01 && Math.abs(value) < 1e4 ? String(Number(value.toPrecision(2))) : value.toExponential(0)).replace("-", "−");
const headColour = (head) => [currentTheme().accent, currentTheme().second, currentTheme().ink, currentTheme().faint][head % 4];
const headDash = (head) => DASHES[Math.floor(head / 4) % DASHES.length];

// The arrays of a model whose heads mix lags, or null: weights, query, residual, counted, and key if it is read.
export function mixedOf(view, model) {
  const start = `mixed/${model}/`;
  const names = Object.keys(view.arrays).filter((name) => name.startsWith(start));
  return names.length ? Object.fromEntries(names.map((name) => [name.slice(start.length), view.arrays[name]])) : null;
}

// Lines over whole numbers, a point each where there is room; `marked` is a range of them.
function plot({ lines, lo, hi, marked, label }, width) {
  const theme = currentTheme();
  const right = width - 8;
  const cell = (right - LEFT) / Math.max(1, hi - lo);
  const x = (n) => LEFT + (n - lo) * cell;
  const all = lines.flatMap(({ points }) => points.map(([, value]) => value));
  const [least, most] = [Math.min(0, ...all), Math.max(0, ...all)];
  const span = most - least || 1;
  const y = (value) => TOP + (HEIGHT * (most - value)) / span;
  const parts = [];
  if (marked) parts.push(tag("rect", { x: x(marked[0]) - 4, y: TOP - 6, width: x(marked[1]) - x(marked[0]) + 8, height: HEIGHT + 12, rx: 4, fill: theme.accent, opacity: 0.14 }));
  for (const value of new Set([least, most, 0])) {
    parts.push(line(LEFT, y(value), right, y(value), theme.line));
    if (Math.abs(y(value) - y(0)) > 11 || value === 0) parts.push(text(LEFT - 6, y(value) + 4, short(value), { fill: theme.faint, "text-anchor": "end" }));
  }
  let named = right;
  for (const { name, colour } of lines.filter((one) => one.name).reverse()) {
    parts.push(text(named, 9, name, { "text-anchor": "end", fill: colour, "font-weight": 620 }));
    named -= 14 + name.length * 6.2;
  }
  for (const { points, colour, dash = "none", heavy = false } of lines) {
    parts.push(tag("path", { d: path(points.map(([n, value]) => [x(n), y(value)])), fill: "none", stroke: colour, "stroke-width": heavy ? 2.6 : 1.5, "stroke-dasharray": dash, "stroke-linejoin": "round" }));
    if (cell >= 5) for (const [n, value] of points) parts.push(tag("circle", { cx: x(n), cy: y(value), r: heavy ? 3.4 : 2.4, fill: colour }));
  }
  for (const tick of ticks({ lo, hi: hi + 1 }, cell)) parts.push(text(x(tick), TOP + HEIGHT + 20, String(tick).replace("-", "−"), { "text-anchor": "middle", fill: theme.faint }));
  parts.push(text((LEFT + right) / 2, TOP + HEIGHT + 36, label, { "text-anchor": "middle", fill: theme.soft }));
  return drawing(width, TOP + HEIGHT + 42, parts.join(""));
}

// How far from exact each offset is, on a logarithmic scale: the certificate, which no P changes.
function plotResidual(residual, at, width) {
  const theme = currentTheme();
  const [low, high] = [-16, 1];
  const right = width - 8;
  const cell = (right - LEFT) / Math.max(1, residual.length - 1);
  const y = (value) => TOP + (HEIGHT * (high - Math.max(low, Math.log10(Math.max(value, 1e-99))))) / (high - low);
  const parts = [];
  for (const power of [-15, -10, -5, 0]) {
    parts.push(line(LEFT, y(10 ** power), right, y(10 ** power), theme.line));
    parts.push(text(LEFT - 6, y(10 ** power) + 4, power ? `1e${power}`.replace("-", "−") : "1", { fill: theme.faint, "text-anchor": "end" }));
  }
  parts.push(tag("path", { d: path(Array.from(residual, (value, o) => [LEFT + o * cell, y(value)])), fill: "none", stroke: theme.ink, "stroke-width": 1.6 }));
  if (at < residual.length) parts.push(tag("circle", { cx: LEFT + at * cell, cy: y(residual[at]), r: 4, fill: theme.accent }));
  for (const tick of ticks({ lo: 0, hi: residual.length }, cell)) parts.push(text(LEFT + tick * cell, TOP + HEIGHT + 20, tick, { "text-anchor": "middle", fill: theme.faint }));
  parts.push(text((LEFT + right) / 2, TOP + HEIGHT + 36, "offset o, from the newest transition back", { "text-anchor": "middle", fill: theme.soft }));
  return drawing(width, TOP + HEIGHT + 42, parts.join(""));
}

// What evidence for one lag adds to the score of each: 1 on the diagonal less what all lags share, if it counts in full.
function plotCounted(counted, lags, at, width) {
  const theme = currentTheme();
  const size = lags.length;
  const side = Math.min(44, (width - LEFT - 30) / size, (HEIGHT + 18) / size);
  const paper = rgb(theme.wash);
  const [left, top] = [LEFT + 24, TOP + 12];
  const parts = [text(left, TOP - 8, "score of lag", { fill: theme.soft }), text(0, top + 4, "evidence", { fill: theme.soft }), text(0, top + 18, "for lag", { fill: theme.soft })];
  lags.forEach((found, j) => {
    parts.push(text(left - 6, top + 12 + (j + 0.5) * side, found, { fill: lagInk(found), "text-anchor": "end", "font-weight": 650 }));
    lags.forEach((scored, k) => {
      const value = counted[(at * size + k) * size + j];
      const colour = rgb(value > 0 ? lagColour(scored) : theme.ink);
      const strength = Math.min(1, Math.abs(value)) * (value > 0 ? 1 : 0.5);
      const mixed = paper.map((c, n) => Math.round(c + (colour[n] - c) * strength));
      parts.push(tag("rect", { x: left + k * side, y: top + 8 + j * side, width: side - 1, height: side - 1, rx: 3, fill: `rgb(${mixed.join(" ")})` }));
      if (side >= 36) parts.push(text(left + (k + 0.5) * side, top + 12 + (j + 0.5) * side, value.toFixed(2).replace("-", "−"), { "text-anchor": "middle", fill: 0.299 * mixed[0] + 0.587 * mixed[1] + 0.114 * mixed[2] > 130 ? "#17141f" : "#ffffff" }));
      if (j === 0 && size <= 8) parts.push(text(left + (k + 0.5) * side, top + 4, scored, { fill: lagInk(scored), "text-anchor": "middle", "font-weight": 650 }));
    });
  });
  return drawing(width, TOP + HEIGHT + 42, parts.join(""));
}

function figure(title, words, draw, host) {
  const box = element("div", "mixed-figure");
  box.append(element("h4", "", {}, title));
  const place = element("div", "drawing", { role: "img", "aria-label": `${title}: ${words}` });
  box.append(place, element("p", "note", {}, words));
  host.append(box);
  return () => { place.innerHTML = draw(place.clientWidth); };
}

// What the heads are, in a sentence or two.
function told({ weights, key, residual }, heads, offsets, span) {
  const worst = Math.max(...residual);
  const at = residual.indexOf(worst);
  const flat = Array.from({ length: heads }, (_, h) => h).filter((h) => Math.max(...row(weights, h, offsets)) - Math.min(...row(weights, h, offsets)) < 1e-6);
  if (key) return `${heads === 1 ? "One head" : `${heads} heads`}, read at the query and at the key: too few to be exact. The residual says how far the evidence at each offset is from counting in full; the largest is ${short(worst)}, at offset ${at}.`;
  if (flat.length === heads) return "Uniform attention and a parabola: the head attends to all of the past alike and is read by −c·n². Where a transition's evidence for one lag meets the read of another, x apart, −c(o + x)² = −c·o² − 2c·o·x − c·x². The first term is the same for all lags and the second cancels, as evidence, less its mean, sums to zero over lags: what is left is the penalty −c·x² on the wrong lag.";
  return `Head 2.${flat[0] + 1} attends to all of the past alike and is read by a parabola: of −c(o + x)² only −c·x² is left, a penalty that grows with how far off a lag is, since terms that lags share do not count. The other ${heads === 2 ? "head attends and is" : "heads attend and are"} read in waves, which level it: every wrong lag counts alike, up to ${span} apart. (Weights must be positive, so the waves ride on 1; the ripple in the parabola's read takes that back.)`;
}

export function drawMixed(host, scene, modelName) {
  const { view, state } = scene;
  const draws = [];
  const boxes = view.models.map((described, model) => {
    const arrays = mixedOf(view, model);
    if (!arrays) return null;
    const heads = described.heads[1];
    const { lags, length, zoom } = state;
    const span = lags[lags.length - 1] - lags[0];
    const offsets = arrays.weights.length / heads;
    const shown = Math.min(offsets, Math.max(16, Math.ceil(length / zoom / 2)));
    const at = Math.min(state.offset, offsets - 1);
    const [lo, hi] = at < shown ? [0, shown - 1] : [Math.max(0, Math.min(offsets - shown, at - shown / 2)) | 0, Math.min(offsets - 1, Math.max(shown, at + shown / 2)) | 0];
    const width = arrays.query.length / heads;
    const each = (make) => Array.from({ length: heads }, (_, h) => ({ points: make(h), colour: headColour(h), dash: headDash(h) }));
    const u = (h) => row(arrays.weights, h, offsets);
    const g = (h) => row(arrays.query, h, width);
    const range = (from, to) => Array.from({ length: Math.max(0, to - from + 1) }, (_, n) => from + n);
    const box = element("div", "mixed-model");
    const title = element("h3");
    title.append(element("span", model ? "badge b" : "badge", {}, "AB"[model]), element("span", "", {}, modelName(model)));
    const figures = element("div", "mixed-figures");
    box.append(title, element("p", "told", {}, told(arrays, heads, offsets, span)), legend(heads), figures);
    draws.push(figure("Weights u(o) along the past", `what each head pays the transition o back, on average 1; marked is o = ${at}`, (w) => plot({ lines: each((h) => range(lo, hi).map((o) => [o, u(h)[o]])), lo, hi, marked: [at, at], label: "offset o" }, w), figures));
    draws.push(figure("Read at the query, g(n)", `index n = o + k′ − k holds what a transition says of lag k′, read for lag k; marked are those of o = ${at}`, (w) => plot({ lines: each((h) => range(lo - span, hi + span).filter((n) => n + span < width && n + span >= 0).map((n) => [n, g(h)[n + span]])), lo: lo - span, hi: hi + span, marked: [at - span, at + span], label: "index n" }, w), figures));
    if (arrays.key) draws.push(figure("Read at the key", "the same of what the head held at the key itself", (w) => plot({ lines: each((h) => range(lo, hi).map((n) => [n, arrays.key[h * length + n]])), lo, hi, label: "index n" }, w), figures));
    else draws.push(figure("They add up to one peak", `Σ u(o) g(o + x) at o = ${at}, by the difference x of two lags, less a line, which lags share`, (w) => plot(peak(heads, u, g, at, lags, span, described.parabola), w), figures));
    draws.push(figure("What evidence then counts", `at o = ${at}: what evidence for a lag adds to the lags' scores; exact would be ${(1 - 1 / lags.length).toFixed(2)} for its own and ${(-1 / lags.length).toFixed(2).replace("-", "−")} for others`, (w) => plotCounted(arrays.counted, lags, at, w), figures));
    draws.push(figure("Certificate: residual by offset", `how far from exact the evidence of each offset counts, whatever P is; largest ${short(Math.max(...arrays.residual))}`, (w) => plotResidual(arrays.residual, at, w), figures));
    return box;
  });
  host.replaceChildren(...boxes.filter(Boolean));
  draws.forEach((draw) => draw());
}

// Σ u(o) g(o + x) over the differences x of two lags: its parabola, its waves and all of it, each less the line through its ends.
function peak(heads, u, g, at, lags, span, c) {
  const theme = currentTheme();
  const apart = [...new Set(lags.flatMap((a) => lags.map((b) => b - a)))].sort((a, b) => a - b);
  const less = (f) => apart.map((x) => [x, f(x) - (f(-span) + f(span)) / 2 - (x * (f(span) - f(-span))) / (2 * span || 1)]);
  const all = (x) => Array.from({ length: heads }, (_, h) => u(h)[at] * g(h)[at + x + span]).reduce((a, b) => a + b);
  const parabola = (x) => -c * (at + x) ** 2;
  const lines = [{ name: "sum", points: less(all), colour: theme.ink, heavy: true }];
  if (heads > 1) lines.unshift({ name: "parabola", points: less(parabola), colour: theme.accent }, { name: "waves", points: less((x) => all(x) - parabola(x)), colour: theme.second });
  return { lines, lo: -span, hi: span, label: "difference x of two lags" };
}

function legend(heads) {
  const box = element("div", "legend");
  for (let h = 0; h < heads; h += 1) {
    const entry = element("span");
    const mark = element("i");
    mark.style.background = headColour(h);
    entry.append(mark, `head 2.${h + 1}`);
    box.append(entry);
  }
  return box;
}
