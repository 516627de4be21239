// What differs between two checkpoints, as data: no document, no network. `a` and `b` are the two throughout, and a
// row's `state` is "a" or "b" where only that one has it, else "changed", "resized" (in numbers only) or "equal".

const FIELDS = ["layout", "shape", "location", "condition"];
const LEAST_LIKENESS = 0.15;

/** The position in `checkpoint.kinds` of the kind that `block` is of. */
export function kindAt({ kinds }, block) {
  return Math.max(kinds.findIndex(({ blocks }) => blocks.includes(block)), 0);
}

/** The first blocks of the two kinds that are most alike: in their mixers, then attention type, then MLP. */
export function align(a, b) {
  const pairs = a.kinds.flatMap((one) => b.kinds.map((other) => {
    const traits = [mixers, (kind) => kind.attention_type, routes];
    const alike = traits.map((trait) => trait(one) === trait(other));
    const blocks = [one.blocks[0], other.blocks[0]];
    return { blocks, alike: alike.reduce((score, yes) => 2 * score + yes, 0), depth: blocks[0] + blocks[1] };
  }));
  pairs.sort((one, other) => other.alike - one.alike || one.depth - other.depth);
  return pairs[0]?.blocks ?? [0, 0];
}

/** The records' entries by name, as rows `{ name, a, b, state }`; those of `a` first. */
export function records(a, b) {
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].map((name) => {
    const alone = name in b ? name in a ? null : "b" : "a";
    return { name, a: a[name], b: b[name], state: alone ?? (same(a[name], b[name]) ? "equal" : "changed") };
  });
}

/** A config with nested keys as `rope_parameters.rope_theta`; lists stay whole. */
export function flat(config, prefix = "") {
  return Object.fromEntries(Object.entries(config).flatMap(([key, value]) => {
    const nested = value && typeof value === "object" && !Array.isArray(value) && Object.keys(value).length;
    return nested ? Object.entries(flat(value, `${prefix}${key}.`)) : [[prefix + key, value]];
  }));
}

/**
 * Values by host, `{ host, expression, rows }`. A row has in `a` and `b` what is seen of the value on the two kinds,
 * and in `fields` the names of what differs.
 */
export function values(a, b, [kindA, kindB]) {
  const names = [...new Set([...a.hosts, ...b.hosts].map(({ name }) => name))];
  return names.map((name) => {
    const [one, other] = [a, b].map(({ hosts }) => hosts.find((host) => host.name === name));
    const rows = records(valuesOf(one, kindA), valuesOf(other, kindB)).map(judged);
    return { host: name, expression: (one ?? other).host, rows };
  });
}

/** The parts of two diagrams, from the cards of their pages: rows as those of `values`, and `node` as `[idA, idB]`. */
export function parts(a, b, [kindA, kindB]) {
  const rows = records(partsOf(a, kindA), partsOf(b, kindB));
  return rows.map((row) => ({ ...judged(row), node: [row.a?.node, row.b?.node] }));
}

/** Slugs of the quirks of both, and of one alone. */
export function quirks(a, b) {
  const without = (some, others) => some.quirks.filter((slug) => !others.quirks.includes(slug));
  return { both: a.quirks.filter((slug) => b.quirks.includes(slug)), a: without(a, b), b: without(b, a) };
}

/** What a whole model amounts to, by name: parameters, sizes, kinds of blocks and, where the facts have them, costs. */
export function modelFacts({ parameters, sizes, kinds, costs }) {
  const stack = kinds.map(({ label, blocks }) => `${blocks.length} × ${label}`).join("; ");
  const cost = costs && [
    ...Object.entries(costs.weight_bytes).map(([dtype, { amount }]) => [`bytes of weights, ${dtype}`, amount]),
    ...(costs.cache ? [["bytes of cache per token", costs.cache.per_token.amount]] : []),
    ["operations per token", costs.flops_per_token.amount],
    ["operations per token attended to", costs.flops_per_token_of_context.amount],
  ];
  return {
    ...(parameters && { "parameters": parameters.total, "active per token": parameters.active }), ...sizes,
    ...(stack && { "kinds of blocks": stack }),
    ...Object.fromEntries(cost ?? []),
  };
}

