// The models' cards: which one, its sliders, and what its certificate says.

import { element } from "./maps.js";
import { same } from "./state.js";

const CIRCUITS = {
  paper: "Paper's circuit, least heads", mask: "Paper's circuit, mask form", position: "Paper's circuit, position form",
  fewer: "Fewer heads", "two-lags": "Two lags, one head", bayes: "Bayes-optimal circuit",
  both: "Bayes, few heads, both sides", looking: "Looking circuit",
  relative: "Paper's circuit, relative positions", "relative-bayes": "Bayes-optimal, relative positions",
};
const PAPER = ["paper", "mask", "position", "fewer", "two-lags", "relative"];
export const isRelative = ({ kind }) => kind === "relative" || kind === "relative-bayes";
const SLIDERS = [
  { key: "heads", name: "Heads", of: ["paper", "mask", "position", "fewer", "bayes", "both"], heads: true },
  { key: "beta", name: "β", of: PAPER, low: -0.5, high: 4, long: "beta, inverse temperature of the third layer" },
  { key: "lam", name: "λ", of: PAPER, low: 1, high: 4, long: "lambda, strength of the masks" },
  { key: "temper", name: "Temper", of: PAPER, low: -4, high: 0.7, long: "temper, exponent on the probabilities" },
  { key: "temper", name: "Temper", of: ["bayes", "both", "looking", "relative-bayes"], low: -9, high: 0, long: "temper, exponent on the probabilities" },
  { key: "looking", name: "Looking", of: ["looking"], low: -3, high: 1, long: "looking, how strongly layer 2 attends to found parents" },
];
const number = (value) => (value >= 1000 || value < 0.01 ? value.toExponential(1) : String(Number(value.toPrecision(3))));

export const modelName = (choice) => (choice.kind === "trained" ? `Trained: ${choice.name}` : CIRCUITS[choice.kind ?? "paper"] ?? choice.kind);

// Whether a trained model was trained for the task shown.
export function fits(trained, state) {
  const plain = ({ kind = "dirichlet", seed = 0, concentration = 1, rows = null } = {}) => ({ kind, seed, concentration, rows });
  return same(trained.lags, state.lags) && trained.states === state.states && trained.length >= state.length
    && same(plain(trained.matrix), plain(state.matrix));
}

export class ModelCards {
  constructor(host, known, { onChange, onTask, onRemove, fixed }) {
    Object.assign(this, { host, known, onChange, onTask, onRemove, fixed, cards: [] });
  }

  show(state, view) {
    this.shown = state.models;
    while (this.cards.length > state.models.length) this.cards.pop().box.remove();
    while (this.cards.length < state.models.length) this.add(this.cards.length);
    this.cards.forEach((card, index) => this.fill(card, index, state, view));
  }

  add(index) {
    const box = element("div", "model", { role: "group", "aria-label": `Model ${"AB"[index]}` });
    const title = element("h3");
    title.append(element("span", index ? "badge b" : "badge", {}, "AB"[index]), element("span", "", {}, `Model ${"AB"[index]}`));
    if (index) {
      const remove = element("button", "remove", { type: "button" }, "Remove");
      remove.addEventListener("click", () => this.onRemove(index));
      title.append(remove);
    }
    const select = element("select", "", { "aria-label": `Model ${"AB"[index]}` });
    select.addEventListener("change", () => this.chosen(index, select.value));
    box.append(title, select);
    const sliders = SLIDERS.map((slider) => {
      const label = element("label", "slider", {}, slider.name);
      const input = element("input", "", { type: "range", "aria-label": `Model ${"AB"[index]}: ${slider.long ?? "number of second-layer heads"}` });
      const output = element("output");
      label.append(input, output);
      const value = () => (slider.heads ? Number(input.value) : Number((10 ** Number(input.value)).toPrecision(3)));
      input.addEventListener("input", () => {
        output.textContent = number(value());
        if (slider.heads) this.sayBuilt(index, value());
        this.moved(index, { [slider.key]: value() });
      });
      box.append(label);
      const built = slider.heads ? element("p", "built", { "aria-live": "polite" }) : null;
      if (built) box.append(built);
      return { ...slider, label, input, output, built };
    });
    const evidence = element("label", "slider wide", {}, "Evidence");
    const kind = element("select", "", { "aria-label": `Model ${"AB"[index]}: evidence` });
    kind.append(new Option("averaged", "mean"), new Option("summed", "sum"));
    kind.addEventListener("change", () => this.onChange(index, { evidence: kind.value }));
    evidence.append(kind);
    const how = element("p", "built how");
    const errors = ["", ".beta", ".lam", ".temper", ".looking", ".heads", ".evidence"].map((name) => element("p", "error", { "data-error-for": `models.${index}${name}`, role: "alert" }));
    const verdict = element("p", "verdict", { "aria-live": "polite" });
    box.append(how, evidence, ...errors, verdict);
    this.host.append(box);
    this.cards.push({ box, select, sliders, how, evidence, kind, verdict });
  }

