// The front page: its families by a text and by filters that combine.

import { make } from "./elements.js";
import { holds, names } from "./filters.js";
import { Finder, marked } from "./matching.js";
import { Query } from "./query.js";

const DEFAULTS = { q: "", quirk: [], value: [], mixer: "", mlp: "", group: "", min: "", max: "", annotated: "" };
const WIDE = matchMedia("(min-width: 47.5625em)");

class Index {
  constructor(root) {
    const part = (name) => root.querySelector(`[data-find${name}]`);
    this.form = part("");
    this.field = part("-query");
    this.status = part("-status");
    this.active = part("-active");
    this.none = part("-none");
    this.found = part("-found");
    this.details = part("-filters");
    this.data = JSON.parse(part("-data").textContent);
    for (const family of this.data.families) {
      family.valueNames = [...new Set(family.values.map((position) => this.data.values[position].split(".").pop()))];
    }
    this.finder = new Finder(this.data);
    this.cards = new Map([...root.querySelectorAll("[data-card]")].map((item) => [item.dataset.card, new Card(item)]));
    this.groups = [...root.querySelectorAll("[data-group]")].map((section) => ({
      section,
      list: section.querySelector("ul"),
      count: section.querySelector("[data-group-count]"),
      types: [...section.querySelectorAll("[data-card]")].map((item) => item.dataset.card),
    }));
    this.controls = [...this.form.querySelectorAll("[data-filter]")];
    this.query = new Query(DEFAULTS);
    this.state = this.query.parse();
    this.form.hidden = false;
    this.listen();
    this.show();
  }

  listen() {
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.links()[0]?.click();
    });
    this.field.addEventListener("input", () => {
      this.state = { ...this.state, q: this.field.value };
      this.query.replace(this.state);
      this.show();
    });
    // On a small screen what is found would be below the field's help and the keyboard.
    this.field.addEventListener("focus", () => {
      if (!WIDE.matches) this.form.scrollIntoView();
    });
    this.form.addEventListener("change", ({ target }) => {
      const key = target.dataset.filter;
      if (!key) return;
      const value = target.type === "checkbox" ? (target.checked ? target.value : "") : target.value;
      if (!Array.isArray(DEFAULTS[key])) this.go({ [key]: value });
      else if (value) this.go({ [key]: [...this.state[key].filter((name) => name !== value), value] });
    });
    for (const list of [this.active, this.none]) {
      list.addEventListener("click", ({ target }) => {
        const button = target.closest("button");
        if (!button) return;
        this.go(button.dataset.drop ? this.without(button.dataset.drop, button.dataset.name) : DEFAULTS);
        (this.active.querySelector("button") ?? this.field).focus();
      });
    }
    this.query.listen((state) => {
      this.state = state;
      this.show();
    });
    document.addEventListener("keydown", (event) => this.onKey(event));
    const fold = () => { this.details.open = WIDE.matches; };
    WIDE.addEventListener("change", fold);
    fold();
  }

  /** Changes the state as a step that the reader can go back from. */
  go(changes) {
    this.state = { ...this.state, ...changes };
    this.query.push(this.state);
    this.show();
  }

  without(key, name) {
    const value = DEFAULTS[key];
    return { [key]: Array.isArray(value) ? this.state[key].filter((other) => other !== name) : value };
  }

  /** The families that hold `state`, best first where a text was asked for. */
  matching(state) {
    const kept = this.data.families.filter((family) => holds(family, state));
    if (!state.q.trim()) return { kept, hits: null };
    const hits = this.finder.find(state.q);
    const found = kept.filter(({ type }) => hits.has(type));
    found.sort((a, b) => hits.get(a.type).score - hits.get(b.type).score || a.title.localeCompare(b.title));
    return { kept: found, hits };
  }

  show() {
    const { kept, hits } = this.matching(this.state);
    const types = new Set(kept.map(({ type }) => type));
    for (const [type, card] of this.cards) card.say(types.has(type) ? hits?.get(type)?.hits : null);
    const found = hits ? kept.map(({ type }) => this.cards.get(type).item) : [];
    this.found.hidden = !found.length;
    fill(this.found.querySelector("ul"), found);
    for (const { section, list, count, types: members } of this.groups) {
      const shown = hits ? [] : members.filter((type) => types.has(type));
      section.hidden = !shown.length;
      if (!hits) fill(list, shown.map((type) => this.cards.get(type).item));
      count.textContent = shown.length === members.length ? members.length : `${shown.length} of ${members.length}`;
    }
    if (this.field.value !== this.state.q) this.field.value = this.state.q;
    this.tell(kept.length);
    // What the menus offer is seen after they are opened only, so that a letter typed need not wait for it.
    cancelAnimationFrame(this.offering);
    this.offering = requestAnimationFrame(() => setTimeout(() => this.offer(hits)));
  }

  /** Says how many there are and what narrowed them, each with its way back. */
  tell(count) {
    const total = this.data.families.length;
    const filters = this.filters();
    const narrowed = filters.length > 0;
    this.status.textContent = narrowed ? `${count} of ${total} families` : `${total} families`;
    const chips = filters.map(({ key, name, label }) => chip(label, `Remove ${label}`, key, name));
    this.active.replaceChildren(...chips, ...(narrowed ? [chip("clear all", "Clear all")] : []));
    this.none.hidden = count > 0;
    this.none.replaceChildren(...(count ? [] : this.ways(filters)));
  }

  /** What to drop so that some family is left. */
  ways(filters) {
    const said = filters.length > 1 ? "No family has all of this at once." : "No family has this.";
    const ways = filters.length < 2 ? [] : filters
      .map((filter) => ({ ...filter, left: this.matching({ ...this.state, ...this.without(filter.key, filter.name) }).kept.length }))
      .filter(({ left }) => left);
    const chips = ways.map(({ key, name, label, left }) =>
      chip(`without ${label}: ${left === 1 ? "1 family" : `${left} families`}`, null, key, name));
    return [make("p", {}, said), make("ul", {}, ...(chips.length ? chips : [chip("clear all", null)]))];
  }

  /** Everything that narrows the list, in the order of the address. */
  filters() {
    const label = (key, name) => {
      const control = this.controls.find(({ dataset }) => dataset.filter === key);
      const option = [...(control?.options ?? [])].find(({ value }) => value && value === name);
      const text = option?.dataset.label ?? name;
      return { q: `“${name}”`, min: `from ${text}`, max: `up to ${text}`, annotated: "with notes",
        value: `serves ${text}`, mixer: `mixer: ${text}`, mlp: `MLP: ${text}` }[key] ?? text;
    };
    return Object.keys(DEFAULTS).flatMap((key) => [this.state[key]].flat().filter((name) => name.trim())
      .map((name) => ({ key, name, label: label(key, name) })));
  }

  /** Sets the controls to the state; every choice says how many families it would leave. */
  offer(hits) {
    const asked = hits ? this.data.families.filter(({ type }) => hits.has(type)) : this.data.families;
    for (const control of this.controls) {
      const key = control.dataset.filter;
      if (control.type === "checkbox") control.checked = Boolean(this.state[key]);
      else if (!("many" in control.dataset)) control.value = this.state[key];
      else control.value = "";
      if (!control.querySelector("[data-label]")) continue;
      const counts = new Map();
      for (const family of asked) {
        if (!holds(family, this.state, "many" in control.dataset ? null : key)) continue;
        for (const name of names(family, key)) counts.set(name, (counts.get(name) ?? 0) + 1);
      }
      for (const option of control.options) {
        if (!option.value) continue;
        const count = counts.get(option.value) ?? 0;
        const text = `${option.dataset.label} (${count})`;
        if (option.textContent !== text) option.textContent = text;
        option.disabled = !count || this.state[key].includes(option.value) && "many" in control.dataset;
      }
    }
  }

  links() {
    return [...document.querySelectorAll("[data-index] [data-card] h3 a")].filter((link) => link.offsetParent);
  }

  onKey(event) {
    // Material's search has the letters that sites use for this: f, s and the slash.
    if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      this.field.focus();
      this.field.select();
      return;
    }
    const card = event.target.closest?.("[data-card]");
    if (event.target !== this.field && !card) return;
    if (event.key === "Escape") {
      event.preventDefault();
      if (card) this.field.focus();
      else this.go(this.state.q ? { q: "" } : DEFAULTS);
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || !event.key.startsWith("Arrow")) return;
    if (!card && event.key !== "ArrowDown") return;
    const to = card ? this.beside(card, event.key) : this.links()[0];
    if (!to) return;
    event.preventDefault();
    to.focus({ preventScroll: true });
    to.closest("[data-card]")?.scrollIntoView({ block: "nearest" });
  }

  /** The link of the card next to `card` in the arrow's direction; above the first row it is the field. */
  beside(card, key) {
    const links = this.links();
    const at = links.findIndex((link) => card.contains(link));
    if (key === "ArrowRight") return links[at + 1];
    if (key === "ArrowLeft") return links[at - 1];
    const here = card.getBoundingClientRect();
    const sign = key === "ArrowDown" ? 1 : -1;
    const placed = links.map((link) => ({ link, box: link.closest("[data-card]").getBoundingClientRect() }))
      .map(({ link, box }) => ({ link, down: sign * (box.top - here.top), aside: Math.abs(box.left - here.left) }))
      .filter(({ down }) => down > 1).sort((a, b) => a.down - b.down || a.aside - b.aside);
    return placed[0]?.link ?? (sign < 0 ? this.field : undefined);
  }
}

