// The blocks of the stream at one position, by their names. Each is a product of attention rows with one-hot vectors.

import { attention, headsOf, row, startOf } from "./data.js";
import { currentTheme, inkOn, lagColour, modelColour, stateColour, stateInk } from "./colour.js";
import { element } from "./maps.js";
import { lagOf } from "./sequence.js";

// What a circuit reads and writes at the query: [{name, kind, ...values}].
function blocksOf({ view, state, query }, model) {
  const described = view.models[model];
  const { length, lags, states } = state;
  const tokens = view.arrays.tokens;
  if (described.kind === "trained") {
    return Object.keys(view.arrays).filter((key) => key.startsWith(`part/${model}/`)).map((key) => ({
      name: key.split("/").slice(2).join("/"), kind: "logits", values: row(view.arrays[key], query, states),
    }));
  }
  const heads = headsOf(described).map((head) => ({ ...head, weight: attention(view, model, head.index, length) }));
  const last = described.heads.length;
  const at = (head, n) => Array.from({ length }, (_, key) => (key <= n ? head.weight(n, key) : 0));
  const seen = (weights) => weights.reduce((sums, weight, key) => { sums[tokens[key]] += weight; return sums; }, new Array(states).fill(0));
  if (described.start) return relativeBlocks({ view, state, query }, model, heads, (head) => seen(at(head, query)));
  const blocks = [
    { name: "token", kind: "token", values: seen(Array.from({ length }, (_, i) => Number(i === query))) },
    { name: "position", kind: "position", bars: [{ at: query, value: 1, lag: null }] },
  ];
  for (const head of heads.filter(({ layer }) => layer === 1)) {
    const weights = at(head, query);
    blocks.push({ name: `${head.name}/token`, kind: "token", values: seen(weights) });
    blocks.push({ name: `${head.name}/position`, kind: "position", bars: barsOf(weights, (key) => lagOf(1, last, query - key, lags)) });
  }
  for (const head of heads.filter(({ layer }) => layer === 2)) {
    for (const source of heads.filter(({ layer }) => layer === 1)) {
      const bars = [];
      for (let n = 0; n <= query; n += 1) {
        const gathered = head.weight(query, n);
        if (gathered < 1e-4) continue;
        for (let m = Math.max(0, n - lags[lags.length - 1]); m <= n; m += 1) {
          const value = gathered * source.weight(n, m);
          if (value > 1e-5) bars.push({ at: m, value, lag: lagOf(1, last, n - m, lags), sink: described.sink && n === 0 });
        }
      }
      blocks.push({ name: `${head.name}/${source.name}/position`, kind: "position", bars });
    }
  }
  const reader = heads.find(({ layer }) => layer === last);
  blocks.push({ name: `${reader.name}/token`, kind: "token", values: seen(at(reader, query)), final: true });
  return blocks;
}

// Those of a circuit with relative positions: attention by offset is part of the stream, the start token a state.
function relativeBlocks({ view, state, query }, model, heads, seen) {
  const tokens = (head, final = false) => ({
    name: `${head.name}/token`, kind: "token", values: [...seen(head), startOf(view, model, head.index, query, state.length)], start: true, final,
  });
  const offsets = Object.keys(view.arrays).filter((key) => key.startsWith(`block/${model}/`)).map((key) => ({
    name: key.split("/").slice(2).join("/"), kind: "offset", lags: state.lags,
    values: row(view.arrays[key], query, view.arrays[key].length / state.length),
  }));
  const own = Array.from({ length: state.states + 1 }, (_, s) => Number(s === view.arrays.tokens[query]));
  return [
    { name: "token", kind: "token", values: own, start: true },
    ...heads.filter(({ layer }) => layer === 1).map((head) => tokens(head)),
    ...offsets,
    tokens(heads[heads.length - 1], true),
  ];
}

function barsOf(weights, lag) {
  return weights.map((value, at) => ({ at, value, lag: lag(at) })).filter(({ value }) => value > 1e-4);
}

export function drawStream(host, scene, modelName) {
  host.replaceChildren(...scene.view.models.map((_, model) => {
    const box = element("div", "stream-model");
    const title = element("h3");
    title.append(element("span", model ? "badge b" : "badge", {}, "AB"[model]), element("span", "", {}, modelName(model)));
    box.append(title);
    appendBlocks(box, blocksOf(scene, model).filter(({ final }) => !(final && scene.veiled)), scene, model);
    return box;
  }));
}

