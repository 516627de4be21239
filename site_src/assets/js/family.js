// A family's page: one state (checkpoint, block, pinned part, length of the context), shown by the page and spelled by
// the address. Others hear of it by `family:block` and `family:checkpoint`, ask by
// `family:ask` (where it is), `family:go` and `family:context`.
// Runs as soon as the block stands in the page, while what comes after it is still being read.

import { Block } from "./block.js";
import { thaw } from "./elements.js";
import { Selector } from "./selector.js";
import { parse, push, replace } from "./state.js";

class Page {
  constructor(article) {
    this.article = article;
    this.reference = article.querySelector("[data-selector]").dataset.reference;
    this.contents = new Map();
    this.blocks = new Map();
    this.selector = new Selector(article.querySelector("[data-selector]"), (id) => this.choose(id));
    this.state = { checkpoint: this.reference, block: 0, pin: null, context: null };
    this.block = this.blockOf(this.reference);
    this.listen();
    this.arrive();
  }

  /** Shows what the page was opened for. Other checkpoints stand at its end, so for one the whole page has to be there. */
  arrive() {
    const asked = parse(location.hash)?.checkpoint ?? this.reference;
    if (asked !== this.reference && document.readyState === "loading") {
      document.addEventListener("DOMContentLoaded", () => this.arrive(), { once: true });
      return;
    }
    this.follow();
    if (!this.state.pin) return;
    this.block.visible(this.state.pin)?.scrollIntoView({ block: "center" });
    this.uncover(this.state.pin);
  }

  /** Shows the state that the address spells; a link to a place on the page changes nothing. */
  follow() {
    const asked = location.hash.length > 1 ? parse(location.hash) : {};
    if (!asked) return;
    const known = this.selector.ids.includes(asked.checkpoint);
    this.show({
      checkpoint: known ? asked.checkpoint : this.reference,
      block: asked.block ?? 0,
      pin: asked.pin ?? null,
      context: asked.context ?? null,
    });
  }

  choose(checkpoint) {
    if (checkpoint === this.state.checkpoint) return;
    this.show({ ...this.state, checkpoint });
    push(this.state);
  }

  move(block) {
    this.show({ ...this.state, block });
    replace(this.state);
  }

  /** Pins `node`, lets go of it where it is pinned already; `null` lets go of any. */
  toggle(node) {
    this.show({ ...this.state, pin: node === this.state.pin ? null : node });
    push(this.state);
    if (this.state.pin) {
      this.block.say();
      requestAnimationFrame(() => this.uncover(this.state.pin));
    }
  }

  show({ checkpoint, block, pin, context }) {
    if (checkpoint !== this.state.checkpoint) this.exchange(checkpoint);
    this.selector.set(checkpoint);
    if (block !== this.block.block) this.block.move(block);
    if (pin !== this.block.pinned) this.block.pin(pin);
    this.state = { checkpoint, block: this.block.block, pin: this.block.pinned, context };
    this.tell();
  }

  /** Says where the page is. */
  tell() {
    const { checkpoint, block, context } = this.state;
    this.announce("family:block", { checkpoint, block, kind: this.block.kind, context });
  }

  exchange(checkpoint) {
    const regions = regionsOf(this.article);
    const leaving = partsOf(regions);
    const arriving = this.contents.get(checkpoint) ?? this.thawed(checkpoint);
    for (const [name, region] of regions) region.replaceChildren(...(arriving.get(name) ?? []));
    this.contents.set(this.state.checkpoint, leaving);
    this.contents.delete(checkpoint);
    this.block = this.blockOf(checkpoint);
    this.announce("family:checkpoint", { checkpoint });
  }

  /** By region, what the page holds as text for `checkpoint`. */
  thawed(checkpoint) {
    const idOf = ({ dataset }) => dataset.checkpointContent ?? dataset.checkpointDepth;
    const waiting = this.article.querySelectorAll("script[data-checkpoint-content], script[data-checkpoint-depth]");
    const own = [...waiting].filter((script) => idOf(script) === checkpoint);
    return new Map(own.flatMap((script) => [...partsOf(regionsOf(thaw(script)))]));
  }