class Card {
  constructor(item) {
    this.item = item;
    this.link = item.querySelector("h3 a");
    this.href = this.link.getAttribute("href");
    this.line = null;
    this.said = "";
  }

  /** Shows what `hits` matched, where the title does not, and leads to it. */
  say(hits) {
    const others = (hits ?? []).filter(({ sort }) => sort !== "title");
    this.link.setAttribute("href", this.href + (others.find(({ hash }) => hash)?.hash ?? ""));
    const said = others.map(({ sort, text, terms }) => [sort, text, ...terms].join("\n")).join("\n\n");
    if (said === this.said) return;
    this.said = said;
    if (!said) {
      this.line.remove();
      return;
    }
    this.line ??= make("p", { class: "index-hit" });
    this.line.replaceChildren(...others.flatMap(({ sort, text, terms }, index) => [
      `${index ? ", " : ""}${sort} `, make(sort === "quirk" ? "span" : "code", {}, ...marked(text, terms)),
    ]));
    this.link.closest("h3").after(this.line);
  }
}

/** Makes `items` the children of `list`, which costs nothing where they are already. */
function fill(list, items) {
  if (items.length !== list.children.length || items.some((item, index) => item !== list.children[index])) {
    list.replaceChildren(...items);
  }
}

function chip(text, label, key, name) {
  return make("li", {}, make("button", {
    type: "button", ...(key ? { "class": "find-chip", "data-drop": key, "data-name": name } : { class: "find-chip find-clear" }),
    ...(label && { "aria-label": label }),
  }, text));
}

const root = document.querySelector("[data-index]");
if (root) new Index(root);
