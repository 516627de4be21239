// Tables of two columns, row by row: what differs first, equal rows folded behind their number.

import { dotted, make } from "./card.js";
import { count, ratio } from "./comparison.js";

let folds = 0;

/** A table of `rows`; `cells(row)` gives the contents of the two columns, or one for both where they are equal. */
export function table(label, names, rows, cells, { equals = "equal row" } = {}) {
  const groups = [["changed", "a", "b"].flatMap((state) => rows.filter((row) => row.state === state)),
    rows.filter((row) => row.state === "resized"), rows.filter((row) => row.state === "equal")];
  const [first, resized, equal] = groups.map((group) => group.map((row) => line(row, cells(row))));
  return make("table", { class: "compare-table" },
    make("caption", typeof label === "string" ? { class: "visually-hidden" } : {}, label),
    make("thead", {}, make("tr", {}, make("td", {}), ...names.map((name) => make("th", { scope: "col" }, name)))),
    make("tbody", {}, ...first),
    ...folded(resized, count(resized.length, "value") + " of another shape only", true), ...folded(equal, count(equal.length, equals), false));
}

/** The two columns of a row of plain values; a number in the second is also told as a multiple of the first. */
export function plain({ a, b, state }, text = shown) {
  if (state === "equal") return [text(a)];
  const times = ratio(a, b);
  return [state === "b" ? none() : text(a), state === "a" ? none() : [text(b), ...(times ? [make("span", { class: "compare-ratio" }, ` ${times}`)] : [])]];
}

/** The two columns of a row of values: what of them differs, after what it is. */
export function value({ a, b, state, fields }) {
  if (state === "equal") return [seen(a, ["shape", "location"], [])];
  const kept = state === "resized" ? ["shape"] : [...new Set([...(a && b ? fields : ["layout", "shape", "location", "condition"])])];
  return [a, b].map((one) => (one ? seen(one, kept, fields) : none()));
}

/** A value of a config as it is written there; a long list by what it holds. */
export function shown(entry) {
  if (!Array.isArray(entry) || entry.length < 7) return typeof entry === "string" ? entry : JSON.stringify(entry) ?? "";
  const counts = new Map();
  for (const item of entry.map((each) => shown(each))) counts.set(item, (counts.get(item) ?? 0) + 1);
  const most = [...counts].slice(0, 4).map(([item, times]) => `${times} × ${item}`).join(", ");
  return make("details", {}, make("summary", {}, `${entry.length}: ${most}${counts.size > 4 ? ", …" : ""}`), make("code", {}, JSON.stringify(entry).replaceAll(",", ", ")));
}

/** A number with its thousands set apart, or what it is otherwise. */
export function figure(entry) {
  return typeof entry === "number" ? entry.toLocaleString("en") : shown(entry);
}

function line(row, columns) {
  const [both] = columns;
  const data = columns.length === 1 ? [make("td", { colspan: "2" }, ...[both].flat())] : columns.map((column) => make("td", {}, ...[column].flat()));
  return make("tr", { "data-row": row.name, "data-state": row.state }, make("th", { scope: "row" }, ...broken(row.name)), ...data);
}

function folded(lines, words, open) {
  if (!lines.length) return [];
  const id = `compare-fold-${folds++}`;
  const button = make("button", { type: "button", class: "compare-fold", "data-fold": "", "aria-expanded": String(open), "aria-controls": id }, words);
  const body = make("tbody", { id }, ...lines);
  body.hidden = !open;
  button.addEventListener("click", () => {
    body.hidden = !body.hidden;
    button.setAttribute("aria-expanded", String(!body.hidden));
  });
  return [make("tbody", { class: "compare-folded" }, make("tr", {}, make("td", { colspan: "3" }, button))), body];
}

function seen(one, kept, fields) {
  const lines = {
    layout: () => one.layout ?? "plain Python value",
    shape: () => (one.shape ? make("code", {}, `[${one.shape.join(", ")}]`) : one.layout ? "not on this block" : ""),
    location: () => make("code", {}, ...dotted(one.location)),
    condition: () => (one.condition ? `needs: ${one.condition}` : fields.includes("condition") ? "on every load" : ""),
  };
  return kept.map((field) => [field, lines[field]()]).filter(([, said]) => said)
    .map(([field, said]) => make("span", { class: `compare-seen compare-seen-${field}` }, said));
}

function none() {
  return make("span", { class: "compare-none" }, make("span", { "aria-hidden": "true" }, "–"), make("span", { class: "visually-hidden" }, "not there"));
}

/** A name that may break after its dots and underscores. */
function broken(name) {
  return name.split(/(?<=[._])/).flatMap((piece, at) => (at ? [make("wbr", {}), piece] : [piece]));
}
