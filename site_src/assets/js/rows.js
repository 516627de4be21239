// Tables of two columns, row by row: what differs first, equal rows folded behind their number.

import { ratio } from "./comparison.js";
import { dotted, make } from "./elements.js";
import { count } from "./summary.js";

const LONG_LIST = 7;
const NAMED_ENTRIES = 4;
const FIELDS = ["layout", "shape", "location", "condition"];

let folds = 0;

/**
 * A table of `rows`. `cells(row)` gives the contents of the two columns, or of one for both where they are equal;
 * `equals` is what an equal row is called.
 */
export function table(label, names, rows, cells, equals = "equal row") {
  const of = (...states) => states.flatMap((state) =>
    rows.filter((row) => row.state === state).map((row) => line(row, cells(row))));
  const [resized, equal] = [of("resized"), of("equal")];
  return make("table", { class: "compare-table" },
    make("caption", typeof label === "string" ? { class: "visually-hidden" } : {}, label),
    make("thead", {}, make("tr", {}, make("td", {}), ...names.map((name) => make("th", { scope: "col" }, name)))),
    make("tbody", {}, ...of("changed", "a", "b")),
    ...folded(resized, `${count(resized.length, "value")} of another shape only`, true),
    ...folded(equal, count(equal.length, equals), false));
}

/** The two columns of a row of plain values; a number in the second is also told as a multiple of the first. */
export function plain({ name, a, b, state }, text) {
  if (state === "equal") return [[text(a)]];
  // A token's id is a name and no amount.
  const times = name.endsWith("_id") ? "" : ratio(a, b);
  const more = times ? [make("span", { class: "compare-ratio" }, ` ${times}`)] : [];
  return [state === "b" ? [none()] : [text(a)], state === "a" ? [none()] : [text(b), ...more]];
}

/** The two columns of a row of values: what of them differs, or all of what one alone has. */
export function value({ a, b, state, fields }) {
  if (state === "equal") return [seen(a, ["shape", "location"])];
  return [a, b].map((one) => (one ? seen(one, a && b ? fields : FIELDS, fields) : [none()]));
}

/** A value of a config as it is written there; a long list by what it holds. */
export function shown(entry) {
  if (typeof entry === "string") return entry;
  const text = JSON.stringify(entry) ?? "";
  if (!Array.isArray(entry) || entry.length < LONG_LIST) return text.replaceAll(",", ", ");
  const counts = new Map();
  for (const item of entry) counts.set(JSON.stringify(item), (counts.get(JSON.stringify(item)) ?? 0) + 1);
  const named = [...counts].slice(0, NAMED_ENTRIES).map(([item, times]) => `${times} × ${item}`);
  const gist = `${entry.length}: ${named.join(", ")}${counts.size > NAMED_ENTRIES ? ", …" : ""}`;
  return make("details", {}, make("summary", {}, gist), make("code", {}, text.replaceAll(",", ", ")));
}

/** A number with its thousands set apart, or what it is otherwise. */
export function figure(entry) {
  return typeof entry === "number" ? entry.toLocaleString("en") : shown(entry);
}

function line(row, columns) {
  const wide = columns.length === 1 ? { colspan: "2" } : {};
  return make("tr", { "data-row": row.name, "data-state": row.state },
    make("th", { scope: "row" }, ...broken(row.name)), ...columns.map((column) => make("td", wide, ...column)));
}

function folded(lines, words, open) {
  if (!lines.length) return [];
  const id = `compare-fold-${folds++}`;
  const button = make("button", { "type": "button", "class": "compare-fold", "aria-controls": id }, words);
  button.setAttribute("aria-expanded", String(open));
  const body = make("tbody", { id }, ...lines);
  body.hidden = !open;
  button.addEventListener("click", () => {
    body.hidden = !body.hidden;
    button.setAttribute("aria-expanded", String(!body.hidden));
  });
  return [make("tbody", { class: "compare-folded" }, make("tr", {}, make("td", { colspan: "3" }, button))), body];
}

function seen({ layout, shape, location, condition }, kept, differing = []) {
  const said = {
    layout: layout ?? "plain Python value",
    shape: shape ? make("code", {}, `[${shape.join(", ")}]`) : layout && "not on this block",
    location: make("code", {}, ...dotted(location)),
    condition: condition ? `needs: ${condition}` : differing.includes("condition") && "on every load",
  };
  return kept.filter((field) => said[field]).map((field) =>
    make("span", { class: `compare-seen compare-seen-${field}` }, said[field]));
}

function none() {
  return make("span", { class: "compare-none" }, make("span", { "aria-hidden": "true" }, "–"),
    make("span", { class: "visually-hidden" }, "not there"));
}

/** A name that may break after its dots and underscores. */
function broken(name) {
  return name.split(/(?<=[._])/).flatMap((piece, at) => (at ? [make("wbr", {}), piece] : [piece]));
}
