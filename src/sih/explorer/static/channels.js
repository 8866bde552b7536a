// Two channels of layer 2: how much of each lag's score came by where a head looked, and how much by what it carried.

import { attentionBeside, headsOf, row, votedLag } from "./data.js";
import { currentTheme, lagColour, lagInk } from "./colour.js";
import { element } from "./maps.js";
import { appendBlocks } from "./stream.js";
import { drawing, line, tag, text } from "./svg.js";

const ROW = 19;
const NAMES = { attention: "patterns", values: "values", embedding: "token and position" };

// The ways in the order of the layers, as rows of the chart: [name, values at the query].
function waysOf(channels, query, lags) {
  const at = (name) => row(channels.arrays[name], query, lags.length);
  const rows = channels.heads.flatMap((head) => ["attention", "values"].map((way) => [head, way])).filter(([head, way]) => channels.parts.includes(`${head}:${way}`)).map(([head, way]) => [`${head} ${NAMES[way]}`, at(`part/${head}:${way}`), way]);
  const others = channels.parts.filter((name) => !name.includes(":")).map((name) => [NAMES[name] ?? `${name} itself`, at(`part/${name}`), "other"]);
  return [...rows, ...others, ["same for all", at("common"), "other"], ["score", at("score"), "score"]];
}

function drawWays(channels, { state, query }, width) {
  const theme = currentTheme();
  const { lags } = state;
  const rows = waysOf(channels, query, lags);
  const left = 104;
  const column = (width - left) / lags.length;
  const most = Math.max(1e-6, ...rows.flatMap(([, values]) => Array.from(values, Math.abs)));
  const half = column / 2 - (column > 130 ? 40 : 6);
  const parts = [];
  const top = 22;
  const bottom = top + ROW * rows.length;
  lags.forEach((lag, k) => {
    const middle = left + column * (k + 0.5);
    parts.push(text(middle, 11, `lag ${lag}`, { fill: lagInk(lag), "text-anchor": "middle", "font-weight": 650 }));
    parts.push(line(middle, top - 4, middle, bottom + 4, theme.line));
  });
  rows.forEach(([name, values, way], n) => {
    const y = top + ROW * n + (way === "score" ? 6 : 0);
    if (way === "score") parts.push(line(0, y - 4, width, y - 4, theme.line));
    parts.push(text(0, y + 12, name, { fill: way === "score" ? theme.ink : theme.soft, "font-weight": way === "score" ? 650 : 400, "font-size": 12 }));
    lags.forEach((lag, k) => {
      const middle = left + column * (k + 0.5);
      const long = (half * values[k]) / most;
      const style = way === "attention" ? { fill: "none", stroke: lagColour(lag), "stroke-width": 1.6 } : { fill: way === "other" ? theme.faint : lagColour(lag), stroke: "none" };
      parts.push(tag("rect", { x: Math.min(middle, middle + long), y: y + 3, width: Math.abs(long), height: ROW - 7, rx: 1.5, ...style }));
      if (column > 130) parts.push(text(middle + long + (values[k] < 0 ? -4 : 4), y + 12, signed(values[k]), { fill: way === "score" ? theme.ink : theme.faint, "text-anchor": values[k] < 0 ? "end" : "start" }));
    });
  });
  return drawing(width, bottom + 10, parts.join(""));
}

const signed = (value) => (Math.abs(value) < 0.005 ? "0" : value.toFixed(2).replace("-", "−"));

// The heads that have channels, each with its attention.
function readersOf(channels, { view, state }, model) {
  const heads = headsOf(view.models[model]).filter(({ name }) => channels.heads.includes(name));
  return heads.map((head) => ({ ...head, weight: attentionBeside(view, model, head, state.length) }));
}

// Of each head its attention, in the colours of what keys vote for, and how much they vote by either way.
function stripsOf(channels, scene, model) {
  const { view, state, query } = scene;
  const keys = Array.from({ length: query + 1 }, (_, key) => key);
  return readersOf(channels, scene, model).flatMap(({ name, weight }) => {
    const start = (channels.heads.indexOf(name) * state.length + query) * state.length;
    const looks = keys.map((key) => ({ at: key, value: weight(query, key), lag: votedLag(channels, name, query, key, state), sink: Boolean(view.models[model].sink) && key === 0 }));
    const ways = ["attention", "values"].filter((way) => channels.parts.includes(`${name}:${way}`));
    const votes = ways.map((way) => keys.map((key) => ({ at: key, value: channels.arrays[`size/${way}`][start + key] / 255, lag: votedLag(channels, name, query, key, state, way) })));
    return [
      { name: `${name} attends`, kind: "position", bars: looks.filter(({ value }) => value > 1e-4) },
      ...ways.map((way, n) => ({ name: `${name} ${NAMES[way]}`, kind: "position", bars: votes[n].filter(({ value, lag }) => value > 0 && lag) })),
    ];
  });
}

// The share of a head's attention at keys that vote for each lag, in words, and the period it looks with.
function lookWords(channels, scene, model) {
  const { view, state, query } = scene;
  const first = view.models[model].sink ? 1 : 0;
  return readersOf(channels, scene, model).map(({ name, weight }) => {
    const shares = state.lags.map(() => 0);
    let all = 0;
    for (let key = first; key <= query; key += 1) {
      const lag = votedLag(channels, name, query, key, state);
      all += weight(query, key);
      if (lag) shares[state.lags.indexOf(lag)] += weight(query, key);
    }
    const best = shares.indexOf(Math.max(...shares));
    const found = channels.periods[name];
    const phase = found ? ` Its scores by offset have period ${found[0]} (R² ${found[1].toFixed(2)}).` : "";
    const where = first ? "of what it pays past position 0" : view.models[model].start ? "of what it pays tokens" : "of its attention";
    return shares[best] > 0 ? `${name}: ${Math.round((100 * shares[best]) / all)} % ${where} is at keys that vote for lag ${state.lags[best]}.${phase}` : `${name}: no key votes here.${phase}`;
  });
}

export function drawChannels(host, scene, modelName) {
  const { view, state, query, channels } = scene;
  const draws = [];
  host.replaceChildren(...view.models.map((_, model) => {
    const box = element("div", channels[model]?.stale ? "stream-model stale" : "stream-model");
    const title = element("h3");
    title.append(element("span", model ? "badge b" : "badge", {}, "AB"[model]), element("span", "", {}, modelName(model)));
    box.append(title);
    const found = channels[model];
    if (!found?.heads) {
      box.append(element("p", "note", {}, found?.refused ?? "Working out the channels…"));
      return box;
    }
    if (query < state.lags[state.lags.length - 1] - 1) {
      box.append(element("p", "note", {}, `Position ${query} has no token yet that every lag could copy; the first is ${state.lags[state.lags.length - 1] - 1}.`));
      return box;
    }
    const spoken = state.lags.map((lag, k) => `lag ${lag} ${signed(row(found.arrays.score, query, state.lags.length)[k])}`).join(", ");
    const place = element("div", "drawing", { role: "img", "aria-label": `Scores by where they came from at position ${query}: ${spoken}` });
    box.append(place);
    draws.push(() => { place.innerHTML = drawWays(found, scene, place.clientWidth); });
    appendBlocks(box, stripsOf(found, scene, model), scene, model);
    if (found.heads.length <= 5) for (const words of lookWords(found, scene, model)) box.append(element("p", "note", {}, words));
    return box;
  }));
  draws.forEach((draw) => draw());
}
