// The page that sets two checkpoints beside each other: which two, on which blocks, shown and spelled by the address.

import { Combobox } from "./combobox.js";
import { align, blockFacts, flat, kindAt, modelFacts, nearest, parts, quirks, records, values } from "./comparison.js";
import { make, rich } from "./elements.js";
import { blockOf, family } from "./load.js";
import { format, parse } from "./pair.js";
import { figure, plain, shown, table, value } from "./rows.js";
import { Sides } from "./sides.js";
import { count, summary } from "./summary.js";

const PAUSE = 120;

class Page {
  constructor(article) {
    const find = (name) => article.querySelector(`[data-compare-${name}]`);
    const names = ["result", "message", "summary", "blocks", "quirks", "sizes", "values", "config"];
    this.slots = Object.fromEntries(names.map((name) => [name, find(name)]));
    this.sentences = JSON.parse(find("quirk-sentences").textContent);
    this.opening = JSON.parse(article.dataset.opening);
    const groups = [...article.querySelectorAll("[data-family]")].map((home) => ({
      title: home.dataset.title,
      words: `${home.dataset.title} ${home.dataset.family}`,
      options: [...home.querySelectorAll("[data-choice]")].map(({ dataset }) =>
        ({ id: dataset.choice, note: dataset.note, family: home.dataset.family })),
    }));
    this.choices = new Map(groups.flatMap(({ options }) => options).map((option) => [option.id, option]));
    this.boxes = [...article.querySelectorAll("[data-picker]")].map((root, side) =>
      new Combobox(root, groups, (id) => this.go({ ids: this.state.ids.with(side, id), blocks: null })));
    this.sides = new Sides(find("block"), (side, block) => this.move(this.state.blocks.with(side, block)));
    find("swap").addEventListener("click", () =>
      this.go({ ids: this.state.ids.toReversed(), blocks: this.state.blocks?.toReversed() ?? null }));
    window.addEventListener("popstate", () => this.follow());
    find("pickers").hidden = false;
    find("without-script").hidden = true;
    find("all").open = false;
    this.follow();
  }

  /** Shows what the address asks for; what it leaves open is the plain block, or one that departs from it. */
  follow() {
    const { ids: [a, b], blocks } = parse(location.hash);
    // A link to a place on the page asks for no other pair.
    if (this.pair && location.hash && !a && !b) return;
    const [plainest, other = plainest] = this.opening;
    const beside = (id) => (id === plainest ? other : plainest);
    const first = a ?? beside(b ?? other);
    this.show({ ids: [first, b ?? beside(first)], blocks });
  }

  go(state) {
    history.pushState(null, "", format(state));
    this.show(state);
  }

  move(blocks) {
    this.draw(blocks);
    // Browsers limit how often an address may change.
    clearTimeout(this.later);
    this.later = setTimeout(() => history.replaceState(null, "", format(this.state)), PAUSE);
  }

  async show(state) {
    clearTimeout(this.later);
    this.state = state;
    state.ids.forEach((id, side) => this.boxes[side].set(id));
    const unknown = state.ids.findIndex((id) => !this.choices.has(id));
    if (unknown >= 0) return this.refuse(unknown);
    this.say(`Reading ${[...new Set(state.ids)].join(" and ")} …`);
    try {
      const found = await Promise.all(state.ids.map((id) => family(this.choices.get(id).family)));
      if (state === this.state) this.fill(found);
    } catch (error) {
      if (state === this.state) this.fail(error);
    }
  }

