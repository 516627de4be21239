// What differs between two checkpoints, as data: no document, no network. `a` and `b` are the two throughout, and a
// row's `state` is "a" or "b" where only that one has it, else "changed", "resized" or "equal".

/** What of a value is compared, in the order in which it is shown. */
const FIELDS = ["layout", "shape", "location", "condition"];

/** The position in `checkpoint.kinds` of the kind that `block` is of. */
export function kindAt(checkpoint, block) {
  return Math.max(checkpoint.kinds.findIndex(({ blocks }) => blocks.includes(block)), 0);
}

/** The first blocks of the two kinds that are most alike: mixer first, then attention type, then MLP. */
export function align(a, b) {
  const pairs = a.kinds.flatMap((one) => b.kinds.map((other) => ({
    blocks: [one.blocks[0], other.blocks[0]],
    alike: 4 * (mixer(one) === mixer(other)) + 2 * (one.attention_type === other.attention_type) + (mlp(one) === mlp(other)),
  })));
  pairs.sort((one, other) => other.alike - one.alike || sum(one.blocks) - sum(other.blocks));
  return pairs[0]?.blocks ?? [0, 0];
}

/** The records' entries by name: `{ name, a, b, state }`, those of `a` first. */
export function records(a, b) {
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  return names.map((name) => {
    const alone = !(name in b) ? "a" : !(name in a) ? "b" : null;
    return { name, a: a[name], b: b[name], state: alone ?? (same(a[name], b[name]) ? "equal" : "changed") };
  });
}

/** A config with nested keys as `rope_parameters.rope_theta`; lists stay whole. */
export function flat(config, prefix = "") {
  return Object.fromEntries(Object.entries(config).flatMap(([key, value]) =>
    (value && typeof value === "object" && !Array.isArray(value) && Object.keys(value).length
      ? Object.entries(flat(value, `${prefix}${key}.`)) : [[prefix + key, value]])));
}

/** Values by host: `{ host, expression, rows }`, a row being `{ name, a, b, state, fields }` with what is seen of each
    value on the two kinds, and the names of the fields that differ. */
export function values(a, b, [kindA, kindB]) {
  const names = [...new Set([...a.hosts, ...b.hosts].map(({ name }) => name))];
  return names.map((host) => {
    const [one, other] = [a, b].map((checkpoint) => checkpoint.hosts.find(({ name }) => name === host));
    const rows = records(seen(one, kindA), seen(other, kindB)).map((row) => ({ ...row, ...judged(row) }));
    return { host, expression: (one ?? other).host, rows };
  });
}

/** The parts of two diagrams from the cards of their pages: rows as those of `values`, with `node` as `[idA, idB]`. */
export function parts(a, b, [kindA, kindB]) {
  const rows = records(partsOf(a, kindA), partsOf(b, kindB));
  return rows.map((row) => ({ ...row, node: [row.a?.node, row.b?.node], ...judged(row) }));
}

/** Slugs in both, and in one alone. */
export function quirks(a, b) {
  const without = (some, others) => some.quirks.filter((slug) => !others.quirks.includes(slug));
  return { both: a.quirks.filter((slug) => b.quirks.includes(slug)), a: without(a, b), b: without(b, a) };
}

/** Parameters and what they cost, as far as the facts say, by name. */
export function costs({ parameters, costs: figures }) {
  const named = {};
  if (parameters) Object.assign(named, { "parameters": parameters.total, "active per token": parameters.active });
  for (const [dtype, { amount }] of Object.entries(figures?.weight_bytes ?? {})) named[`bytes of weights, ${dtype}`] = amount;
  if (figures?.cache) named["bytes of cache per token"] = figures.cache.per_token.amount;
  if (figures) named["operations per token"] = figures.flops_per_token.amount;
  if (figures) named["operations per token attended to"] = figures.flops_per_token_of_context.amount;
  return named;
}

/** How many of `rows` are in each state. */
export function tally(rows) {
  const counts = { changed: 0, a: 0, b: 0, resized: 0, equal: 0 };
  for (const { state } of rows) counts[state] += 1;
  return counts;
}

