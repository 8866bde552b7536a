// The page: one state, one view; a change asks for a new view, and what is drawn follows from the two.

import { certify, findChannels, fittedView } from "./asking.js";
import { drawChannels } from "./channels.js";
import { currentTheme, lagColour, lagInk } from "./colour.js";
import { Controls } from "./controls.js";
import { headsOf } from "./data.js";
import { listen } from "./input.js";
import { Maps, element } from "./maps.js";
import { drawMixed, mixedOf } from "./mixed.js";
import { ModelCards, fits, modelName } from "./models.js";
import { drawBars, drawKl } from "./next.js";
import { Player } from "./play.js";
import { drawRace, raceNote } from "./race.js";
import { arcsName, attended, drawSequence } from "./sequence.js";
import { openSource } from "./source.js";
import { copyOf, fromFragment, same, toFragment } from "./state.js";
import { drawStream } from "./stream.js";
import { addSaveButtons } from "./takeaway.js";

const $ = (id) => document.getElementById(id);

class App {
  state = null;
  view = null;
  told = null;
  hovered = null;
  asking = null;
  channels = [];

  async start() {
    this.source = await openSource();
    document.body.classList.add("loading");
    this.controls = new Controls({
      onChange: (patch) => this.change(patch), onDraw: () => this.drawAnother(),
      onProblem: (field, words) => this.problem(field, words),
    });
    this.maps = new Maps($("maps"), {
      onHover: (query, arcs, model) => this.hover(query, { arcs, model }), onLeave: () => this.hover(this.query(), null),
      onArcs: (arcs) => this.look({ arcs }),
      modelName: (index) => modelName(this.state.models[index]),
    });
    this.player = new Player({ button: $("play"), speed: $("speed"), onStep: () => this.step(1) });
    document.querySelectorAll(".panel").forEach((panel) => addSaveButtons(panel, element));
    listen(this);
    if (matchMedia("(max-width: 900px)").matches) document.querySelectorAll(".group").forEach((group) => { group.open = false; });
    await this.begin();
  }

  async begin() {
    try {
      this.known = await this.source.models();
      this.cards = this.cards ?? new ModelCards($("models"), this.known, {
        onChange: (index, patch, whole) => this.changeModel(index, patch, whole), onTask: (index, model) => this.takeTask(index, model),
        onRemove: (index) => this.change({ models: this.state.models.filter((_, n) => n !== index) }), fixed: this.source.fixed,
      });
      if (this.source.fixed) this.notice("A saved page: sequences and models are fixed. Run `sih explore` to change everything.");
      const wanted = this.fromAddress();
      if (!(await this.request(wanted)) && !this.state) await this.request(this.firstState(), true);
    } catch (error) {
      this.fail(error.message);
    }
  }

  // What a visit without an address shows; in a saved page, what it was saved with.
  base() { return { ...fromFragment(""), ...(this.source.fixed ? this.source.record.state : {}) }; }

  firstState() { return { ...this.base(), ...(matchMedia("(max-width: 560px)").matches ? { zoom: 4 } : {}) }; }

  fragment() { return toFragment(this.state, this.base()); }

  fromAddress() {
    if (location.hash.length < 2) return this.firstState();
    try {
      return fromFragment(location.hash, this.base());
    } catch {
      this.notice("The address holds no state that can be read; this is the first one.");
      return this.firstState();
    }
  }

  // Ask for the view of a state; where it is refused, the last good one stays and the reason is said beside the control.
  async request(wanted, keepErrors = false) {
    this.asking?.abort();
    const asking = new AbortController();
    this.asking = asking;
    this.coming = wanted;
    const slow = setTimeout(() => { $("progress").hidden = false; }, 150);
    const begun = performance.now();
    try {
      const view = await fittedView(this, wanted, asking);
      if (this.asking !== asking) return false;
      if (!keepErrors) this.clearErrors();
      $("failure").hidden = true;
      this.state = wanted;
      this.view = view;
      findChannels(this);
      document.body.classList.remove("loading");
      this.drawAll();
      document.body.dataset.views = Number(document.body.dataset.views ?? 0) + 1;
      requestAnimationFrame(() => { document.body.dataset.latency = (performance.now() - begun).toFixed(1); });
      this.remember();
      certify(this);
      return true;
    } catch (error) {
      if (error.name === "AbortError") return false;
      if (error.field === null || error.field === undefined) this.fail(error.message);
      else this.problem(error.field, error.message);
      return false;
    } finally {
      clearTimeout(slow);
      if (this.asking === asking) {
        this.coming = null;
        $("progress").hidden = $("fitting").hidden = true;
      }
    }
  }

  change(patch) {
    if (this.source.fixed && !("seed" in patch || "models" in patch)) return;
    this.wanted = { ...(this.wanted ?? copyOf(this.state)), ...patch };
    const next = this.wanted;
    const task = ["lags", "states", "length", "matrix"].some((name) => name in patch);
    if (task || "seed" in patch) {
      next.edits = [];
      this.told = null;
      if (next.query !== null) next.query = Math.min(next.query, Math.max(0, (next.length || 1) - 1));
    }
    if (task) next.models = next.models.map((choice) => this.suited(choice, next));
    this.request(copyOf(next)).then((good) => { if (good && this.wanted === next) this.wanted = null; });
  }

