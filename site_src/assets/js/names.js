// Which names the page speaks: the standard ones, or those of transformers, nnsight or TransformerLens. The card and
// the table of values say them, and both keep all other names in a fold. The choice is remembered for every page.

import { dotted, make } from "./elements.js";
import { recall, remember } from "./memory.js";
import { kindsByBlock } from "./slider.js";

const REMEMBERED = "names";
const STANDARD = "standard";

/** `text` for one block, with the lengths of axes that it asks for; as `filled` in encyclopedia/hooks.py. */
export function filled(text, block, sizes) {
  const lengths = { ...sizes, i: block };
  return text.replaceAll("[i]", `[${block}]`).replace(/\{(\w+)\}/g, (found, axis) => lengths[axis] ?? found);
}

class Names {
  constructor(article) {
    this.article = article;
    this.table = JSON.parse(article.querySelector("script[data-names]").textContent);
    this.titles = new Map(this.table.titles);
    this.unfilled = new WeakMap();
    article.addEventListener("toggle", ({ target }) => target.open && this.open(target), { capture: true });
    this.choice = article.querySelector("[data-names-choice]");
    const known = [...this.choice.options].map(({ value }) => value);
    const chosen = recall(REMEMBERED);
    this.vocabulary = known.includes(chosen) ? chosen : STANDARD;
    this.choice.value = this.vocabulary;
    this.choice.disabled = false;
    this.choice.addEventListener("change", () => {
      this.vocabulary = this.choice.value;
      remember(REMEMBERED, this.vocabulary);
      this.speak();
    });
    article.addEventListener("family:checkpoint", () => { this.kindOf = null; });
    article.addEventListener("family:block", ({ detail }) => this.follow(detail));
    article.addEventListener("card:shown", ({ detail }) => {
      if (this.checkpoint) this.speakCard(detail);
    });
    // The page may have said where it is before anybody here listened.
    article.dispatchEvent(new CustomEvent("family:ask"));
  }

  /** Goes along with the page to another block, and to another checkpoint's table. */
  follow({ checkpoint, block, kind }) {
    this.checkpoint = checkpoint;
    this.here = { block, kind };
    if (this.kindOf) {
      this.speakCard(this.here);
      return;
    }
    this.kindOf = kindsByBlock(JSON.parse(this.article.querySelector("[data-facts]").textContent).kinds);
    this.speak();
  }

  speak() {
    this.speakCard(this.here);
    for (const row of this.article.querySelectorAll("[data-region=api] .values-table tbody tr")) this.speakRow(row);
  }

  speakCard({ block, kind }) {
    this.here = { block, kind };
    const card = this.article.querySelector("[data-card]");
    const copy = card.querySelector("[data-card-copy]");
    // What the server filled in is on block 0.
    card.dataset.standard ??= copy.dataset.copy.replace("layers[0]", "layers[i]");
    const standard = card.dataset.standard;
    const sizes = sizesOf(card.querySelector("[data-card-layout]"), card.querySelector("[data-card-shape] code"));
    const names = card.hasAttribute("data-missing") ? null : this.variant(standard, kind);
    const { text, note } = this.said(names, filled(standard, block, {}), block, sizes);
    card.querySelector("[data-card-expression]").replaceChildren(...dotted(text, true));
    copy.dataset.copy = text;
    noteUnder(card.querySelector(".card-expression"), "card-note", note);
    this.fillOpen(card.querySelector("[data-elsewhere]"), names, block, sizes);
  }

