// A view as the server packs it (`view_bytes.py`): a JSON header, then arrays.

const ARRAYS = { uint8: Uint8Array, uint16: Uint16Array, float32: Float32Array };
const FULL = 65535;

export function unpack(buffer) {
  const size = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  const arrays = {};
  for (const { name, type, shape, offset } of header.arrays) {
    arrays[name] = new ARRAYS[type](buffer, 4 + size + offset, shape.reduce((a, b) => a * b, 1));
  }
  return { ...header, arrays };
}

// The heads of a model in the order of its attention array: {name, layer, index}.
export function headsOf(model) {
  const heads = [];
  model.heads.forEach((count, layer) => {
    for (let h = 0; h < count; h += 1) heads.push({ name: `${layer + 1}.${h + 1}`, layer: layer + 1, index: heads.length });
  });
  return heads;
}

// Attention of one head from a query, as a function of the key.
export function attention(view, model, head, length) {
  const all = view.arrays[`attention/${model}`];
  const start = head * length * length;
  return (query, key) => all[start + query * length + key] / FULL;
}

// What a head pays a key, or, where it rests on position 0 or on a start token, what it pays the others beside the most that it pays one.
export function attentionBeside(view, model, head, length) {
  const whole = attention(view, model, head.index, length);
  const others = head.layer === 2 ? view.arrays[`beside/${model}`] : undefined;
  const start = (head.index - view.models[model].heads[0]) * length * length;
  const first = view.models[model].start ? 0 : 1;  // the first key whose attention is relative
  return others ? (query, key) => (key >= first ? others[start + query * length + key] / FULL : whole(query, key)) : whole;
}

// What a head pays the start token from a query, 0 where the model has none.
export const startOf = (view, model, head, query, length) => view.arrays[`start/${model}`]?.[head * length + query] ?? 0;

// The lag that a key votes for in a head between the first layer and the last, null for none.
export function votedLag(channels, head, query, key, { length, lags }, way = "votes") {
  const index = channels?.heads ? channels.heads.indexOf(head) : -1;
  return index < 0 ? null : lags[channels.arrays[`lag/${way}`][(index * length + query) * length + key] - 1] ?? null;
}

// Row `index` of an array of `width` columns.
export const row = (array, index, width) => array.subarray(index * width, (index + 1) * width);

// From where on, up to `now`, one lag has led with nine tenths of the weight; null if none does now.
export function decision(logWeights, lags, now) {
  let since = null;
  let leader = -1;
  for (let i = 0; i <= now; i += 1) {
    const weights = row(logWeights, i, lags.length);
    const best = weights.indexOf(Math.max(...weights));
    const sure = weights[best] >= Math.log(0.9);
    if (!sure) since = null;
    else if (since === null || best !== leader) since = i;
    leader = best;
  }
  return since === null ? null : { at: since, lag: lags[leader] };
}
