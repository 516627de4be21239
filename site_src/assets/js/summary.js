// What differs between two checkpoints, in sentences; backticks set code.

import { flat, quirks, records, tally, values } from "./comparison.js";
import { amount } from "./format.js";

/** What differs between `a` and `b` on the two kinds; `names` are those of the two. */
export function summary(a, b, kinds, names) {
  const config = configs(a, b, names);
  if (!a.kinds.length || !b.kinds.length) return [config];
  const hosts = values(a, b, kinds);
  return [
    shared(hosts), ...unshared(hosts, names), sums(a, b, kinds, names), ...weights(a, b, names), carried(a, b, names),
    config,
  ];
}

/** `1 value`, `40 values`. */
export function count(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

function shared(hosts) {
  const rows = hosts.flatMap((host) => host.rows).filter((row) => row.a && row.b);
  const differing = (field) => rows.filter(({ fields }) => fields.includes(field));
  const here = ({ a, b }) => !a.shape === !b.shape;
  const shaped = differing("shape");
  const elsewhere = differing("location").length;
  const how = [
    [differing("layout").length, "has another layout", "have another layout"],
    [differing("condition").length, "comes on another condition", "come on other conditions"],
    [shaped.filter((row) => !here(row)).length, "stands in one of the blocks only", "stand in one of the blocks only"],
    [shaped.filter(here).length, "has another shape", "have another shape"],
  ];
  const words = how.filter(([number]) => number).map(([number, one, many]) => `${number} ${number === 1 ? one : many}`);
  const said = listed([`${some(elsewhere)} read elsewhere`, ...words]);
  return `Of ${count(rows.length, "value")} that both have, ${said}.`;
}

function unshared(hosts, names) {
  const counts = tally(hosts.flatMap(({ rows }) => rows));
  const said = ["a", "b"].flatMap((side, at) => {
    if (!counts[side]) return [];
    const which = listed(hosts.flatMap((host) => alone(host, side)));
    return [`${count(counts[side], "value")} ${counts[side] === 1 ? "is" : "are"} only in ${names[at]}: ${which}.`];
  });
  return said.length ? said : ["Neither has a value that the other lacks."];
}

/** Names of the values of `host` that only `side` has; one for all where the other has no such host. */
function alone({ host, rows }, side) {
  const own = rows.filter(({ state }) => state === side);
  if (own.length > 1 && own.length === rows.length) return [`all ${own.length} of \`${host}\``];
  return own.map(({ name }) => `\`${name}\``);
}

function sums(a, b, [kindA, kindB], names) {
  const [one, other] = [a.kinds[kindA].identity, b.kinds[kindB].identity];
  if (!one && !other) return "For neither block an exact sum is known.";
  if (!one || !other) return `An exact sum is known for the block of ${names[one ? 0 : 1]} only.`;
  return one === other ? "The two blocks add up alike." : "The two blocks add up differently.";
}

function weights(a, b, names) {
  if (!a.parameters || !b.parameters) return [];
  const [one, other] = [a, b].map(({ parameters: { total, active } }) =>
    `${amount(total)} parameters, ${total === active ? "all" : amount(active)} active per token`);
  return [`${names[0]} has ${one}; ${names[1]} ${other}.`];
}

function carried(a, b, names) {
  const { both, a: mine, b: yours } = quirks(a, b);
  const [one, other] = [mine, yours].map((own) => own.length || "none");
  return `${count(both.length, "quirk")} ${both.length === 1 ? "is" : "are"} carried by both; `
    + `${names[0]} has ${one} of its own, ${names[1]} ${other}.`;
}

function configs(a, b, names) {
  const { equal, changed, a: mine, b: yours } = tally(records(flat(a.config), flat(b.config)));
  const differ = `${changed || "none"} ${changed > 1 ? "differ" : "differs"}`;
  return `Of ${count(equal + changed, "config key")} that both have, ${differ}; `
    + `${some(mine)} only in ${names[0]}, ${yours || "none"} only in ${names[1]}.`;
}

function some(number) {
  return `${number || "none"} ${number > 1 ? "are" : "is"}`;
}

function listed(words) {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}