  blockOf(checkpoint) {
    if (!this.blocks.has(checkpoint)) {
      this.blocks.set(checkpoint, new Block(this.article.querySelector("[data-region=block]"), (block) => this.move(block)));
    }
    return this.blocks.get(checkpoint);
  }

  listen() {
    const region = this.article.querySelector("[data-region=block]");
    const nodeAt = (event) => {
      const part = event.target.closest?.("[data-node], [data-line-of]");
      return part?.dataset.node ?? part?.dataset.lineOf;
    };
    region.addEventListener("pointerover", (event) => {
      const node = nodeAt(event);
      if (node && event.pointerType !== "touch") this.block.show(node);
    });
    region.addEventListener("focusin", (event) => {
      const node = nodeAt(event);
      if (!node || !event.target.matches(":focus-visible")) return;
      this.block.show(node, true);
      this.block.card.element.dataset.open = "";
      requestAnimationFrame(() => this.uncover(node));
    });
    region.addEventListener("focusout", (event) => {
      if (!event.relatedTarget?.closest("[data-node], [data-card]")) delete this.block.card.element.dataset.open;
    });
    region.addEventListener("click", (event) => {
      const node = nodeAt(event);
      if (node) this.toggle(node);
      else if (event.target.closest?.("[data-card-close]")) this.toggle(null);
    });
    region.addEventListener("keydown", (event) => {
      // Buttons turn these keys into clicks themselves; a group of an SVG does not.
      if (!["Enter", " "].includes(event.key) || !event.target.matches("g[data-node]")) return;
      event.preventDefault();
      if (!event.repeat) this.toggle(event.target.dataset.node);
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.state.pin) this.toggle(null);
    });
    this.article.addEventListener("click", (event) => {
      if (event.target.closest?.("[data-show-in-block]")) region.scrollIntoView({ behavior: calm() ? "auto" : "smooth" });
    });
    this.article.addEventListener("family:ask", () => this.tell());
    this.article.addEventListener("family:go", ({ detail }) => this.move(detail.block));
    this.article.addEventListener("family:context", ({ detail }) => {
      this.state.context = detail.context;
      replace(this.state);
    });
    window.addEventListener("popstate", () => this.follow());
  }

  /** Scrolls so that a card at the bottom of a small screen does not cover the part it is about. */
  uncover(node) {
    const card = this.block.card.element;
    if (getComputedStyle(card).position !== "fixed") return;
    const part = this.block.visible(node)?.getBoundingClientRect();
    const hidden = part ? part.bottom + 20 - (innerHeight - card.offsetHeight) : 0;
    if (hidden > 0) scrollBy({ top: hidden, behavior: calm() ? "auto" : "smooth" });
  }

  announce(name, detail) {
    this.article.dispatchEvent(new CustomEvent(name, { bubbles: true, detail }));
  }
}

function calm() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/** By name, the elements under `root` whose content is a checkpoint's. */
function regionsOf(root) {
  return new Map([...root.querySelectorAll("[data-region]")].map((region) => [region.dataset.region, region]));
}

function partsOf(regions) {
  return new Map([...regions].map(([name, region]) => [name, [...region.childNodes]]));
}

/** Waits until the page has been read up to what follows the block. */
function blockRead() {
  const there = () => document.readyState !== "loading" || document.getElementById("depth");
  return new Promise((resolve) => {
    if (there()) {
      resolve();
      return;
    }
    const reading = new MutationObserver(() => {
      if (!there()) return;
      reading.disconnect();
      resolve();
    });
    reading.observe(document, { childList: true, subtree: true });
  });
}

await blockRead();
const article = document.querySelector("article.family");
if (article) {
  new Page(article);
  // From here on the slider moves and a part answers.
  performance.mark("family:usable");
}
