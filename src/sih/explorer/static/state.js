// The state of the page as JSON, and as the fragment of its address. `state.py` reads and writes the same.

const FIRST = {
  lags: [1, 2, 3], states: 5, length: 128, matrix: {}, seed: 19, edits: [], models: [{}],
  query: null, revealed: true, zoom: 2, arcs: "all", race: "weight", speed: 3, offset: 0,
};

export const copyOf = (value) => JSON.parse(JSON.stringify(value));
export const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

export function toFragment(state, first = FIRST) {
  return Object.keys(FIRST)
    .filter((name) => !same(state[name], first[name]))
    .map((name) => `${name}=${encodeURIComponent(JSON.stringify(state[name])).replace(/%2C/g, ",").replace(/%5B/g, "[").replace(/%5D/g, "]").replace(/%3A/g, ":")}`)
    .join("&");
}

export function fromFragment(text, first = FIRST) {
  const state = copyOf(first);
  for (const pair of text.replace(/^#/, "").split("&").filter(Boolean)) {
    const cut = pair.indexOf("=");
    state[decodeURIComponent(pair.slice(0, cut))] = JSON.parse(decodeURIComponent(pair.slice(cut + 1)));
  }
  return state;
}
