// Where views come from: the server that sent this page, or, in a saved page, the page itself.

import { unpack } from "./data.js";
import { same } from "./state.js";

class Refused extends Error {
  constructor(message, field, status) { super(message); Object.assign(this, { field, status }); }
}

async function ask(path, body, signal) {
  const options = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let answer;
  try {
    answer = await fetch(path, { ...options, signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused("The server does not answer. Is `sih explore` still running?", null);
  }
  if (!answer.ok) {
    const told = await answer.json().catch(() => ({ error: `The server answered ${answer.status}.`, field: null }));
    throw new Refused(told.error, told.field, answer.status);
  }
  return answer;
}

class Server {
  fixed = false;
  async models() { return (await ask("api/models")).json(); }
  async view(state, signal) { return unpack(await (await ask("api/view", state, signal)).arrayBuffer()); }
  async certificate(state, model, signal) { return (await ask("api/certificate", { state, model }, signal)).json(); }
  async channels(state, model, signal) { return unpack(await (await ask("api/channels", { state, model }, signal)).arrayBuffer()); }
  async fit(state, model, signal) { await ask("api/fit", { state, model }, signal); }
  async python(state) { return (await ask("api/python", state)).text(); }
}

// A saved page: a few sequences, each with every model, a view a pair of them (`export.py`).
class Saved {
  fixed = true;
  constructor(record) { this.record = record; this.views = new Map(); }

  async models() { return { circuits: [], trained: [], saved: this.record.models }; }

  async part(sequence, model, of = "views") {
    const key = `${of}.${sequence}.${model}`;
    if (!this.views.has(key)) {
      const packed = Uint8Array.from(atob(this.record[of][`${sequence}.${model}`]), (c) => c.charCodeAt(0));
      const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
      this.views.set(key, unpack(await new Response(stream).arrayBuffer()));
    }
    return this.views.get(key);
  }

  places(state) {
    const sequence = this.record.seeds.indexOf(state.seed);
    const models = state.models.map((model) => this.record.models.findIndex(({ choice }) => same(choice, model)));
    if (sequence < 0 || models.some((m) => m < 0)) throw new Refused("This saved page does not hold that sequence or model.", "seed");
    return { sequence, models };
  }

  async view(state) {
    const { sequence, models } = this.places(state);
    const parts = await Promise.all(models.map((model) => this.part(sequence, model)));
    const arrays = { ...parts[0].arrays };
    parts.slice(1).forEach((part, n) => {
      for (const [name, array] of Object.entries(part.arrays)) {
        const own = name.match(/^(\w+)\/0(\/.*)?$/);
        if (own) arrays[`${own[1]}/${n + 1}${own[2] ?? ""}`] = array;
      }
    });
    return { ...parts[0], models: parts.map((part) => part.models[0]), arrays };
  }

  async channels(state, model) {
    const { sequence, models } = this.places(state);
    const { refused } = this.record.models[models[model]];
    if (refused) throw new Refused(refused, `models.${model}`);
    return this.part(sequence, models[model], "channels");
  }

  async certificate(state, model) { return this.record.models[this.places(state).models[model]].certificate; }

  async python(state) {
    const { sequence, models } = this.places(state);
    const query = state.query ?? Math.floor(state.length / 3);
    return this.record.python[[sequence, ...models].join(".")].replace(/^query = .*$/m, `query = ${query}`);
  }
}

export async function openSource() {
  const saved = document.getElementById("saved");
  return saved ? new Saved(JSON.parse(saved.textContent)) : new Server();
}
