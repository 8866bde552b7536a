// The task's controls: they say what was asked for; `app.js` decides what becomes of it.

import { inkOn, lagColour } from "./colour.js";
import { element } from "./maps.js";
import { MatrixEditor } from "./matrix.js";

const LAGS = 16;
const $ = (id) => document.getElementById(id);
const concentrated = ["dirichlet", "doubly-stochastic", "sparse", "near-periodic"];
const seeded = ["uniform", ...concentrated];

export class Controls {
  constructor({ onChange, onDraw, onProblem }) {
    this.onChange = onChange;
    this.chips = Array.from({ length: LAGS }, (_, n) => {
      const chip = element("button", "", { type: "button", "aria-pressed": "false", "aria-label": `lag ${n + 1}` }, String(n + 1));
      chip.addEventListener("click", () => this.toggle(n + 1));
      return chip;
    });
    $("lag-chips").append(...this.chips);
    for (const name of ["states", "length", "seed"]) $(name).addEventListener("change", () => this.numberTyped(name));
    $("matrix-kind").addEventListener("change", () => this.matrixKind($("matrix-kind").value));
    $("matrix-seed").addEventListener("change", () => this.matrixChange({ seed: wholeOf($("matrix-seed")) }));
    $("concentration").addEventListener("input", () => this.matrixChange({ concentration: Number((10 ** $("concentration").value).toPrecision(3)) }));
    $("draw").addEventListener("click", onDraw);
    this.matrix = new MatrixEditor({
      grid: $("matrix-grid"), name: $("row-name"), sliders: $("row-sliders"), text: $("row-text"), editor: $("row-editor"),
      onRows: (rows) => onChange({ matrix: { kind: "rows", rows } }), onProblem: (words) => onProblem("matrix", words),
    });
  }

  toggle(lag) {
    const now = this.state.lags;
    this.onChange({ lags: now.includes(lag) ? now.filter((other) => other !== lag) : [...now, lag].sort((a, b) => a - b) });
  }

  numberTyped(name) {
    const patch = { [name]: wholeOf($(name)) };
    const kept = this.state.matrix;
    if (name === "states" && kept.kind === "rows") patch.matrix = {};  // rows do not stretch to more states
    this.onChange(patch);
  }

  matrixKind(kind) {
    if (kind === "rows") this.onChange({ matrix: { kind, rows: this.matrix.P } });
    else this.matrixChange({ kind });
  }

  matrixChange(patch) {
    const { rows, ...kept } = this.state.matrix;
    if (kept.kind === "rows") delete kept.kind;
    const next = { ...kept, ...patch };
    if (next.kind === "dirichlet") delete next.kind;
    if (next.seed === 0) delete next.seed;
    if (next.concentration === 1 || next.kind === "uniform") delete next.concentration;
    this.onChange({ matrix: next });
  }

  show(state, view, fixed) {
    this.state = state;
    this.chips.forEach((chip, n) => {
      const on = state.lags.includes(n + 1);
      chip.setAttribute("aria-pressed", String(on));
      chip.style.background = on ? lagColour(n + 1) : "";
      chip.style.color = on ? inkOn(lagColour(n + 1)) : "";
      chip.style.borderColor = on ? lagColour(n + 1) : "";
      chip.disabled = fixed;
    });
    for (const name of ["states", "length", "seed"]) {
      if (document.activeElement !== $(name)) $(name).value = state[name];
      $(name).disabled = fixed;
    }
    const { kind = "dirichlet", seed = 0, concentration = 1 } = state.matrix;
    $("matrix-kind").value = kind;
    $("matrix-seed").value = seed;
    $("concentration").value = Math.log10(concentration);
    $("concentration").nextElementSibling.textContent = concentration;
    $("matrix-kind").disabled = fixed;
    $("matrix-seed").disabled = fixed || !seeded.includes(kind);
    $("concentration").disabled = fixed || !concentrated.includes(kind);
    this.matrix.show(view.P, fixed);
  }
}

// What was typed, as a whole number if it is one; the server says what is wrong with anything else.
function wholeOf(input) {
  return input.value.trim() === "" ? null : Number(input.value);
}
