// The two diagrams side by side: what differs is marked, and a part pointed at in one is shown in both.

import { dotted, make, rich } from "./card.js";
import { Slider } from "./slider.js";

const MARKS = { changed: "M-3.4-1.5h6.8M-3.4 1.5h6.8M-1.8 3.8L1.8-3.8", resized: "M-4 0h8M-2-2.2L-4.2 0-2 2.2M2-2.2L4.2 0 2 2.2" };
const WORDS = { changed: "differs", resized: "another size", equal: "the same" };
const FIELDS = { layout: "layout", shape: "shape", location: "read at", condition: "needs", said: "what", size: "what", class: "class" };

/** The section in `root`; `onMove(side, block)` hears of every block its reader goes to. */
export class Sides {
  constructor(root, onMove) {
    Object.assign(this, { root, onMove, contents: [null, null], sliders: [null, null], kinds: [0, 0], rows: [], pinned: null, shown: null });
    this.homes = [...root.querySelectorAll("[data-side]")];
    this.facts = root.querySelector("[data-part-facts]");
    this.scroller = root.querySelector("[data-sides]");
    this.tabs = [...root.querySelectorAll("[data-side-tab]")];
    this.tabs.forEach((tab, side) => tab.addEventListener("click", () => this.scroller.scrollTo({ left: this.homes[side].offsetLeft - this.scroller.offsetLeft })));
    this.scroller.addEventListener("scroll", () => this.seeTabs(), { passive: true });
    const rowAt = (event) => {
      const part = event.target.closest?.("[data-node], [data-line-of]");
      return part && this.rowOf(part.closest("[data-side]"), part.dataset.node ?? part.dataset.lineOf);
    };
    root.addEventListener("pointerover", (event) => event.pointerType !== "touch" && this.show(rowAt(event)));
    root.addEventListener("pointerleave", () => this.keepInView(Boolean(this.pinned)));
    root.addEventListener("focusin", (event) => event.target.matches(":focus-visible") && this.show(rowAt(event)));
    root.addEventListener("focusout", (event) => root.contains(event.relatedTarget) || this.keepInView(Boolean(this.pinned)));
    root.addEventListener("click", (event) => this.toggle(rowAt(event)));
    root.addEventListener("keydown", (event) => {
      if (!["Enter", " "].includes(event.key) || !event.target.matches("g[data-node]")) return;
      event.preventDefault();
      if (!event.repeat) this.toggle(rowAt(event));
    });
    document.addEventListener("keydown", (event) => event.key === "Escape" && this.pinned && this.toggle(this.pinned));
  }

  /** Takes the two checkpoints' blocks, as `{ name, href(block), content, reason }`; a content of `null` has a reason. */
  fill(sides) {
    this.sides = sides;
    this.pinned = this.shown = null;
    this.contents = sides.map(({ content }) => content);
    sides.forEach(({ name, content, reason, href }, side) => {
      const home = this.homes[side];
      const [heading, controls, diagram] = ["heading", "controls", "diagram"].map((part) => home.querySelector(`[data-side-${part}]`));
      heading.textContent = this.tabs[side].textContent = name;
      controls.replaceChildren(...(content ? [content.slider] : []));
      diagram.replaceChildren(...(content ? [] : [make("p", { class: "compare-reason" }, `No diagram: ${reason.replace(/\.?$/, ".")} `, make("a", { href: href(0) }, "Its page"))]));
      this.sliders[side] = content && new Slider(content.slider, content.kindOf, content.labels, (block) => this.onMove(side, block));
      content?.slider.querySelector("input").setAttribute("aria-label", `Block of ${name}`);
    });
    this.seeTabs();
  }

  /** Draws the two `blocks`, marked by `rows` of parts; gives the blocks that were drawn. */
  draw(blocks, compared) {
    const drawn = blocks.map((block, side) => {
      const content = this.contents[side];
      if (!content) return 0;
      this.sliders[side].set(block);
      const at = this.sliders[side].block;
      this.kinds[side] = content.kindOf[at];
      const diagram = this.homes[side].querySelector("[data-side-diagram]");
      const nodes = content.diagrams.get(this.kinds[side]);
      if (diagram.firstChild !== nodes[0]) diagram.replaceChildren(...nodes);
      this.homes[side].querySelector("[data-side-page]").href = this.sides[side].href(at);
      return at;
    });
    this.blocks = drawn;
    this.rows = compared(this.kinds);
    for (const row of this.rows) this.mark(row);
    const keep = this.rows.find(({ name }) => name === (this.pinned ?? this.shown)?.name);
    this.pinned = this.pinned && (keep ?? null);
    this.point(keep ?? this.rows.find(({ state }) => state === "changed") ?? this.rows[0] ?? null);
    return drawn;
  }

  rowOf(home, node) {
    return this.rows.find((row) => row.node[this.homes.indexOf(home)] === node);
  }

  show(row) {
    if (!row) return;
    this.keepInView(true);
    if (!this.pinned && row !== this.shown) this.point(row);
  }

  /** Whether the facts stay at the bottom of the screen while their diagrams are taller than it. */
  keepInView(kept) {
    this.facts.toggleAttribute("data-open", kept);
  }

