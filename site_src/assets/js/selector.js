// The selector of checkpoints: a button that opens a listbox.

const FORGET = 600;

/** The selector in `root`; `onChoose(id)` hears of a chosen checkpoint. */
export class Selector {
  constructor(root, onChoose) {
    Object.assign(this, { root, onChoose });
    this.button = root.querySelector("[data-selector-button]");
    this.list = root.querySelector("[data-selector-list]");
    this.shown = root.querySelector("[data-selector-shown]");
    this.options = [...this.list.querySelectorAll("[role=option]")];
    this.typed = "";
    root.querySelector("[data-selector-plain]").hidden = true;
    this.button.hidden = false;
    this.button.addEventListener("click", () => (this.list.hidden ? this.open() : this.close(true)));
    this.button.addEventListener("keydown", (event) => {
      if (["ArrowDown", "ArrowUp"].includes(event.key)) {
        event.preventDefault();
        this.open();
      }
    });
    this.list.addEventListener("keydown", (event) => this.onKey(event));
    this.list.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) this.choose(option);
    });
    this.list.addEventListener("pointermove", (event) => {
      const option = event.target.closest("[role=option]");
      if (option && option !== this.active) this.activate(option, false);
    });
    this.list.addEventListener("focusout", (event) => {
      if (!root.contains(event.relatedTarget)) this.close(false);
    });
  }

  /** The ids that can be chosen. */
  get ids() {
    return this.options.filter(available).map((option) => option.dataset.checkpoint);
  }

  /** Marks `id` as the chosen one without telling anybody. */
  set(id) {
    for (const option of this.options) {
      const chosen = option.dataset.checkpoint === id;
      option.setAttribute("aria-selected", String(chosen));
      if (chosen) this.shown.replaceChildren(option.querySelector(".selector-name").cloneNode(true));
    }
    this.button.setAttribute("aria-label", `Checkpoint: ${id}`);
  }

  open() {
    this.list.hidden = false;
    this.button.setAttribute("aria-expanded", "true");
    this.activate(this.options.find((option) => option.ariaSelected === "true") ?? this.options[0]);
    this.list.focus({ preventScroll: true });
  }

  close(refocus) {
    if (this.list.hidden) return;
    this.list.hidden = true;
    this.button.setAttribute("aria-expanded", "false");
    if (refocus) this.button.focus({ preventScroll: true });
  }

  activate(option, scroll = true) {
    this.active?.classList.remove("selector-active");
    this.active = option;
    option.classList.add("selector-active");
    this.list.setAttribute("aria-activedescendant", option.id);
    if (scroll) option.scrollIntoView({ block: "nearest" });
  }

  choose(option) {
    if (!available(option)) return;
    this.close(true);
    this.onChoose(option.dataset.checkpoint);
  }

  onKey(event) {
    const at = this.options.indexOf(this.active);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: this.options.length - 1 }[event.key];
    if (to !== undefined) this.activate(this.options[Math.min(Math.max(to, 0), this.options.length - 1)]);
    else if (event.key === "Enter" || (event.key === " " && !this.typed)) this.choose(this.active);
    else if (event.key === "Escape") this.close(true);
    else if (event.key === "Tab") return void this.close(false);
    else if (event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey) this.type(event.key, at);
    else return;
    event.preventDefault();
    // Escape here closes the list and must not also let go of a pinned part.
    event.stopPropagation();
  }

  type(letter, at) {
    clearTimeout(this.forget);
    this.forget = setTimeout(() => { this.typed = ""; }, FORGET);
    const again = this.typed === letter.toLowerCase();
    this.typed = again ? this.typed : this.typed + letter.toLowerCase();
    const from = at + (this.typed.length === 1 ? 1 : 0);
    const turned = [...this.options.slice(from), ...this.options.slice(0, from)];
    const found = turned.find((option) => {
      const id = option.dataset.checkpoint.toLowerCase();
      return id.startsWith(this.typed) || id.slice(id.indexOf("/") + 1).startsWith(this.typed);
    });
    if (found) this.activate(found);
  }
}

function available(option) {
  return option.getAttribute("aria-disabled") !== "true";
}
