// Colours: lags from Okabe and Ito's palette, states from Paul Tol's muted one, all else from the style sheet.

const LAGS = ["blue-lag", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "yellow-lag", "black-lag"];
const STATES = ["indigo-state", "#88CCEE", "#DDCC77", "#117733", "#CC6677", "#AA4499", "#44AA99", "#999933", "#882255", "#BBBBBB"];
const NAMES = ["paper", "panel", "ink", "soft", "faint", "line", "wash", "accent", "second", "yellow-lag", "black-lag", "blue-lag", "indigo-state"];

let theme = null;

export function currentTheme() {
  if (!theme) {
    const style = getComputedStyle(document.documentElement);
    theme = Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  }
  return theme;
}
export function forgetTheme() { theme = null; }

// Some are lighter on a dark page: the style sheet has those.
const themed = (colour) => (colour.startsWith("#") ? colour : currentTheme()[colour]);

export const lagColour = (lag) => themed(LAGS[(lag - 1) % LAGS.length]);
// For words: the colour with some ink in it, so that orange can be read on white.
export function lagInk(lag) {
  const [colour, ink] = [rgb(lagColour(lag)), rgb(currentTheme().ink)];
  return `rgb(${colour.map((c, n) => Math.round(0.62 * c + 0.38 * ink[n])).join(", ")})`;
}
// Lags 9 to 16 repeat the colours of 1 to 8; their lines are dashed.
export const lagDash = (lag) => (lag > LAGS.length ? "5 3" : "none");

export const stateColour = (state) => themed(STATES[state % STATES.length]);
// Black or white, whichever is read more easily on a colour.
export function inkOn(colour) {
  const [r, g, b] = rgb(colour);
  return 0.299 * r + 0.587 * g + 0.114 * b > 130 ? "#17141f" : "#ffffff";
}
export const stateInk = (state) => inkOn(stateColour(state));
export const modelColour = (index) => (index ? currentTheme().second : currentTheme().accent);

export function rgb(hex) {
  const full = hex.length === 4 ? hex.replace(/[^#]/g, "$&$&") : hex;
  return [1, 3, 5].map((at) => parseInt(full.slice(at, at + 2), 16));
}
