// The section on the block of one checkpoint: which block is drawn, which part is shown, which one is pinned.

import { Card } from "./card.js";
import { thaw } from "./elements.js";
import { kindsByBlock, Slider } from "./slider.js";

/** The block section in `root`, whose elements stay the same for as long as the page does. */
export class Block {
  constructor(root, onMove) {
    this.facts = JSON.parse(root.querySelector("[data-facts]").textContent);
    this.kindOf = kindsByBlock(this.facts.kinds);
    this.cards = Map.groupBy?.(this.facts.cards, (card) => card.id) ?? grouped(this.facts.cards);
    this.root = root.querySelector("[data-diagram]").closest(".block-view");
    this.strip = root.querySelector(".strip");
    this.diagrams = root.querySelector("[data-diagram]");
    this.diagram = this.diagrams.querySelector("[data-part=diagram]");
    this.identity = root.querySelector("[data-identity]");
    this.status = root.querySelector("[data-card-status]");
    this.card = new Card(root.querySelector("[data-card]"));
    this.slider = new Slider(root.querySelector(".slider"), this.kindOf, this.facts.kinds.map((kind) => kind.label), onMove);
    this.kind = this.kindOf[0];
    this.drawn = new Map([[this.kind, [this.diagram, [...this.identity.childNodes]]]]);
    this.frozen = new Map([...root.querySelectorAll("script[data-kind]")].map((script) => [Number(script.dataset.kind), script]));
    this.shown = this.opening();
    this.pinned = null;
    this.mark();
  }

  get block() {
    return this.slider.block;
  }

  has(node) {
    return this.cards.has(node);
  }

  /** Draws `block` and, where it is of another kind, exchanges the diagram. */
  move(block) {
    this.slider.set(block);
    const kind = this.kindOf[this.block];
    if (kind !== this.kind) {
      this.unmark();
      if (!this.drawn.has(kind)) this.drawn.set(kind, this.thawed(kind));
      const [diagram, identity] = this.drawn.get(kind);
      // A diagram that was drawn stays in the page, put away with its layout.
      this.diagram.dataset.away = "";
      delete diagram.dataset.away;
      if (!diagram.isConnected) this.diagrams.append(diagram);
      this.diagram = diagram;
      this.identity.replaceChildren(...identity);
      this.kind = kind;
      this.mark();
    }
    this.refresh();
  }

  /** The diagram of `kind` and what its identity consists of, made from what the page holds as text. */
  thawed(kind) {
    const [diagram, identity] = thaw(this.frozen.get(kind)).children;
    return [diagram, [...identity.childNodes]];
  }

  /** Shows `node`, unless another one is pinned. */
  show(node, aloud = false) {
    if (this.pinned || !this.has(node)) return;
    if (node !== this.shown) {
      this.unmark();
      this.shown = node;
      this.mark();
      this.refresh();
    }
    if (aloud) this.say();
  }

  /** Pins `node`, or with `null` lets go. */
  pin(node) {
    this.unmark();
    this.pinned = node && this.has(node) ? node : null;
    this.shown = this.pinned ?? this.shown;
    this.mark();
    this.refresh();
  }

  /** The part as it is visible: one of the two layouts of the diagram is not. */
  visible(node) {
    return this.parts(node).find((part) => part.getClientRects().length);
  }

  refresh() {
    const cards = this.cards.get(this.shown);
    const card = cards.find(({ kinds }) => kinds.includes(this.kind));
    const missing = card ? "" : this.missing(cards);
    this.card.show(card ?? cards[0], { block: this.block, kind: this.kind, pinned: Boolean(this.pinned), missing });
  }

  /** In words, where the shown part is instead. */
  missing(cards) {
    const first = Math.min(...cards.flatMap(({ kinds }) => kinds.map((kind) => this.facts.kinds[kind].blocks[0])));
    return `Block ${this.block} (${this.facts.kinds[this.kind].label}) has no such part; block ${first} is the first that has it.`;
  }

  say() {
    const shape = this.card.element.querySelector(".card-shape-text code")?.textContent;
    this.status.textContent = [this.card.slots.expression.textContent, shape, this.pinned && "pinned"].filter(Boolean).join(", ");
  }

  opening() {
    const expression = this.card.slots.expression.textContent.replace("[0]", "[i]");
    return this.facts.cards.find((card) => card.expression === expression && card.kinds.includes(this.kind)).id;
  }

  parts(node) {
    const name = CSS.escape(node);
    return [this.diagram, this.strip].flatMap((home) => [...home.querySelectorAll(`[data-node="${name}"]`)]);
  }

  unmark() {
    for (const home of [this.diagram, this.strip, this.identity]) {
      for (const part of home.querySelectorAll(".is-shown, .is-pinned, .is-lit")) {
        part.classList.remove("is-shown", "is-pinned", "is-lit");
        if (part.hasAttribute("aria-pressed")) part.setAttribute("aria-pressed", "false");
      }
    }
  }

  mark() {
    const name = CSS.escape(this.shown);
    for (const part of this.parts(this.shown)) {
      part.classList.add("is-shown");
      part.classList.toggle("is-pinned", Boolean(this.pinned));
      part.setAttribute("aria-pressed", String(Boolean(this.pinned)));
    }
    for (const line of this.diagram.querySelectorAll(`[data-line-of="${name}"]`)) {
      line.classList.add("is-shown");
      line.classList.toggle("is-pinned", Boolean(this.pinned));
    }
    for (const edge of this.diagram.querySelectorAll(`[data-from="${name}"], [data-to="${name}"]`)) edge.classList.add("is-lit");
    for (const term of this.identity.querySelectorAll(`[data-term="${name}"]`)) term.classList.add("is-lit");
  }
}

function grouped(cards) {
  const groups = new Map();
  for (const card of cards) groups.set(card.id, [...(groups.get(card.id) ?? []), card]);
  return groups;
}
