// The page that sets two checkpoints beside each other: which two, on which blocks, shown and spelled by the address.

import { make, rich } from "./card.js";
import { Combobox } from "./combobox.js";
import { align, costs, count, flat, kindAt, nearest, parts, quirks, records, summary, values } from "./comparison.js";
import { blockOf, family } from "./load.js";
import { format, parse } from "./pair.js";
import { figure, plain, shown, table, value } from "./rows.js";
import { Sides } from "./sides.js";

const PAUSE = 120;

class Page {
  constructor(article) {
    const find = (name) => article.querySelector(`[data-compare-${name}]`);
    this.slots = Object.fromEntries(["result", "message", "summary", "blocks", "quirks", "sizes", "values", "config"].map((name) => [name, find(name)]));
    this.known = JSON.parse(find("quirk-sentences").textContent);
    this.opening = JSON.parse(article.dataset.opening);
    const groups = [...article.querySelectorAll("[data-family]")].map((home) => ({
      title: home.dataset.title, words: `${home.dataset.title} ${home.dataset.family}`,
      options: [...home.querySelectorAll("[data-choice]")].map((link) => ({ id: link.dataset.choice, note: link.dataset.note, family: home.dataset.family })),
    }));
    this.choices = new Map(groups.flatMap(({ options }) => options).map((option) => [option.id, option]));
    this.boxes = [...article.querySelectorAll("[data-picker]")].map((root, side) => new Combobox(root, groups, (id) => this.choose(side, id)));
    this.sides = new Sides(find("block"), (side, block) => this.move(side, block));
    this.state = { ids: [null, null], blocks: null };
    find("swap").addEventListener("click", () => this.go({ ids: this.state.ids.toReversed(), blocks: this.state.blocks?.toReversed() }));
    window.addEventListener("popstate", () => this.follow());
    find("pickers").hidden = false;
    find("without-script").hidden = true;
    find("all").open = false;
    this.follow();
  }

  /** Shows what the address asks for; what it leaves open is the plain block, or one that departs from it. */
  follow() {
    const asked = parse(location.hash);
    const [plainest, other = plainest] = this.opening;
    const [a, b] = asked.ids;
    return this.show({ ids: [a ?? (b === plainest ? other : plainest), b ?? ((a ?? plainest) === plainest ? other : plainest)], blocks: asked.blocks });
  }

  choose(side, id) {
    const ids = [...this.state.ids];
    ids[side] = id;
    return this.go({ ids, blocks: null });
  }

  async go(state) {
    // The entry of the history is written first, so that going back leads from what is asked and not from what arrived.
    history.pushState(null, "", format(state));
    await this.show(state);
  }

  move(side, block) {
    const blocks = [...this.state.blocks];
    blocks[side] = block;
    this.draw(blocks);
    // Browsers limit how often an address may change.
    clearTimeout(this.later);
    this.later = setTimeout(() => history.replaceState(null, "", format(this.state)), PAUSE);
  }

  async show({ ids, blocks }) {
    clearTimeout(this.later);
    this.state = { ids, blocks };
    ids.forEach((id, side) => this.boxes[side].set(id ?? ""));
    const unknown = ids.findIndex((id) => !this.choices.has(id));
    if (unknown >= 0) return this.refuse(unknown);
    this.say(`Reading ${[...new Set(ids)].join(" and ")} …`);
    this.slots.result.setAttribute("aria-busy", "true");
    const asked = this.state;
    try {
      const found = await Promise.all(ids.map(async (id) => ({ id, ...(await family(this.choices.get(id).family)) })));
      if (asked === this.state) this.fill(found, blocks);
    } catch (error) {
      if (asked === this.state) this.fail(error);
    }
  }

