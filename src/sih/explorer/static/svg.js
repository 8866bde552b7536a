// Small helpers to write SVG as text with all its colours in it, so that a drawing can be saved as it is.

const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => ESCAPES[c]);
const rounded = (value) => (typeof value === "number" ? Math.round(value * 100) / 100 : value);
const FONT = "system-ui, -apple-system, 'Segoe UI', sans-serif";

export function tag(name, attributes, content = "") {
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${escaped(rounded(value))}"`).join("");
  return `<${name}${written}>${content}</${name}>`;
}
export const text = (x, y, words, attributes = {}) => tag("text", { x, y, "font-size": 11, ...attributes }, escaped(words));
export const line = (x1, y1, x2, y2, stroke, attributes = {}) => tag("line", { x1, y1, x2, y2, stroke, ...attributes });

export function drawing(width, height, content) {
  return tag("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${rounded(width)} ${height}`, width: rounded(width), height, "font-family": FONT }, content);
}

// A broken line through the points that are finite.
export function path(points) {
  let pen = "M";
  let d = "";
  for (const [x, y] of points) {
    if (!Number.isFinite(y)) { pen = "M"; continue; }
    d += `${pen}${rounded(x)} ${rounded(y)}`;
    pen = "L";
  }
  return d;
}

// What all drawings along the sequence share: the window of positions, and where they are across.
export function across(width, { lo, hi }) {
  const gutter = width < 560 ? 4 : 122;
  const right = width < 560 ? 4 : 52;
  const cell = (width - gutter - right) / (hi - lo);
  return { gutter, right, cell, x: (i) => gutter + (i - lo) * cell, middle: (i) => gutter + (i - lo + 0.5) * cell };
}

export function ticks({ lo, hi }, cell) {
  const step = [1, 2, 5, 10, 20, 50].find((size) => size * cell >= 34) ?? 100;
  const first = Math.ceil(lo / step) * step;
  return Array.from({ length: Math.max(0, Math.ceil((hi - first) / step)) }, (_, n) => first + n * step);
}