  // A model for the new task: one that cannot follow gives way to the paper's circuit.
  suited(choice, next) {
    const trained = choice.kind === "trained" && !fits(this.known.trained.find(({ name }) => name === choice.name) ?? {}, next);
    if (trained || (choice.kind === "two-lags" && next.lags.length !== 2)) {
      this.notice(`${modelName(choice)} is for another task; the paper's circuit took its place.`);
      return {};
    }
    if (same(next.lags, this.state.lags)) return choice;
    const { heads, lam, ...kept } = choice;  // what fits one set of lags need not fit another
    return kept;
  }

  changeModel(index, patch, whole = false) {
    const models = copyOf((this.wanted ?? this.state).models);
    models[index] = whole ? patch : { ...models[index], ...patch };
    this.change({ models });
  }

  takeTask(index, model) {
    const patch = fits(model, this.state) ? {} : { lags: model.lags, states: model.states, matrix: model.matrix, length: Math.min(this.state.length, model.length) };
    const next = { ...this.state, ...patch };
    const models = this.state.models.map((choice, n) => (n === index ? { kind: "trained", name: model.name } : patch.lags ? this.suited(choice, next) : choice));
    this.wanted = null;
    this.change({ ...patch, models });
  }

  drawAnother() {
    const seeds = this.source.fixed ? this.source.record.seeds : null;
    const seed = seeds ? seeds[(seeds.indexOf(this.state.seed) + 1) % seeds.length] : this.state.seed + 1;
    this.change({ seed, revealed: false, query: null });
    $("sequence-panel").scrollIntoView({ block: "nearest" });
  }

  setToken(token) {
    if (this.source.fixed || token >= this.state.states) return;
    const query = this.query();
    const edits = this.state.edits.filter(([position]) => position !== query);
    this.change({ edits: [...edits, [query, token]].sort((a, b) => a[0] - b[0]) });
  }

  // Where the page looks: nothing to compute, only to draw.
  look(patch) {
    if (!this.state || Object.entries(patch).every(([name, entry]) => same(this.state[name], entry))) return;
    Object.assign(this.state, patch);
    if (this.wanted) Object.assign(this.wanted, patch);
    if (this.coming) Object.assign(this.coming, patch, "query" in patch ? { query: Math.min(patch.query, this.coming.length - 1) } : {});
    this.drawLook();
    this.remember();
  }

  // Pointing at a map's row: it becomes the query, and while it lasts the arcs are that head's.
  hover(query, head) {
    if (this.player.playing || (same(this.hovered, head) && query === this.query())) return;
    this.hovered = head;
    if (query === this.query()) this.drawLook();
    else this.look({ query });
  }

  query() { return this.state.query ?? Math.floor(this.state.length / 3); }

  step(by) {
    const next = this.query() + by;
    if (by > 0 && next >= this.state.length) {
      if (!this.player.playing) return false;
      if (this.justBegun) { this.justBegun = false; this.look({ query: 0 }); return true; }
      return false;
    }
    this.justBegun = false;
    if (next < 0) return false;
    this.look({ query: next });
    return next < this.state.length - 1;
  }

  // The positions shown: all, or a part around the query.
  window() {
    const { length, zoom } = this.state;
    const width = Math.max(Math.min(8, length), Math.ceil(length / zoom));
    const lo = Math.max(0, Math.min(length - width, this.query() - Math.floor(width * 0.7)));
    return { lo, hi: lo + width };
  }

  scene() {
    return { state: this.state, view: this.view, query: this.query(), window: this.window(), evidence: this.state.race === "evidence", veiled: !this.state.revealed, arcs: this.hovered?.arcs ?? this.state.arcs, arcsModel: this.hovered?.model ?? 0, channels: this.channels };
  }

  drawAll() {
    const { state, view } = this;
    this.controls.show(state, view, this.source.fixed);
    this.cards.show(state, view);
    $("compare").hidden = state.models.length === 2;
    const heads = headsOf(view.models[0]);
    const choices = ["all", ...new Set(heads.map(({ layer }) => String(layer))), ...heads.map(({ name }) => name)];
    $("arcs").replaceChildren(...choices.map((arcs) => new Option(arcsName(arcs), arcs)));
    if (!choices.includes(state.arcs)) state.arcs = "all";
    this.maps.rebuild(this.scene());
    this.drawLook(false);
  }

  drawLook(maps = true) {
    const scene = this.scene();
    document.body.classList.toggle("hidden-lag", scene.veiled);
    const write = (id, draw) => { $(id).innerHTML = draw(scene, $(id).clientWidth); };
    write("sequence", drawSequence);
    if (!scene.veiled) {
      write("race", drawRace);
      $("race-note").textContent = raceNote(scene);
      write("bars", drawBars);
      write("kl", drawKl);
    }
    if (!scene.veiled) drawChannels($("channels"), scene, (index) => modelName(this.state.models[index]));
    this.drawMixed(scene);
    if (maps) this.maps.redraw(scene);
    drawStream($("stream"), scene, (index) => modelName(this.state.models[index]));
    this.sayPosition(scene);
    this.showGuess();
    $("arcs").value = this.state.arcs;
    for (const race of ["weight", "evidence"]) $(`race-${race}`).setAttribute("aria-pressed", String(race === this.state.race));
    this.player.setSpeed(this.state.speed);
    $("zoom-level").textContent = `${this.state.zoom}×`;
  }

