// What the page asks for around a view: fits before it, channels and certificates after it.

import { copyOf, same } from "./state.js";

const $ = (id) => document.getElementById(id);
const pause = (milliseconds) => new Promise((done) => { setTimeout(done, milliseconds); });

// A view, and before it the fits that its circuits need, which take seconds and are kept; all else stays as it is.
export async function fittedView(app, wanted, asking) {
  for (;;) {
    try {
      return await app.source.view(wanted, asking.signal);
    } catch (error) {
      if (error.status !== 409) throw error;
      const index = Number(error.field.split(".")[1]);
      const heads = wanted.models[index].heads ?? 1;
      const what = heads === 1 ? "one head that is" : `${heads} heads that are`;
      $("fitting").textContent = `Fitting ${what} read from both sides, for the lags ${wanted.lags.join(", ")} and ${wanted.length} tokens: some seconds, once.${app.view ? " What you see is still the last view." : ""}`;
      $("fitting").hidden = false;
      await pause(300);  // a slider on its way passes without a fit
      if (app.asking !== asking) throw new DOMException("another view is wanted", "AbortError");
      await app.source.fit(wanted, index, asking.signal);
    }
  }
}

// The channels of each model follow the view. Until they come, those of the last sequence stay, as `stale`.
export function findChannels(app) {
  app.finding?.abort();
  const finding = new AbortController();
  app.finding = finding;
  const state = copyOf(app.state);
  const { lags, states, length, matrix, seed, edits } = state;
  app.channels = state.models.map((model, index) => {
    const last = app.channels[index];
    const of = { lags, states, length, matrix, seed, edits, model };
    if (last && !last.stale && same(last.of, of)) return last;
    ask(app, state, index, finding, of);
    const alike = last?.heads && same([last.of.lags, last.of.length, last.of.model], [lags, length, model]);
    return alike ? { ...last, stale: true } : undefined;
  });
}

async function ask(app, state, index, finding, of) {
  await pause(60);
  if (app.finding !== finding) return;
  let found;
  try {
    found = await app.source.channels(state, index, finding.signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    found = { refused: error.message };
  }
  if (app.finding !== finding) return;
  app.channels[index] = { ...found, of };
  app.drawLook();
}

// A certificate is about the weights: the tokens do not matter.
export function certify(app) {
  const { lags, states, length, matrix, models } = app.state;
  const weights = JSON.stringify({ lags, states, length, matrix, models });
  if (weights === app.certified) return;
  app.certified = weights;
  clearTimeout(app.certifying);
  models.forEach((choice, index) => {
    if (choice.kind === "trained") app.cards.say(index, "Learned, not written: there is no closed form to check it against.");
    else app.cards.say(index, "Checking the certificate…");
  });
  const state = copyOf(app.state);
  app.certifying = setTimeout(() => state.models.forEach(async (choice, index) => {
    if (choice.kind === "trained") return;
    try {
      const found = await app.source.certificate(state, index);
      if (app.certified === weights) app.cards.showVerdict(index, found);
    } catch (error) {
      if (app.certified === weights) app.cards.say(index, `No certificate: ${error.message}`);
    }
  }), 350);
}