  fill(found, asked) {
    const short = found.map(({ id }) => id.split("/").at(-1));
    this.names = short[0] === short[1] ? found.map(({ id }) => id) : short;
    this.pair = found.map(({ id, facts }) => facts.checkpoints.find((checkpoint) => checkpoint.id === id));
    this.families = found.map(({ facts }) => facts);
    this.contents = found.map(({ id, page }) => blockOf(page, id));
    this.sides.fill(found.map(({ id, facts }, side) => ({
      name: this.names[side], content: this.contents[side], reason: facts.failure?.reason ?? "its page shows none.",
      href: (block) => `../families/${facts.model_type}/${this.contents[side] ? `#ckpt=${id}&block=${block}` : ""}`,
    })));
    this.say("");
    this.slots.result.hidden = false;
    this.slots.result.removeAttribute("aria-busy");
    const [a, b] = this.pair;
    const whole = this.contents.every(Boolean);
    this.slots.quirks.replaceChildren(...(whole ? this.quirkLists(quirks(a, b)) : [this.unverified()]));
    const kinds = ({ kinds: all }) => (all.length ? { "kinds of blocks": all.map(({ label, blocks }) => `${blocks.length} × ${label}`).join("; ") } : {});
    this.slots.sizes.replaceChildren(table("Sizes and parameters", this.names,
      records({ ...costs(a), ...a.sizes, ...kinds(a) }, { ...costs(b), ...b.sizes, ...kinds(b) }), (row) => plain(row, figure)));
    this.slots.config.replaceChildren(table("Config", this.names, records(flat(a.config), flat(b.config)), (row) => plain(row, shown), { equals: "equal key" }));
    this.draw(asked ?? align(a, b));
    document.title = document.title.replace(/^.*?(?= - |$)/, `${this.names.join(" and ")}`);
  }

  draw(asked) {
    const [a, b] = this.pair;
    const whole = this.contents.every(Boolean);
    const blocks = this.sides.draw(asked, (kinds) => (whole ? parts(this.contents[0].cards, this.contents[1].cards, kinds) : []));
    this.state = { ids: this.state.ids, blocks };
    const kinds = [kindAt(a, blocks[0]), kindAt(b, blocks[1])];
    this.slots.summary.replaceChildren(...summary(a, b, kinds, this.names).map((said) => make("li", {}, ...rich(said))));
    this.slots.blocks.replaceChildren(...(whole ? [table("The two blocks", this.names.map((name, side) => `block ${blocks[side]} of ${name}`),
      records(about(a, kinds[0]), about(b, kinds[1])), (row) => plain(row, figure))] : []));
    this.slots.values.replaceChildren(...(whole ? values(a, b, kinds).map(({ expression, rows }) =>
      table(make("code", {}, expression), this.names, rows, value, { equals: "equal value" })) : [this.unverified()]));
  }

  unverified() {
    const without = this.families.flatMap(({ model_type, failure }) => (failure ? [model_type] : []));
    return make("p", {}, `Nothing about ${[...new Set(without)].join(" and ")} could be verified, so there is nothing to compare here.`);
  }

  quirkLists({ both, a, b }) {
    const list = (title, slugs, facts) => make("div", {}, make("h3", {}, `${title} `, make("span", {}, String(slugs.length))), make("ul", { class: "compare-quirks" },
      ...(slugs.length ? slugs : [null]).map((slug) => make("li", {}, ...(slug ? [make("a", { href: `../families/${facts.model_type}/#quirk-${slug}` }, this.known[slug]?.label ?? slug), ` ${this.known[slug]?.sentence ?? ""}`] : ["none"])))));
    const [one, other] = this.families;
    const shared = make("details", {}, make("summary", {}, `${count(both.length, "quirk")} of both`), list("Both", both, one));
    return [list(`Only ${this.names[0]}`, a, one), list(`Only ${this.names[1]}`, b, other), ...(both.length ? [shared] : [])];
  }

  refuse(side) {
    const asked = this.state.ids[side];
    const near = nearest(asked ?? "", [...this.choices.keys()]).map((id) => {
      const ids = [...this.state.ids];
      ids[side] = id;
      return make("a", { href: format({ ids: ids.map((each) => each ?? id) }) }, id);
    });
    this.slots.result.hidden = true;
    this.say(`There is no checkpoint ${asked} here. `, ...(near.length ? ["Did you mean ", ...near.flatMap((link, at) => (at ? [" or ", link] : [link])), "?"]
      : ["Choose one above, or see the list below."]));
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

/** What a kind of block amounts to, by name. */
function about(checkpoint, kind) {
  const { label, blocks, attention_type, modules, sizes, identity, identity_error, parameters } = checkpoint.kinds[kind];
  const total = checkpoint.kinds.reduce((sum, each) => sum + each.blocks.length, 0);
  const exact = identity_error === 0 ? "exact" : identity_error?.toExponential(1);
  return {
    identity: identity ?? "no exact sum", ...(identity && { "largest error": exact ?? "not checked" }),
    kind: label, "blocks of this kind": `${blocks.length} of ${total}`, "attention type": attention_type, ...sizes,
    ...Object.fromEntries((parameters ?? []).map(({ role, total: amount }) => [`parameters, ${role}`, amount])),
    ...Object.fromEntries(Object.entries(modules).map(([host, name]) => [`class of ${host}`, name])),
  };
}

const article = document.querySelector("article.compare");
if (article) new Page(article);