  // Only what the view, the offset, the zoom and the width change: not the position.
  drawMixed(scene) {
    const { state, view } = scene;
    const offsets = Math.max(0, ...view.models.map(({ heads }, m) => (mixedOf(view, m)?.weights.length ?? 0) / heads[1]));
    $("mixed-panel").hidden = offsets === 0;
    if (!offsets) return;
    Object.assign($("offset"), { max: offsets - 1, value: Math.min(state.offset, offsets - 1) });
    $("offset-value").textContent = Math.min(state.offset, offsets - 1);
    const key = JSON.stringify([state.offset, state.zoom, state.models, $("mixed").clientWidth, currentTheme().ink]);
    if (this.mixedView === view && this.mixedKey === key) return;
    Object.assign(this, { mixedView: view, mixedKey: key });
    drawMixed($("mixed"), scene, (index) => modelName(state.models[index]));
  }

  sayPosition({ query, state, view, veiled, arcs, arcsModel }) {
    const token = view.arrays.tokens[query];
    const last = view.models[arcsModel].heads.length;
    const keys = attended(this.scene(), arcsModel).filter(({ head }) => !(veiled && head.layer === last) && (arcs !== "all" || head.layer === last)).slice(-3).reverse();
    const looks = keys.map(({ key, weight }) => `${weight.toFixed(2)} to ${key}`).join(", ");
    $("position-line").replaceChildren("Position ", element("b", "", {}, String(query)), ", token ", element("b", "", {}, String(token)), looks ? `; ${arcsName(arcs === "all" ? String(last) : arcs)} looks ${looks}` : "");
    const slider = $("sequence");
    slider.setAttribute("aria-valuemax", String(state.length - 1));
    slider.setAttribute("aria-valuenow", String(query));
    slider.setAttribute("aria-valuetext", `position ${query}, token ${token}${looks ? `, looks ${looks}` : ""}`);
    $("stream-note").textContent = `Position ${query}. Bars stand at the index that holds the value; colours are the lags whose transition it is.${view.models.some(({ temper }) => temper < 0.1) ? " A tempered first layer keeps the evidence in small differences between nearly equal bars." : ""}`;
  }

  showGuess() {
    const { revealed, lags } = this.state;
    const key = JSON.stringify([revealed, lags, this.told, this.view.lag]);
    if (key === this.guessKey) return;
    this.guessKey = key;
    if (revealed) {
      const name = element("span", "told", {}, `lag ${this.view.lag}`);
      name.style.color = lagInk(this.view.lag);
      const judged = this.told === null ? "This sequence was made with " : this.told === this.view.lag ? "Right: it was made with " : `You said lag ${this.told}; it was made with `;
      $("guess").replaceChildren(judged, name);
      return;
    }
    const choices = lags.map((lag) => {
      const button = element("button", "lag", { type: "button" }, `lag ${lag}`);
      button.style.borderColor = lagColour(lag);
      button.addEventListener("click", () => { this.told = lag; this.look({ revealed: true }); });
      return button;
    });
    const reveal = element("button", "", { type: "button", id: "reveal" }, "Reveal");
    reveal.addEventListener("click", () => this.look({ revealed: true }));
    $("guess").replaceChildren("Which lag made it?", ...choices, reveal);
  }

  remember() {
    clearTimeout(this.remembering);
    this.remembering = setTimeout(() => history.replaceState(null, "", `#${this.fragment()}`), 120);
  }

  problem(field, words) {
    this.clearErrors();
    const parts = field.split(".");
    for (let size = parts.length; size > 0; size -= 1) {
      const place = document.querySelector(`[data-error-for="${parts.slice(0, size).join(".")}"]`);
      if (place) { place.textContent = words; return; }
    }
    this.notice(words);
  }

  clearErrors() { document.querySelectorAll("[data-error-for]").forEach((place) => { place.textContent = ""; }); }

  notice(words) {
    $("notice").textContent = words;
    $("notice").hidden = false;
    clearTimeout(this.noticing);
    this.noticing = setTimeout(() => { $("notice").hidden = true; }, 6000);
  }

  fail(words) {
    $("failure").querySelector("span").textContent = words;
    $("failure").hidden = false;
  }

  second() {
    if (this.known.saved) return (this.known.saved.find(({ choice }) => choice.kind === "bayes") ?? this.known.saved[0]).choice;
    return this.state.models[0].kind === "bayes" ? {} : { kind: "bayes" };
  }

  zoom(factor) {
    this.look({ zoom: Math.max(1, Math.min(16, this.state.zoom * factor)) });
  }

}

const app = new App();
app.start();
