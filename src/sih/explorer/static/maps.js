// Attention as maps on canvas, a head each; keys that stand for a lag in its colour, all others in ink.

import { attentionBeside, headsOf, startOf, votedLag } from "./data.js";
import { currentTheme, lagColour, modelColour, rgb } from "./colour.js";
import { lagOf } from "./sequence.js";

const ROLES = ["looks up transitions", "gathers them", "selects the lag"];

// One pixel a pair of positions, made once for a view and drawn as often as the page moves.
function bitmapOf(view, model, head, state, channels) {
  const { length: size, lags } = state;
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = size;
  const context = canvas.getContext("2d");
  const image = context.createImageData(size, size);
  const weight = attentionBeside(view, model, head, size);
  const last = view.models[model].heads.length;
  const theme = currentTheme();
  const ink = rgb(theme.ink);
  const paper = rgb(theme.wash);
  const hue = Array.from({ length: size }, (_, offset) => {
    const lag = lagOf(head.layer, last, offset, lags);
    return lag ? rgb(lagColour(lag)) : ink;
  });
  for (let i = 0; i < size; i += 1) {
    for (let j = 0; j <= i; j += 1) {
      const strength = Math.min(1, weight(i, j) ** 0.6);
      const voted = strength > 0 ? votedLag(channels, head.name, i, j, state) : null;
      const colour = voted ? rgb(lagColour(voted)) : hue[i - j];
      const at = 4 * (i * size + j);
      for (let c = 0; c < 3; c += 1) image.data[at + c] = paper[c] + (colour[c] - paper[c]) * strength;
      image.data[at + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

const known = (channels, veiled) => (veiled || channels?.stale ? undefined : channels);

export class Maps {
  constructor(host, { onHover, onLeave, onArcs, modelName }) {
    Object.assign(this, { host, onHover, onLeave, onArcs, modelName, figures: [] });
  }

  // New figures for a new view; `redraw` then puts the bitmaps on them.
  rebuild(scene) {
    const { view, state } = scene;
    this.scene = scene;
    const shape = JSON.stringify(view.models.map(({ heads, start }) => [heads, start]));
    if (shape !== this.shape) this.layOut(view);
    this.shape = shape;
    view.models.forEach((_, m) => { this.host.querySelector(`#maps-${m} .name`).textContent = this.modelName(m); });
    for (const figure of this.figures) this.paint(figure, scene);
    this.redraw(scene);
  }

  // Heads between the first layer and the last in the colours of what their keys vote for, once that is known and told.
  paint(figure, { view, state, channels, veiled }) {
    figure.channels = known(channels[figure.model], veiled);
    figure.bitmap = bitmapOf(view, figure.model, figure.head, state, figure.channels);
  }

  layOut(view) {
    this.host.replaceChildren();
    this.figures = [];
    view.models.forEach((model, m) => {
      const box = element("div", "model-maps", { id: `maps-${m}` });
      const title = element("h3", "");
      title.append(element("span", m ? "badge b" : "badge", {}, "AB"[m]), element("span", "name"));
      const layers = element("div", "layers");
      box.append(title, layers);
      model.heads.forEach((_, layer) => {
        const group = element("div", "layer");
        const role = model.heads.length === 3 ? `: ${ROLES[layer]}` : "";
        group.append(element("p", "", {}, `Layer ${layer + 1}${role}`), element("div", ""));
        layers.append(group);
      });
      for (const head of headsOf(model)) {
        const figure = element("figure", "");
        const canvas = element("canvas", "", { role: "img" });
        const caption = element("figcaption", "");
        const button = element("button", "", { type: "button", "aria-pressed": "false", title: "Draw this head's arcs" }, `head ${head.name}`);
        const start = element("span", "start");
        caption.append(button, start);
        figure.append(canvas, caption);
        layers.children[head.layer - 1].lastElementChild.append(figure);
        button.addEventListener("click", () => this.onArcs(head.name));
        const point = (event) => {
          const { lo, hi } = this.scene.window;
          const box2 = canvas.getBoundingClientRect();
          const i = lo + Math.floor(((event.clientY - box2.top) / box2.height) * (hi - lo));
          this.onHover(Math.max(lo, Math.min(hi - 1, i)), head.name, m);
        };
        canvas.addEventListener("pointermove", point);
        canvas.addEventListener("pointerdown", point);
        canvas.addEventListener("pointerleave", () => this.onLeave());
        this.figures.push({ canvas, button, start, model: m, head });
      }
      this.host.append(box);
    });
  }

  size() {
    const width = this.host.clientWidth;
    const most = Math.max(...this.scene.view.models.map(({ heads }) => heads.reduce((a, b) => a + b, 0)));
    const gaps = 18 * 2 + 8 * most;
    return Math.floor(Math.max(width < 560 ? (width - 18) / 3 : 156, Math.min(220, (width - gaps) / most)));
  }

  redraw(scene) {
    this.scene = scene;
    const { window: { lo, hi }, query, veiled, arcs } = scene;
    const theme = currentTheme();
    const size = this.size();
    const scale = globalThis.devicePixelRatio || 1;
    for (const figure of this.figures) {
      if (figure.channels !== known(scene.channels[figure.model], veiled)) this.paint(figure, scene);
      const { canvas, bitmap, button, head, model } = figure;
      const pixels = Math.round(size * scale);
      if (canvas.width !== pixels) canvas.width = canvas.height = pixels;
      canvas.style.width = canvas.style.height = `${size}px`;
      const context = canvas.getContext("2d");
      context.imageSmoothingEnabled = pixels < 2.5 * (hi - lo);
      context.imageSmoothingQuality = "high";
      context.clearRect(0, 0, pixels, pixels);
      const last = head.layer === scene.view.models[model].heads.length;
      button.setAttribute("aria-pressed", String(["all", head.name, String(head.layer)].includes(arcs)));
      canvas.setAttribute("aria-label", `Attention of head ${head.name}, model ${"AB"[model]}`);
      figure.start.textContent = scene.view.models[model].start && !(veiled && last) ? `start ${startOf(scene.view, model, head.index, query, scene.state.length).toFixed(2)}` : "";
      if (veiled && last) continue;
      context.drawImage(bitmap, lo, lo, hi - lo, hi - lo, 0, 0, pixels, pixels);
      const cell = pixels / (hi - lo);
      if (query < lo || query >= hi) continue;
      context.strokeStyle = model ? modelColour(1) : theme.accent;
      context.lineWidth = Math.max(1, scale);
      context.strokeRect(0.5, (query - lo) * cell - 0.5, pixels - 1, Math.max(2, cell) + 1);
    }
  }
}

export function element(name, className = "", attributes = {}, words = "") {
  const made = document.createElement(name);
  if (className) made.className = className;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (words) made.textContent = words;
  return made;
}
