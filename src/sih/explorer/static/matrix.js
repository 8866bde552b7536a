// P: its rows as strips, and an editor that keeps a row a probability law.

import { currentTheme, rgb, stateColour, stateInk } from "./colour.js";
import { element } from "./maps.js";

export class MatrixEditor {
  constructor({ grid, name, sliders, text, editor, onRows, onProblem }) {
    Object.assign(this, { grid, name, sliders, text, editor, onRows, onProblem, row: 0, P: [] });
    text.addEventListener("change", () => this.typed(text.value));
  }

  show(P, fixed) {
    const focused = this.grid.contains(document.activeElement);
    this.P = P;
    this.row = Math.min(this.row, P.length - 1);
    this.grid.replaceChildren(...P.map((probabilities, from) => {
      const button = element("button", "matrix-row", { type: "button", role: "radio", "aria-checked": String(from === this.row), tabindex: from === this.row ? "0" : "-1", title: `from ${from}: ${probabilities.map((p) => p.toFixed(3)).join("  ")}`, "aria-label": `from ${from}: ${probabilities.map((p) => p.toFixed(2)).join(", ")}` });
      button.append(stateTag(from), this.strip(probabilities));
      button.addEventListener("click", () => this.choose(from, true));
      button.addEventListener("keydown", (event) => {
        const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        event.preventDefault();
        event.stopPropagation();
        this.choose((from + step + P.length) % P.length, true);
      });
      return button;
    }));
    if (focused) this.grid.children[this.row].focus();
    this.showRow(fixed);
  }

  choose(from, focus) {
    this.row = from;
    [...this.grid.children].forEach((button, n) => {
      button.setAttribute("aria-checked", String(n === from));
      button.tabIndex = n === from ? 0 : -1;
    });
    if (focus) this.grid.children[from].focus();
    this.showRow(this.fixed);
  }

  strip(probabilities) {
    const canvas = element("canvas");
    canvas.width = probabilities.length;
    canvas.height = 1;
    const context = canvas.getContext("2d");
    const theme = currentTheme();
    const [paper, ink] = [rgb(theme.wash), rgb(theme.ink)];
    probabilities.forEach((p, j) => {
      context.fillStyle = `rgb(${paper.map((c, n) => Math.round(c + (ink[n] - c) * Math.sqrt(p))).join(" ")})`;
      context.fillRect(j, 0, 1, 1);
    });
    canvas.style.imageRendering = "pixelated";
    return canvas;
  }

  showRow(fixed) {
    this.fixed = fixed;
    this.name.textContent = this.row;
    this.editor.hidden = fixed;
    const probabilities = this.P[this.row];
    this.text.value = probabilities.map((p) => Number(p.toFixed(4))).join(", ");
    if (this.sliders.contains(document.activeElement) && this.sliders.children.length === probabilities.length) {
      probabilities.forEach((p, to) => this.setSlider(this.sliders.children[to], p));
      return;
    }
    this.sliders.replaceChildren(...probabilities.map((p, to) => {
      const label = element("label");
      const input = element("input", "", { type: "range", min: "0", max: "1", step: "0.01", "aria-label": `probability of going from ${this.row} to ${to}` });
      label.append(stateTag(to), input, element("output"));
      input.addEventListener("input", () => this.moved(to, Number(input.value)));
      this.setSlider(label, p);
      return label;
    }));
  }

  setSlider(label, p) {
    label.querySelector("input").value = p;
    label.querySelector("output").textContent = p.toFixed(2);
  }

  // One probability moves, the others keep their proportions and give or take the rest.
  moved(to, value) {
    const others = this.P[this.row].map((p, j) => (j === to ? 0 : p));
    const sum = others.reduce((a, b) => a + b, 0);
    const rest = 1 - value;
    this.change(this.P[this.row].map((_, j) => (j === to ? value : sum > 0 ? (others[j] / sum) * rest : rest / (others.length - 1))));
  }

  typed(words) {
    const numbers = words.split(/[\s,;]+/).filter(Boolean).map(Number);
    const size = this.P.length;
    const sum = numbers.reduce((a, b) => a + b, 0);
    if (numbers.length !== size) this.onProblem(`row ${this.row} has ${size} probabilities, one a state; got ${numbers.length}`);
    else if (numbers.some((p) => !(p >= 0) || !Number.isFinite(p))) this.onProblem(`probabilities are numbers, 0 or more; got ${words.slice(0, 60)}`);
    else if (!(sum > 0)) this.onProblem(`row ${this.row} cannot be made to sum to 1: all its entries are 0`);
    else this.change(numbers.map((p) => p / sum));
  }

  change(probabilities) {
    const rows = this.P.map((row, from) => (from === this.row ? probabilities : row)).map(rounded);
    this.onRows(rows);
  }
}

// Six decimals, the largest entry taking what rounding leaves, so that a link stays short and a row a law.
function rounded(row) {
  const short = row.map((p) => Math.round(p * 1e6) / 1e6);
  const largest = short.indexOf(Math.max(...short));
  const others = short.reduce((sum, p, j) => (j === largest ? sum : sum + p), 0);
  short[largest] = Math.round((1 - others) * 1e6) / 1e6;
  return short;
}

function stateTag(state) {
  const tag = element("span", "state", {}, String(state));
  tag.style.background = stateColour(state);
  tag.style.color = stateInk(state);
  return tag;
}
