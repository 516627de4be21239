// The card: fills the elements the server filled first, from one card of the facts.

import { dotted, make, rich } from "./elements.js";

/** A card of the page. */
export class Card {
  constructor(element) {
    this.element = element;
    element.dataset.sheet = "";
    const find = (name) => element.querySelector(`[data-card-${name}]`);
    this.slots = Object.fromEntries(
      ["what", "close", "expression", "copy", "layout", "shape", "description", "rows"].map((name) => [name, find(name)]),
    );
  }

  /**
   * Shows `facts` as they are on a block.
   * `kind` is the block's kind, `missing` says in words where the part is not on it.
   */
  show(facts, { block, kind, pinned, missing }) {
    const here = (text) => text.replaceAll("[i]", `[${block}]`);
    const { element, slots } = this;
    const shape = missing ? null : facts.shapes?.[kind] ?? null;
    // From block to block of a kind only the places change.
    const same = facts === this.facts && shape === this.shape && missing === this.missing;
    Object.assign(this, { facts, shape, missing });
    element.className = element.className.replace(/role-\w+/, `role-${facts.role}`);
    element.toggleAttribute("data-missing", Boolean(missing));
    element.dataset.standard = facts.expression;
    if (pinned) element.dataset.pinned = facts.id;
    else delete element.dataset.pinned;
    slots.close.hidden = !pinned;
    slots.what.textContent = pinned ? `${facts.what} · pinned` : facts.what;
    const expression = here(facts.expression);
    slots.expression.replaceChildren(...dotted(expression, true));
    slots.copy.dataset.copy = expression;
    if (!same) {
      slots.layout.replaceChildren(...(facts.layout ? [make("b", {}, facts.layout), ` [${facts.dims.join(" ")}]`] : []));
      slots.shape.replaceChildren(...(missing ? [make("p", { class: "card-missing" }, missing)] : shape ? cells(facts, shape) : []));
      slots.description.replaceChildren(...rich(facts.description));
    }
    slots.rows.replaceChildren(...(facts.rows ?? []).map((row) => line(row, here)));
    element.dispatchEvent(new CustomEvent("card:shown", { bubbles: true, detail: { block, kind } }));
  }
}

function cells(facts, shape) {
  const text = make("p", { class: "card-shape-text" },
    make("span", {}, "at batch 1, seq 8"), make("code", {}, `[${shape.join(", ")}]`),
    make("span", { class: "card-dtype" }, facts.dtype ?? ""));
  const list = make("ol", { class: "card-cells", "aria-hidden": "true" }, ...shape.map((size, axis) =>
    make("li", {}, make("b", {}, String(size)), make("span", {}, facts.dims?.[axis] ?? ""))));
  return [text, list];
}

function line(row, here) {
  const attributes = { ...(row.label === "read at" && { "data-card-where": "" }),
    ...(row.checked && { class: "card-checked role-norm" }) };
  const value = make("dd", attributes, row.checked ? "✓ " : "", ...rich(row.text ?? ""));
  if (row.href) value.append(" ", make("a", { href: row.href }, row.more));
  if (row.code) {
    value.append(make("span", { class: "card-path" },
      make("code", {}, ...dotted(here(row.code))),
      make("button", { class: "copy", type: "button", "data-copy": here(row.copy ?? row.code), "aria-label": "Copy the path" })));
  }
  return make("div", {}, make("dt", {}, row.label), value);
}
