// One part of two diagrams: how it differs, as a mark at its corner, as words and as a table of its facts.

import { dotted, make, rich } from "./elements.js";

const SIGNS = {
  changed: "M-3.4-1.5h6.8M-3.4 1.5h6.8M-1.8 3.8L1.8-3.8",
  resized: "M-4 0h8M-2-2.2L-4.2 0-2 2.2M2-2.2L4.2 0 2 2.2",
};
const WORDS = { changed: "differs", resized: "another size", equal: "the same" };
const LABELS = {
  layout: "layout", shape: "shape", location: "read at", condition: "needs", said: "what", size: "what", class: "class",
};
/** What is shown of a part; of these the class is not compared, because every family has its own. */
const SHOWN = ["layout", "shape", "location", "condition", "said", "class"];

/** In a word, how the part of `row` differs; `names` are those of the two checkpoints. */
export function state(row, names) {
  return WORDS[row.state] ?? `only in ${names["ab".indexOf(row.state)]}`;
}

/** The same, with the facts in which it does. */
export function difference(row, names) {
  const fields = [...new Set(row.fields.map((field) => LABELS[field]))];
  return state(row, names) + (row.state === "changed" ? ` in ${fields.join(", ")}` : "");
}

/** Puts the mark of `row` at the corner of `part`, a group of the diagram on `side`. */
export function sign(part, row, side) {
  part.querySelector(".compare-badge")?.remove();
  if (row.state === "equal") return;
  const path = SIGNS[row.state];
  const mark = drawn("g", { class: `compare-badge compare-badge-${row.state}` });
  mark.setAttribute("transform", `translate(${corner(part)})`);
  mark.append(drawn(...(path ? ["rect", { x: -7, y: -7, width: 14, height: 14, rx: 3 }] : ["circle", { r: 7.5 }])));
  mark.append(drawn(...(path ? ["path", { d: path }] : ["text", { y: 3.8 }])));
  if (!path) mark.lastChild.textContent = "AB"[side];
  part.append(mark);
}

/** The facts of `row` beside each other; `missing` are the words for a side that has no such part. */
export function facts(row, { names, blocks, pinned, missing }) {
  const both = [row.a, row.b];
  const heads = both.map((part, side) => make("th", { scope: "col" }, ...(part
    ? dotted(part.card.expression.replace("[i]", `[${blocks[side]}]`), true)
    : [make("span", { class: "compare-none" }, missing[side])])));
  const lines = SHOWN.filter((field) => both.some((part) => part?.[field])).map((field) => {
    const differs = row.fields.includes(field) || (field === "said" && row.fields.includes("size"));
    const mark = differs ? [make("span", { class: "compare-sign" }, "≠")] : [];
    return make("tr", differs ? { class: "is-other" } : {}, make("th", { scope: "row" }, LABELS[field], ...mark),
      ...both.map((part) => make("td", {}, ...(part ? told(field, part[field]) : []))));
  });
  const how = make("span", { class: "compare-state" }, state(row, names) + (pinned ? " · pinned" : ""));
  return make("table", { class: "compare-facts" },
    make("thead", {}, make("tr", {}, make("td", {}, how), ...heads)), make("tbody", {}, ...lines));
}

function told(field, value) {
  if (!value) return [field === "condition" ? "nothing: every load has it" : "–"];
  if (field === "shape") return [make("code", {}, `[${value.join(", ")}]`)];
  if (field === "layout") return [make("code", {}, value)];
  return field === "location" ? [make("code", {}, ...dotted(value))] : rich(value);
}

function corner(part) {
  // The outline of what is pointed at by its title stands in front of it.
  const before = part.previousElementSibling;
  const outlined = before?.matches("rect") && before.dataset.lineOf === part.dataset.node;
  const box = outlined ? before : part.querySelector("rect, circle");
  const names = ["x", "y", "width", "height", "cx", "cy", "r"];
  const [x, y, width, height, cx, cy, r] = names.map((name) => Number(box.getAttribute(name)));
  if (box.matches("circle")) return [cx + r * 0.75, cy - r * 0.75];
  return part.matches(".diagram-stream") ? [x + width + 10, y + height / 2] : [x + width - 3, y + 1];
}

function drawn(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}
