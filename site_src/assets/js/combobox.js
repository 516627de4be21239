// A text field with a listbox of what fits what is typed, in named groups.

import { make } from "./elements.js";

/**
 * The combobox in `root`. `groups` are `{ title, words, options: [{ id, note }] }`, and what is typed may be in the
 * words of a group too; `onChoose(id)` hears of a choice.
 */
export class Combobox {
  constructor(root, groups, onChoose) {
    Object.assign(this, { root, groups, onChoose, chosen: "", active: null });
    this.input = root.querySelector("[role=combobox]");
    this.list = root.querySelector("[role=listbox]");
    this.status = root.querySelector("[role=status]");
    this.input.addEventListener("click", () => {
      if (!this.list.hidden) return;
      this.input.select();
      this.open();
    });
    this.input.addEventListener("focus", () => this.input.select());
    this.input.addEventListener("input", () => this.open(this.input.value));
    this.input.addEventListener("keydown", (event) => this.onKey(event));
    this.input.addEventListener("blur", () => this.close());
    // A press must not take the focus from the field, or the list is gone before the choice is made.
    this.list.addEventListener("mousedown", (event) => event.preventDefault());
    this.list.addEventListener("click", (event) => this.choose(event.target.closest("[data-id]")));
    this.list.addEventListener("pointermove", (event) => this.activate(event.target.closest("[data-id]"), false));
  }

  /** Shows `id` as the chosen one without telling anybody. */
  set(id) {
    this.chosen = id;
    this.input.value = id;
  }

  /** Opens the list on what fits every word of `typed`; a family's name helps where its ids alone do not fit. */
  open(typed = "") {
    const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (text) => words.every((word) => text.includes(word));
    let found = 0;
    this.list.replaceChildren(...this.groups.flatMap(({ title, words: known, options }) => {
      const own = options.filter(({ id }) => fits(id.toLowerCase()));
      const shown = own.length ? own : options.filter(({ id }) => fits(`${id} ${known}`.toLowerCase()));
      if (!shown.length) return [];
      const box = make("div", { role: "group", "aria-label": title }, make("p", { "aria-hidden": "true" }, title));
      box.append(...shown.map(({ id, note }) => make("div", {
        "role": "option", "id": `${this.list.id}-${found++}`, "data-id": id,
        "aria-selected": String(id === this.chosen),
      }, id, make("span", {}, note))));
      return [box];
    }));
    if (!found) this.list.append(make("div", { "role": "option", "aria-disabled": "true" }, "No checkpoint fits."));
    this.status.textContent = found === 1 ? "1 checkpoint" : `${found || "No"} checkpoints`;
    this.list.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    this.active = null;
    this.activate(typed ? this.options[0] : this.options.find((option) => option.dataset.id === this.chosen));
  }

  close() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
    this.input.value = this.chosen;
    this.status.textContent = "";
  }

  get options() {
    return [...this.list.querySelectorAll("[data-id]")];
  }

  activate(option, scroll = true) {
    if (!option || option === this.active) return;
    this.active?.classList.remove("is-active");
    this.active = option;
    option.classList.add("is-active");
    this.input.setAttribute("aria-activedescendant", option.id);
    if (scroll) option.scrollIntoView({ block: "nearest" });
  }

  choose(option) {
    if (!option) return;
    this.chosen = option.dataset.id;
    this.close();
    this.onChoose(this.chosen);
  }

  onKey(event) {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (step && this.list.hidden) this.open();
    else if (step) {
      const { options } = this;
      const at = options.indexOf(this.active);
      this.activate(options[Math.min(Math.max(at + step, 0), options.length - 1)]);
    } else if (event.key === "Enter" && !this.list.hidden) this.choose(this.active);
    else if (event.key === "Escape" && !this.list.hidden) {
      this.close();
      this.input.select();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