  /** Sets beside each other what belongs to the two checkpoints, whatever their blocks. */
  fill(found) {
    const { ids, blocks } = this.state;
    const short = ids.map((id) => id.split("/").at(-1));
    this.names = short[0] === short[1] ? ids : short;
    this.families = found.map(({ facts }) => facts);
    this.pair = this.families.map(({ checkpoints }, side) => checkpoints.find(({ id }) => id === ids[side]));
    this.contents = found.map(({ page }, side) => blockOf(page, ids[side]));
    this.whole = this.contents.every(Boolean);
    this.sides.fill(this.families.map(({ model_type, failure }, side) => ({
      name: this.names[side],
      content: this.contents[side],
      reason: failure?.reason ?? "its page shows none",
      href: (block) => `../families/${model_type}/${this.contents[side] ? `#ckpt=${ids[side]}&block=${block}` : ""}`,
    })));
    const [a, b] = this.pair;
    const { quirks: lists, sizes, config } = this.slots;
    lists.replaceChildren(...(this.whole ? this.quirkLists(quirks(a, b)) : [this.unverified()]));
    sizes.replaceChildren(table("Sizes and parameters", this.names,
      records(modelFacts(a), modelFacts(b)), (row) => plain(row, figure)));
    const keys = records(flat(a.config), flat(b.config));
    config.replaceChildren(table("Config", this.names, keys, (row) => plain(row, shown), "equal key"));
    this.draw(blocks ?? align(a, b));
    // What the address left open is spelled out, so that it shows the same wherever it is sent.
    history.replaceState(null, "", format(this.state));
    this.say();
    this.slots.result.hidden = false;
    document.title = `${this.names.join(" and ")} - ${document.title.split(" - ").at(-1)}`;
  }

  /** Sets beside each other what depends on the two blocks. */
  draw(asked) {
    const [a, b] = this.pair;
    const { summary: said, blocks: own, values: tables } = this.slots;
    const compared = (kinds) => (this.whole ? parts(...this.contents.map(({ cards }) => cards), kinds) : []);
    const blocks = this.sides.draw(asked, compared);
    this.state = { ids: this.state.ids, blocks };
    const kinds = [kindAt(a, blocks[0]), kindAt(b, blocks[1])];
    said.replaceChildren(...summary(a, b, kinds, this.names).map((sentence) => make("li", {}, ...rich(sentence))));
    if (!this.whole) {
      own.replaceChildren();
      tables.replaceChildren(this.unverified());
      return;
    }
    own.replaceChildren(table("The two blocks", this.names.map((name, side) => `block ${blocks[side]} of ${name}`),
      records(blockFacts(a, kinds[0]), blockFacts(b, kinds[1])), (row) => plain(row, figure)));
    tables.replaceChildren(...values(a, b, kinds).map(({ expression, rows }) =>
      table(make("code", {}, expression), this.names, rows, value, "equal value")));
  }

  quirkLists({ both, a, b }) {
    const item = (slug, { model_type }) => {
      const { label, sentence } = this.sentences[slug];
      return make("li", {}, make("a", { href: `../families/${model_type}/#quirk-${slug}` }, label), ` ${sentence}`);
    };
    const list = (slugs, facts) => make("ul", { class: "compare-quirks" },
      ...(slugs.length ? slugs.map((slug) => item(slug, facts)) : [make("li", {}, "none")]));
    const lists = [a, b].map((slugs, side) => make("div", {},
      make("h3", {}, `Only ${this.names[side]} `, make("span", {}, String(slugs.length))),
      list(slugs, this.families[side])));
    const shared = make("details", {},
      make("summary", {}, `${count(both.length, "quirk")} of both`), list(both, this.families[0]));
    return both.length ? [...lists, shared] : lists;
  }

  unverified() {
    const without = this.families.filter(({ failure }) => failure).map(({ model_type }) => model_type);
    const named = [...new Set(without)].join(" and ");
    return make("p", {}, `Nothing about ${named} could be verified, so there is nothing to compare here.`);
  }

  /** Says that the id on `side` is not known, and which ones are like it. */
  refuse(side) {
    const { ids } = this.state;
    const near = nearest(ids[side], [...this.choices.keys()]).flatMap((id, at) =>
      [at ? " or " : "Did you mean ", make("a", { href: format({ ids: ids.with(side, id) }) }, id)]);
    this.slots.result.hidden = true;
    this.say(`There is no checkpoint ${ids[side]} here. `, ...near, near.length ? "?" : "Choose one above.");
  }

  fail(error) {
    const again = make("button", { type: "button", class: "button" }, "Try again");
    again.addEventListener("click", () => this.show(this.state));
    this.slots.result.hidden = true;
    this.say(`${error.message} `, again);
  }

  say(...words) {
    this.slots.message.replaceChildren(...words);
  }
}

const article = document.querySelector("article.compare");
if (article) new Page(article);