  options(state) {
    if (this.known.saved) return [{ label: "In this page", entries: this.known.saved.map(({ choice, heads }, n) => [String(n), choice.heads ? `${modelName(choice)} (${heads})` : modelName(choice)]) }];
    const trained = this.known.trained.map((model) => [`trained:${model.name}`, `${model.name} (${model.briefly}${fits(model, state) ? "" : "; takes its task"})`]);
    const written = this.known.circuits.map((kind) => [kind, CIRCUITS[kind] ?? kind]);
    return [{ label: "Written by hand", entries: written }, { label: "Trained", entries: trained }];
  }

  fill(card, index, state, view) {
    const choice = state.models[index];
    const described = view.models[index];
    const kind = choice.kind ?? "paper";
    card.select.replaceChildren(...this.options(state).map(({ label, entries }) => {
      const group = element("optgroup", "", { label });
      group.append(...entries.map(([value, words]) => new Option(words, value)));
      return group;
    }));
    card.select.value = this.known.saved
      ? String(this.known.saved.findIndex(({ choice: other }) => same(other, choice)))
      : kind === "trained" ? `trained:${choice.name}` : kind;
    for (const { label, input, output, key, of, heads, low, high } of card.sliders) {
      label.hidden = !of.includes(kind);
      input.disabled = this.fixed && !(heads && this.saved(kind).length > 1);
      const value = heads ? described.heads[1] : described[key];
      if (heads) {
        card.ladder = described.ladder ?? [];
        this.sayBuilt(index, value);
      }
      if (label.hidden || document.activeElement === input) continue;
      Object.assign(input, heads ? { min: 1, max: card.ladder.length, step: 1 } : { min: low, max: high, step: 0.05 });
      input.value = heads ? value : Math.log10(value);
      output.textContent = number(value);
    }
    const trained = kind === "trained" && (this.known.trained ?? []).find(({ name }) => name === choice.name);
    const relative = isRelative({ kind });
    card.how.hidden = !trained && !described.start;
    card.how.textContent = [
      trained ? `Trained on ${trained.length} tokens. ${trained.trained[0].toUpperCase()}${trained.trained.slice(1)}.` : "",
      relative ? `Heads [${described.heads.join(", ")}]: the same weights at any length.` : "",
      described.start ? "A start token stands before the sequence. Arcs and maps are between tokens; what a head pays the start token stands below its map." : "",
    ].filter(Boolean).join(" ");
    card.evidence.hidden = !["paper", "position", "fewer"].includes(kind);
    card.kind.disabled = this.fixed;
    card.kind.value = choice.evidence ?? "mean";
  }

  // What a circuit with so many second-layer heads is.
  sayBuilt(index, heads) {
    const { ladder, sliders } = this.cards[index];
    const step = ladder.find((one) => one.heads === heads);
    sliders[0].built.textContent = step ? `${heads === 1 ? "1 head" : `${heads} heads`}: ${step.words}.` : "";
  }

  saved(kind) { return (this.known.saved ?? []).filter(({ choice }) => (choice.kind ?? "paper") === kind); }

  // A saved page has one model for some numbers of heads, and no other sliders.
  moved(index, patch) {
    if (!this.fixed) this.onChange(index, patch);
    const found = this.fixed && this.saved(this.shown[index].kind ?? "paper").find(({ heads }) => heads === patch.heads);
    if (found) this.onChange(index, found.choice, true);
  }

  chosen(index, value) {
    if (this.known.saved) this.onChange(index, this.known.saved[Number(value)].choice, true);
    else if (!value.startsWith("trained:")) this.onChange(index, value === "paper" ? {} : { kind: value }, true);
    else {
      const model = this.known.trained.find(({ name }) => `trained:${name}` === value);
      this.onTask(index, model);
    }
  }

  say(index, words, ok) {
    const verdict = this.cards[index]?.verdict;
    if (!verdict) return;
    verdict.textContent = words;
    verdict.className = ok === undefined ? "verdict" : ok ? "verdict ok" : "verdict fails";
  }

  showVerdict(index, found) {
    const power = (value) => value.toExponential(1).replace("e-", "e−");
    const exact = found.posterior_error === null ? "" : ` Posterior within ${power(found.posterior_error)}${found.bound === null ? "" : `, certified ${power(found.bound)}`}.`;
    this.say(index, `Certificate ${found.ok ? "holds" : "fails"}: every layer within ${power(found.max_error)} of the closed form `
      + `(tolerance ${power(found.tolerance)}), ${found.sequences} sequences of ${found.length}, from position ${found.first_exact_position} on.${exact}`, found.ok);
  }
}