  speakRow(row) {
    const cell = row.querySelector(".values-name");
    const copy = cell.querySelector(".copy");
    row.dataset.standard ??= copy.dataset.copy;
    const block = Number(/layers\[(\d+)\]/.exec(row.dataset.standard)?.[1] ?? 0);
    const names = this.variant(row.dataset.standard.replace(`layers[${block}]`, "layers[i]"), this.kindOf[block]);
    const sizes = sizesOf(row.querySelector(".values-dims"), row.querySelector(".values-shape code"));
    if (!row.querySelector("[data-elsewhere]")) {
      const fold = make("details", { class: "elsewhere", "data-elsewhere": "" }, make("summary", {}, "other names"), make("dl", {}));
      this.fill(fold, names, block, sizes);
      row.querySelector(".values-place").append(fold);
    }
    const { text, note } = this.said(names, row.dataset.standard, block, sizes);
    copy.dataset.copy = text;
    copy.setAttribute("aria-label", `Copy ${text}`);
    row.toggleAttribute("data-spoken", this.vocabulary !== STANDARD);
    cell.querySelector(".values-other")?.remove();
    if (this.vocabulary === STANDARD) return;
    const spoken = text === row.dataset.standard ? [] : [make("code", {}, ...dotted(text))];
    cell.prepend(make("span", { class: "values-other" }, ...spoken, ...(note ? [make("span", { class: "elsewhere-note" }, note)] : [])));
  }

  /** The names of `expression` on blocks of `kind`, or `undefined`. */
  variant(expression, kind) {
    const found = this.table.names[expression] ?? [];
    const position = this.table.checkpoints.indexOf(this.checkpoint);
    return found.find(({ at }) => !at || at.some(([checkpoint, kinds]) => checkpoint === position && kinds.includes(kind)));
  }

  /** What the chosen vocabulary says instead of `standard`, which stands in where it says nothing. */
  said(names, standard, block, sizes) {
    if (this.vocabulary === STANDARD) return { text: standard };
    const [text, note] = names?.[this.vocabulary] ?? [null, null];
    if (text) return { text: filled(text, block, sizes), note };
    return { text: standard, note: note ?? `the standard name; none is known in ${this.titles.get(this.vocabulary)}` };
  }

  /** Fills the card's fold, which changes with every step, when it is open, or once it is. */
  fillOpen(fold, names, block, sizes) {
    fold.hidden = !names;
    this.unfilled.set(fold, () => this.fill(fold, names, block, sizes));
    if (fold.open) this.open(fold);
  }

  open(fold) {
    this.unfilled.get(fold)?.();
    this.unfilled.delete(fold);
  }

  /** Fills a fold with all names, as templates/page/elsewhere.html.jinja does. */
  fill(fold, names, block, sizes) {
    fold.hidden = !names;
    fold.querySelector("dl").replaceChildren(...[...this.titles].filter(([slug]) => names?.[slug]).map(([slug, title]) => {
      const [text, note] = names[slug];
      const value = make("dd", {});
      if (text) value.append(slug === "hook" ? code(filled(text, block, sizes)) : path(filled(text, block, sizes), title));
      if (note) value.append(make("span", { class: "elsewhere-note" }, note));
      return make("div", { "data-vocabulary": slug }, make("dt", {}, title), value);
    }));
  }
}

function code(text) {
  return make("div", { class: "code-block" },
    make("button", { class: "copy", type: "button", "data-copy": "", "aria-label": "Copy the hook" }), make("pre", { tabindex: "0" }, text));
}

function path(text, title) {
  return make("span", { class: "card-path" }, make("code", {}, ...dotted(text)),
    make("button", { class: "copy", type: "button", "data-copy": text, "aria-label": `Copy the name in ${title}` }));
}

function noteUnder(line, name, note) {
  if (line.nextElementSibling?.classList.contains(name)) line.nextElementSibling.remove();
  if (note) line.after(make("p", { class: `${name} elsewhere-note` }, note));
}

/** Lengths by axis, from the text of a layout (`Pattern [batch num_heads query key]`) and of a shape. */
function sizesOf(layout, shape) {
  const axes = /\[(.*)\]/.exec(layout?.textContent ?? "")?.[1].split(/\s+/) ?? [];
  const lengths = shape?.textContent.match(/\d+/g) ?? [];
  return Object.fromEntries(axes.map((axis, position) => [axis, lengths[position]]).filter(([, length]) => length));
}

const article = document.querySelector("article.family:has(script[data-names])");
if (article) new Names(article);