/** What a block of the kind at `index` amounts to, by name. */
export function blockFacts({ kinds }, index) {
  const { label, blocks, attention_type, modules, sizes, identity, identity_error, parameters } = kinds[index];
  const all = kinds.reduce((sum, kind) => sum + kind.blocks.length, 0);
  const held = identity_error === 0 ? "exact" : identity_error?.toExponential(1) ?? "not checked";
  return {
    "identity": identity ?? "no exact sum", ...(identity && { "its largest error": held }),
    "kind": label, "blocks of this kind": `${blocks.length} of ${all}`, "attention type": attention_type, ...sizes,
    ...Object.fromEntries((parameters ?? []).map(({ role, total }) => [`parameters, ${role}`, total])),
    ...Object.fromEntries(Object.entries(modules).map(([host, name]) => [`class of ${host}`, name])),
  };
}

/** How many of `rows` are in each state. */
export function tally(rows) {
  const counts = { changed: 0, a: 0, b: 0, resized: 0, equal: 0 };
  for (const { state } of rows) counts[state] += 1;
  return counts;
}

/** The multiple of `a` that `b` is, such as `×1.5`; an empty string where it says nothing. */
export function ratio(a, b) {
  if (typeof a !== "number" || typeof b !== "number" || a === b || a <= 0 || b <= 0) return "";
  return `×${(b / a).toLocaleString("en", { maximumSignificantDigits: b / a < 100 ? 2 : 3 })}`;
}

/** Those of `ids` that share most pairs of letters with `asked`, best first. */
export function nearest(asked, ids, most = 3) {
  const likeness = (one, other) => 2 * [...one].filter((pair) => other.has(pair)).length / (one.size + other.size || 1);
  const wanted = letterPairs(asked);
  const found = ids.map((id) => ({ id, likely: likeness(letterPairs(id), wanted) }));
  const ranked = found.filter(({ likely }) => likely > LEAST_LIKENESS).sort((one, other) => other.likely - one.likely);
  return ranked.slice(0, most).map(({ id }) => id);
}

function valuesOf(host, kind) {
  return Object.fromEntries((host?.values ?? []).map((value) => [value.name, {
    layout: layoutOf(value),
    shape: value.shapes[kind] ?? null,
    location: value.location === "derived" ? value.where : value.location,
    condition: value.condition,
  }]));
}

function partsOf(cards, kind) {
  const found = {};
  for (const card of cards.filter(({ id, kinds }) => kinds.includes(kind) && !id.startsWith("strip."))) {
    const row = (name) => card.rows?.find(({ label }) => label === name);
    const place = row("read at");
    // Norms have other native names in every family: one that gives a standard value is paired by that.
    const name = card.id.startsWith("norm.") && card.layout ? card.expression : card.id;
    found[name in found ? card.id : name] = {
      node: card.id, card,
      layout: layoutOf(card),
      shape: card.shapes?.[kind] ?? null,
      location: place?.code ?? place?.text ?? null,
      condition: row("needs")?.text ?? null,
      // A module, an add and a gate are what is said of them.
      said: !card.layout || /^(add|gate)\./.test(card.id) ? card.description : null,
      class: row("class")?.text ?? null,
    };
  }
  return found;
}

function layoutOf({ layout, dims }) {
  return layout ? `${layout} [${dims.join(" ")}]` : null;
}

/** `row` with what differs in it. */
function judged(row) {
  const { a, b } = row;
  if (!a || !b) return { ...row, fields: [] };
  const fields = FIELDS.filter((field) => !same(a[field], b[field]));
  const wordless = (text) => text?.replace(/\d+/g, "#");
  if (a.said !== b.said) fields.push(wordless(a.said) === wordless(b.said) ? "size" : "said");
  const inNumbers = !a.shape === !b.shape && fields.every((field) => ["shape", "size"].includes(field));
  return { ...row, fields, state: fields.length ? (inNumbers ? "resized" : "changed") : "equal" };
}

function mixers({ sublayers }) {
  return sublayers.map(({ host }) => host).filter((host) => host !== "mlp").join();
}

function routes({ sublayers }) {
  return sublayers.some(({ parts: panels }) => panels.length);
}

function letterPairs(text) {
  const letters = text.toLowerCase();
  return new Set([...letters].slice(1).map((letter, at) => letters[at] + letter));
}

function same(a, b) {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}