// A row for each block, drawn as soon as it has its place.
export function appendBlocks(box, blocks, scene, model) {
  const rows = blocks.map((block) => {
    const line = element("div", block.kind === "position" ? "block" : block.start || block.kind === "offset" ? "block narrow wider" : "block narrow");
    const canvas = element("canvas", "", { role: "img", "aria-label": spoken(block) });
    line.append(element("code", "", {}, block.name), canvas);
    box.append(line);
    return { canvas, block };
  });
  queueMicrotask(() => rows.forEach(({ canvas, block }) => drawBlock(canvas, block, scene, model)));
}

const small = (value) => (value === 0 || value >= 0.005 ? value.toFixed(2) : value.toExponential(1).replace("-", "−"));

function spoken({ name, kind, values, bars, lags, start }) {
  if (kind === "offset") return `${name}: ${lags.map((lag) => `${small(values[lag])} at offset ${lag}`).join(", ")}`;
  if (start) return `${name}: ${values.map((value, s) => `${value.toFixed(2)} for ${s === values.length - 1 ? "start" : s}`).join(", ")}`;
  const numbers = kind === "position"
    ? [...bars].sort((a, b) => b.value - a.value).slice(0, 3).map(({ at, value }) => `${value.toFixed(2)} at ${at}`)
    : Array.from(values, (value, s) => `${value.toFixed(2)} for ${s}`);
  return `${name}: ${numbers.join(", ")}`;
}

function drawBlock(canvas, block, scene, model) {
  const scale = globalThis.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = block.kind === "position" ? 26 : 24;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  if (block.kind === "position") drawPositions(context, block.bars, scene, width, height);
  else if (block.kind === "offset") drawOffsets(context, block, width, height);
  else drawStates(context, block, width, height, model);
}

// A bar for each offset, those of lags in their colours and as tall as beside the largest of them; others are clipped.
function drawOffsets(context, { values, lags }, width, height) {
  const theme = currentTheme();
  const cell = width / values.length;
  const most = Math.max(1e-300, ...lags.map((lag) => values[lag]));
  context.font = "600 11px system-ui, sans-serif";
  context.textAlign = "center";
  values.forEach((value, offset) => {
    const lag = lags.includes(offset);
    const tall = (height - 3) * Math.min(1, value / most);
    context.globalAlpha = lag ? 1 : 0.25;
    context.fillStyle = lag ? lagColour(offset) : theme.ink;
    context.fillRect(offset * cell + 1, height - tall, cell - 2, tall);
    context.globalAlpha = 1;
    context.fillStyle = lag && tall > height / 2 ? inkOn(lagColour(offset)) : theme.soft;
    context.fillText(offset === values.length - 1 ? `${offset}+` : offset, (offset + 0.5) * cell, height - 7);
  });
}

// A bar at the index that holds a value, in the colour of the lag it speaks for; values that share an index stack.
function drawPositions(context, bars, { window: { lo, hi } }, width, height) {
  const theme = currentTheme();
  const cell = width / (hi - lo);
  const piles = new Map();
  for (const { at, value, sink } of bars) if (!sink) piles.set(at, (piles.get(at) ?? 0) + value);
  const most = Math.max(1e-9, ...piles.values());
  const filled = new Map();
  for (const { at, value, lag } of bars) {
    if (at < lo || at >= hi) continue;
    const from = filled.get(at) ?? 0;
    filled.set(at, from + value);
    const tall = Math.min(height, ((height - 3) * value) / most);
    context.fillStyle = lag ? lagColour(lag) : theme.ink;
    context.fillRect((at - lo) * cell, height - ((height - 3) * from) / most - tall, Math.max(1, cell - (cell > 4 ? 1 : 0)), tall);
  }
}

function drawStates(context, { kind, values, start }, width, height, model) {
  const cell = width / values.length;
  const theme = currentTheme();
  const most = kind === "logits" ? Math.max(0.5, ...Array.from(values, Math.abs)) : 1;
  context.font = "600 11px system-ui, sans-serif";
  context.textAlign = "center";
  values.forEach((value, s) => {
    if (kind === "logits") {
      const tall = ((height / 2 - 1) * value) / most;
      context.fillStyle = value >= 0 ? modelColour(model) : theme.faint;
      context.fillRect(s * cell + 2, height / 2 - Math.max(0, tall), cell - 4, Math.abs(tall));
      return;
    }
    const before = start && s === values.length - 1;  // the start token
    context.globalAlpha = before ? 0.3 * value : value;
    context.fillStyle = before ? theme.ink : stateColour(s);
    context.fillRect(s * cell + 1, 1, cell - 2, height - 2);
    context.globalAlpha = 1;
    context.fillStyle = before ? theme.soft : value > 0.5 ? stateInk(s) : theme.soft;
    if (before) context.fillText(cell > 34 ? "start" : "st", (s + 0.5) * cell, 16);
    else context.fillText(values.length > 6 ? s : value > 0.005 ? value.toFixed(2) : "·", (s + 0.5) * cell, 16);
  });
}
