// The slider over the blocks: a range input for keys and assistive technology, ticks for mouse and touch. And which kind
// each block is of, by which ticks are coloured.

/** By block, the position of its kind in `kinds`, each of which lists its blocks. */
export function kindsByBlock(kinds) {
  const kindOf = [];
  kinds.forEach(({ blocks }, kind) => blocks.forEach((block) => { kindOf[block] = kind; }));
  return kindOf;
}

/** Moves the slider of `root`; `onMove(block)` hears of every block its reader goes to. */
export class Slider {
  constructor(root, kindOf, labels, onMove) {
    Object.assign(this, { root, kindOf, labels, onMove });
    this.input = root.querySelector("[data-block-slider]");
    this.ticks = root.querySelector("[data-ticks]");
    this.number = root.querySelector("[data-block-number]");
    this.steps = root.querySelector("[data-block-steps]");
    this.legend = [...root.querySelectorAll("[data-legend]")];
    this.block = 0;
    this.input.disabled = false;
    this.steps.hidden = false;
    this.input.addEventListener("input", () => this.onMove(Number(this.input.value)));
    this.steps.addEventListener("click", (event) => {
      const step = event.target.closest("[data-block-step]");
      if (step) this.go(this.block + Number(step.dataset.blockStep));
    });
    this.ticks.addEventListener("pointerdown", (event) => this.grab(event));
    this.ticks.addEventListener("pointermove", (event) => this.ticks.hasPointerCapture(event.pointerId) && this.drag(event));
    this.legend.forEach((entry) => entry.addEventListener("click", () => this.next(Number(entry.dataset.legend))));
  }

  get last() {
    return this.kindOf.length - 1;
  }

  /** Shows `block` without telling anybody. */
  set(block) {
    const ticks = this.ticks.children;
    ticks[this.block]?.classList.remove("ticks-here");
    this.block = Math.min(Math.max(block, 0), this.last);
    const kind = this.kindOf[this.block];
    ticks[this.block].classList.add("ticks-here");
    this.input.value = String(this.block);
    this.input.setAttribute("aria-valuetext", `block ${this.block}, ${this.labels[kind]}`);
    this.number.textContent = String(this.block);
    for (const entry of this.legend) entry.classList.toggle("legend-here", Number(entry.dataset.legend) === kind);
  }

  go(block) {
    const wanted = Math.min(Math.max(block, 0), this.last);
    if (wanted !== this.block) this.onMove(wanted);
  }

  /** Goes to the next block of `kind`, and past the last one to the first. */
  next(kind) {
    const after = this.kindOf.indexOf(kind, this.block + 1);
    this.go(after >= 0 ? after : this.kindOf.indexOf(kind));
  }

  grab(event) {
    if (event.button) return;
    // A prevented press keeps text from being selected, so the focus is given by hand.
    event.preventDefault();
    this.input.focus({ preventScroll: true, focusVisible: false });
    this.ticks.setPointerCapture(event.pointerId);
    this.drag(event);
  }

  drag(event) {
    const { left, width } = this.ticks.getBoundingClientRect();
    this.go(Math.floor(((event.clientX - left) / width) * this.kindOf.length));
  }
}