  toggle(row) {
    if (!row) return;
    this.pinned = this.pinned === row ? null : row;
    this.keepInView(Boolean(this.pinned) || !matchMedia("(hover: none)").matches);
    this.point(row);
  }

  found(row, side) {
    const id = row?.node[side];
    return id ? [...this.homes[side].querySelectorAll(`[data-node="${CSS.escape(id)}"], [data-line-of="${CSS.escape(id)}"]`)] : [];
  }

  mark(row) {
    const alone = ["a", "b"].indexOf(row.state);
    [0, 1].forEach((side) => this.found(row, side).forEach((part) => {
      part.dataset.differs = alone < 0 ? row.state : "only";
      if (!part.dataset.node) return;
      part.dataset.name ??= part.getAttribute("aria-label");
      const words = alone < 0 ? WORDS[row.state] : `only in ${this.sides[side].name}`;
      const how = row.state === "changed" ? ` in ${[...new Set(row.fields.map((field) => FIELDS[field]))].join(", ")}` : "";
      part.setAttribute("aria-label", `${part.dataset.name}: ${words}${how}`);
      part.querySelector(".compare-badge")?.remove();
      if (row.state !== "equal") part.append(badge(part, alone < 0 ? row.state : "AB"[side]));
    }));
  }

  /** Lights the part of `row` on both sides and sets its facts beside each other. */
  point(row) {
    [0, 1].forEach((side) => this.found(this.shown, side).forEach((part) => {
      part.classList.remove("is-shown", "is-pinned");
      if (part.dataset.node) part.setAttribute("aria-pressed", "false");
    }));
    this.shown = row;
    [0, 1].forEach((side) => this.found(row, side).forEach((part) => {
      part.classList.add("is-shown");
      part.classList.toggle("is-pinned", Boolean(this.pinned));
      if (part.dataset.node) part.setAttribute("aria-pressed", String(Boolean(this.pinned)));
    }));
    this.facts.replaceChildren(...(row ? [this.table(row)] : []));
  }

  table(row) {
    const both = [row.a, row.b];
    const head = both.map((part, side) => make("th", { scope: "col" }, ...(part ? dotted(part.card.expression.replace("[i]", `[${this.blocks[side]}]`), true)
      : [make("span", { class: "compare-none" }, this.contents[side] ? `not in block ${this.blocks[side]} of ${this.sides[side].name}` : "no diagram")])));
    const kept = ["layout", "shape", "location", "condition", "said", "class"].filter((field) => both.some((part) => part?.[field]));
    const rows = kept.map((field) => {
      const differs = row.fields.includes(field) || (field === "said" && row.fields.includes("size"));
      return make("tr", differs ? { class: "is-other" } : {}, make("th", { scope: "row" }, FIELDS[field], ...(differs ? [make("span", { class: "compare-sign", title: "differs" }, "≠")] : [])),
        ...both.map((part) => make("td", {}, ...(part ? told(field, part[field]) : []))));
    });
    const state = row.state === "a" || row.state === "b" ? `only in ${this.sides["ab".indexOf(row.state)].name}` : WORDS[row.state];
    return make("table", { class: "compare-facts" }, make("thead", {}, make("tr", {}, make("td", {}, make("span", { class: "compare-state" }, state + (this.pinned ? " · pinned" : ""))), ...head)), make("tbody", {}, ...rows));
  }

  seeTabs() {
    const right = this.scroller.scrollLeft > this.scroller.clientWidth / 2;
    this.tabs.forEach((tab, side) => tab.setAttribute("aria-pressed", String(right === Boolean(side))));
  }
}

function told(field, value) {
  if (!value) return [{ condition: "nothing: every load has it", shape: "–" }[field] ?? "–"];
  if (field === "shape") return [make("code", {}, `[${value.join(", ")}]`)];
  if (field === "layout") return [make("code", {}, value)];
  return field === "location" ? [make("code", {}, ...dotted(value))] : rich(value);
}

/** A mark at the corner of a part: its form says how the part differs. */
function badge(part, sort) {
  // A title's outline stands in front of it.
  const before = part.previousElementSibling;
  const box = before?.matches("rect") && before.dataset.lineOf === part.dataset.node ? before : part.querySelector("rect, circle");
  const at = (name) => Number(box.getAttribute(name));
  const [x, y] = box.localName === "circle" ? [at("cx") + at("r") * 0.75, at("cy") - at("r") * 0.75]
    : part.matches(".diagram-stream") ? [at("x") + at("width") + 10, at("y") + at("height") / 2] : [at("x") + at("width") - 3, at("y") + 1];
  const mark = drawn("g", { class: `compare-badge compare-badge-${sort.toLowerCase()}`, transform: `translate(${x} ${y})`, "aria-hidden": "true" });
  mark.append(sort in MARKS ? drawn("rect", { x: -7, y: -7, width: 14, height: 14, rx: 3 }) : drawn("circle", { r: 7.5 }));
  if (sort in MARKS) mark.append(drawn("path", { d: MARKS[sort] }));
  else mark.append(drawn("text", { y: 3.8 }));
  if (mark.lastChild.localName === "text") mark.lastChild.textContent = sort;
  return mark;
}

function drawn(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}
