// The two diagrams side by side: what differs is marked, and a part pointed at in one is shown in both.

import { make } from "./elements.js";
import { difference, facts, sign } from "./part.js";
import { Slider } from "./slider.js";

const BOTH = [0, 1];

/** The section in `root`; `onMove(side, block)` hears of every block its reader goes to. */
export class Sides {
  constructor(root, onMove) {
    Object.assign(this, { root, onMove, rows: [], pinned: null, shown: null });
    this.homes = [...root.querySelectorAll("[data-side]")].map((home) => {
      const names = ["heading", "page", "controls", "diagram"];
      return { home, ...Object.fromEntries(names.map((name) => [name, home.querySelector(`[data-side-${name}]`)])) };
    });
    this.facts = root.querySelector("[data-part-facts]");
    this.scroller = root.querySelector("[data-sides]");
    this.tabs = [...root.querySelectorAll("[data-side-tab]")];
    this.listen();
  }

  get names() {
    return this.sides.map(({ name }) => name);
  }

  /** Takes the two checkpoints' blocks as `{ name, href(block), content, reason }`, with a reason for no content. */
  fill(sides) {
    Object.assign(this, { sides, rows: [], pinned: null, shown: null });
    sides.forEach(({ name, content, reason, href }, side) => {
      const { heading, page, controls, diagram } = this.homes[side];
      heading.textContent = this.tabs[side].textContent = name;
      page.href = href(0);
      controls.replaceChildren(...(content ? [content.slider] : []));
      diagram.replaceChildren(...(content ? [] : [make("p", { class: "compare-reason" }, `No diagram: ${reason}`)]));
      if (!content) return;
      content.slider.querySelector("input").setAttribute("aria-label", `Block of ${name}`);
      content.control = new Slider(content.slider, content.kindOf, content.labels, (block) => this.onMove(side, block));
    });
  }

  /** Draws the two `blocks`, marked by the rows of parts that `compared` gives for their kinds; returns those drawn. */
  draw(blocks, compared) {
    this.light(this.shown, false);
    this.blocks = blocks.map((block, side) => this.drawOne(side, block));
    this.rows = compared(this.sides.map(({ content }, side) => content?.kindOf[this.blocks[side]]));
    this.rows.forEach((row) => this.mark(row));
    const again = (row) => row && (this.rows.find(({ name }) => name === row.name) ?? null);
    this.pinned = again(this.pinned);
    const first = this.rows.find(({ state }) => state === "changed") ?? this.rows[0] ?? null;
    this.point(this.pinned ?? again(this.shown) ?? first);
    return this.blocks;
  }

  drawOne(side, block) {
    const { content, href } = this.sides[side];
    if (!content) return 0;
    content.control.set(block);
    const drawn = content.control.block;
    this.homes[side].diagram.replaceChildren(...content.diagrams.get(content.kindOf[drawn]));
    this.homes[side].page.href = href(drawn);
    return drawn;
  }

  /** Shows `row`, unless another one is pinned. */
  show(row) {
    if (!row) return;
    this.keepInView(true);
    if (!this.pinned && row !== this.shown) this.point(row);
  }

  /** Pins `row`, or lets go of it where it is pinned already. */
  toggle(row) {
    if (!row) return;
    this.pinned = this.pinned === row ? null : row;
    this.keepInView(Boolean(this.pinned));
    this.point(row);
  }

  /** Whether the facts stay at the bottom of the screen while their diagrams are taller than it. */
  keepInView(kept) {
    this.facts.toggleAttribute("data-open", kept);
  }

  /** Lights the part of `row` on both sides and sets its facts beside each other. */
  point(row) {
    this.light(this.shown, false);
    this.shown = row;
    this.light(row, true);
    const { names, blocks, pinned } = this;
    const missing = BOTH.map((side) => `not in block ${blocks[side]} of ${names[side]}`);
    this.facts.replaceChildren(...(row ? [facts(row, { names, blocks, pinned, missing })] : []));
  }

  light(row, lit) {
    for (const part of BOTH.flatMap((side) => this.partsOf(row, side))) {
      part.classList.toggle("is-shown", lit);
      part.classList.toggle("is-pinned", lit && Boolean(this.pinned));
      if (part.dataset.node) part.setAttribute("aria-pressed", String(lit && Boolean(this.pinned)));
    }
  }

  mark(row) {
    for (const side of BOTH) {
      for (const part of this.partsOf(row, side)) {
        part.dataset.differs = row.node.every(Boolean) ? row.state : "only";
        if (!part.dataset.node) continue;
        part.dataset.name ??= part.getAttribute("aria-label");
        part.setAttribute("aria-label", `${part.dataset.name}: ${difference(row, this.names)}`);
        sign(part, row, side);
      }
    }
  }

  /** The elements that draw `row` on `side`: the part itself, and lines and outlines that belong to it. */
  partsOf(row, side) {
    if (!row?.node[side]) return [];
    const id = CSS.escape(row.node[side]);
    return [...this.homes[side].diagram.querySelectorAll(`[data-node="${id}"], [data-line-of="${id}"]`)];
  }

  rowAt(event) {
    const part = event.target.closest?.("[data-node], [data-line-of]");
    const side = this.homes.findIndex(({ home }) => home.contains(part));
    return part && this.rows.find((row) => row.node[side] === (part.dataset.node ?? part.dataset.lineOf));
  }

  listen() {
    const { root, scroller } = this;
    const leave = () => this.keepInView(Boolean(this.pinned));
    root.addEventListener("pointerover", (event) => event.pointerType !== "touch" && this.show(this.rowAt(event)));
    root.addEventListener("pointerleave", leave);
    root.addEventListener("focusin", (event) => event.target.matches(":focus-visible") && this.show(this.rowAt(event)));
    root.addEventListener("focusout", (event) => root.contains(event.relatedTarget) || leave());
    root.addEventListener("click", (event) => this.toggle(this.rowAt(event)));
    root.addEventListener("keydown", (event) => {
      if (!["Enter", " "].includes(event.key) || !event.target.matches("g[data-node]")) return;
      event.preventDefault();
      if (!event.repeat) this.toggle(this.rowAt(event));
    });
    document.addEventListener("keydown", (event) => event.key === "Escape" && this.toggle(this.pinned));
    this.tabs.forEach((tab, side) =>
      tab.addEventListener("click", () => scroller.scrollTo({ left: side * scroller.scrollWidth })));
    scroller.addEventListener("scroll", () => {
      const second = scroller.scrollLeft > scroller.clientWidth / 2;
      this.tabs.forEach((tab, side) => tab.setAttribute("aria-pressed", String(second === Boolean(side))));
    }, { passive: true });
  }
}