/** What differs, in sentences; `names` are those of the two. */
export function summary(a, b, kinds, names) {
  const keys = records(flat(a.config), flat(b.config));
  const told = tally(keys);
  const config = `Of ${count(told.equal + told.changed, "config key")} that both have, ${told.changed || "none"} ${told.changed > 1 ? "differ" : "differs"}; `
    + `${told.a || "none"} ${told.a > 1 ? "are" : "is"} only in ${names[0]}, ${told.b || "none"} only in ${names[1]}.`;
  if (!a.kinds.length || !b.kinds.length) return [config];
  const rows = values(a, b, kinds).flatMap((host) => host.rows);
  const shared = rows.filter((row) => row.a && row.b);
  const elsewhere = shared.filter(({ fields }) => fields.includes("location")).length;
  const there = ({ a: one, b: other }) => !one.shape === !other.shape;
  const how = [
    [shared.filter(({ fields }) => fields.includes("layout")).length, "has another layout", "have another layout"],
    [shared.filter(({ fields }) => fields.includes("condition")).length, "comes on another condition", "come on other conditions"],
    [shared.filter((row) => !there(row)).length, "stands in one of the two blocks only", "stand in one of the two blocks only"],
    [shared.filter((row) => row.fields.includes("shape") && there(row)).length, "has another shape", "have another shape"],
  ].filter(([number]) => number).map(([number, one, many]) => `${number} ${number === 1 ? one : many}`);
  const alone = ["a", "b"].map((side) => rows.filter((row) => row.state === side).map(({ name }) => name));
  const only = alone.flatMap((some, side) => (some.length
    ? [`${count(some.length, "value")} ${some.length === 1 ? "is" : "are"} only in ${names[side]}: ${listed(some.map((name) => `\`${name}\``))}.`] : []));
  const [one, other] = [a.kinds[kinds[0]].identity, b.kinds[kinds[1]].identity];
  const carried = quirks(a, b);
  const [mine, yours] = [carried.a, carried.b].map((some) => some.length || "none");
  return [
    `Of ${count(shared.length, "value")} that both have, ${listed([`${elsewhere || "none"} ${elsewhere > 1 ? "are" : "is"} read elsewhere`, ...how])}.`,
    ...(only.length ? only : ["Neither has a value that the other lacks."]),
    one === other ? (one ? "The two blocks add up alike." : "For neither block an exact sum is known.")
      : one && other ? "The two blocks add up differently." : `An exact sum is known for ${names[one ? 0 : 1]} only.`,
    ...(a.parameters && b.parameters ? [`${names[0]} has ${weighed(a.parameters)}, ${names[1]} ${weighed(b.parameters)}.`] : []),
    `${count(carried.both.length, "quirk")} ${carried.both.length === 1 ? "is" : "are"} carried by both; ${names[0]} has ${mine} of its own, ${names[1]} ${yours}.`,
    config,
  ];
}

/** A count for reading: `33.4 B`. */
export function amount(number) {
  const [unit, size] = [["T", 1e12], ["B", 1e9], ["M", 1e6], ["K", 1e3], ["", 1]].find(([, least]) => number >= least) ?? ["", 1];
  return `${(number / size).toFixed(number / size >= 100 || !unit ? 0 : 1)} ${unit}`.trim();
}

/** How many times `a` the number `b` is, such as `×1.5`; an empty string where that says nothing. */
export function ratio(a, b) {
  if (typeof a !== "number" || typeof b !== "number" || a === b || a <= 0 || b <= 0) return "";
  return `×${Number((b / a).toPrecision(b / a >= 100 ? 3 : 2)).toLocaleString("en", { maximumSignificantDigits: 3 })}`;
}

/** Those of `ids` that share most letter pairs with `asked`, best first. */
export function nearest(asked, ids, most = 3) {
  const pairs = (text) => new Set([...text.toLowerCase()].slice(1).map((letter, at) => text[at].toLowerCase() + letter));
  const wanted = pairs(asked);
  const likeness = (id) => {
    const own = pairs(id);
    return 2 * [...own].filter((pair) => wanted.has(pair)).length / (own.size + wanted.size || 1);
  };
  return ids.map((id) => [likeness(id), id]).filter(([likely]) => likely > 0.15)
    .sort((one, other) => other[0] - one[0]).slice(0, most).map(([, id]) => id);
}

/** `1 value`, `40 values`. */
export function count(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

function listed(words) {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

function weighed({ total, active }) {
  return `${amount(total)} parameters, ${total === active ? "all" : amount(active)} active per token`;
}

function seen(host, kind) {
  return Object.fromEntries((host?.values ?? []).map((value) => [value.name, {
    layout: value.layout && `${value.layout} [${value.dims.join(" ")}]`,
    shape: value.shapes[kind] ?? null,
    location: value.location === "derived" ? value.where : value.location,
    condition: value.condition,
  }]));
}

function partsOf(cards, kind) {
  const found = {};
  for (const card of cards) {
    if (!card.kinds.includes(kind) || card.id.startsWith("strip.")) continue;
    const row = (label) => card.rows?.find((entry) => entry.label === label);
    const place = row("read at");
    // What is no value is told apart by what is said of it; what only counts otherwise there is another size.
    const said = !card.layout || /^(add|gate)\./.test(card.id) ? card.description : null;
    // Norms have other native names in every family; where one gives a standard value, that is what it is paired by.
    const name = card.id.startsWith("norm.") && card.layout ? card.expression : card.id;
    found[name in found ? card.id : name] = {
      node: card.id, card, class: row("class")?.text ?? null, said,
      layout: card.layout ? `${card.layout} [${card.dims.join(" ")}]` : null,
      shape: card.shapes?.[kind] ?? null,
      location: place ? place.code ?? place.text : null,
      condition: row("needs")?.text ?? null,
    };
  }
  return found;
}

function judged({ a, b, state }) {
  if (!a || !b) return { state, fields: [] };
  const fields = FIELDS.filter((field) => !same(a[field] ?? null, b[field] ?? null));
  const plain = (text) => text?.replace(/\d+/g, "#");
  if ((a.said ?? null) !== (b.said ?? null)) fields.push(plain(a.said) === plain(b.said) ? "size" : "said");
  const sized = fields.every((field) => ["shape", "size"].includes(field)) && (a.shape === null) === (b.shape === null);
  return { state: !fields.length ? "equal" : sized ? "resized" : "changed", fields };
}

function mixer({ sublayers }) {
  return sublayers.map(({ host }) => host).filter((host) => host !== "mlp").join();
}

function mlp({ sublayers }) {
  return sublayers.find(({ host }) => host === "mlp")?.parts.length > 0;
}

function same(a, b) {
  return a === b || JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
}

function sorted(value) {
  if (!value || typeof value !== "object" || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}

function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}
