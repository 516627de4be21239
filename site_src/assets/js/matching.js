// Finding families by a text: what matched, and how well.

import { make } from "./elements.js";

// In the order of their weight: a family is found by its title before one that merely serves a value of that name.
const SORTS = ["title", "model type", "checkpoint", "class", "quirk", "value"];
const WORDS_APART = 100;
const INSIDE_A_WORD = 0.5;
const NOT_ALL_OF_IT = 0.25;

/** `text` so that case and the characters between words make no difference; every letter keeps its place. */
export function plain(text) {
  return text.toLowerCase().replace(/[\s\-_./]/g, " ");
}

/** What `families` (the data of the front page) can be found by. */
export class Finder {
  constructor({ families, quirks, values }) {
    this.texts = new Map();
    this.families = families.map((family) => ({
      family,
      entries: [
        this.entry("title", family.title, ""),
        this.entry("model type", family.type, ""),
        ...family.checkpoints.map((id) => this.entry("checkpoint", id, `#ckpt=${id}`)),
        ...family.architectures.map((name) => this.entry("class", name, "")),
        ...family.quirks.map((slug) => this.entry("quirk", quirks[slug], `#quirk-${slug}`)),
        ...family.values.map((position) => this.entry("value", values[position], `#${values[position]}`)),
      ],
    }));
  }

  /** Equal texts are one, so that each is looked at once per search. */
  entry(sort, text, hash) {
    const key = `${sort}\n${text}`;
    if (!this.texts.has(key)) {
      this.texts.set(key, { sort, text, hash, plain: plain(text), rank: SORTS.indexOf(sort) });
    }
    return this.texts.get(key);
  }

  /** By model type, what matches `query`: `{score, hits: [{sort, text, hash, terms}]}`, lower scores first. */
  find(query) {
    const terms = plain(query).split(" ").filter(Boolean);
    const whole = terms.join(" ");
    const asked = terms.length > 1 ? [whole, ...terms] : [whole];
    const scores = new Map([...this.texts.values()].map((entry) => [entry, asked.map((term) => score(entry, term))]));
    const found = new Map();
    for (const { family, entries } of this.families) {
      const [all, ...each] = asked.map((term, index) => best(entries, (entry) => scores.get(entry)[index]));
      if (all.entry) found.set(family.type, { score: all.score, hits: [hit(all.entry, [whole])] });
      else if (each.length && each.every(({ entry }) => entry)) {
        const hits = new Map();
        each.forEach(({ entry }, index) => hits.set(entry, [...(hits.get(entry) ?? []), terms[index]]));
        const sum = each.reduce((total, one) => total + one.score, WORDS_APART);
        found.set(family.type, { score: sum, hits: [...hits].map(([entry, parts]) => hit(entry, parts)) });
      }
    }
    return found;
  }
}

function score(entry, term) {
  const at = entry.plain.indexOf(term);
  if (at < 0) return Infinity;
  const inside = at > 0 && !` ${entry.plain}`.includes(` ${term}`) ? INSIDE_A_WORD : 0;
  return entry.rank + inside + (entry.plain === term ? 0 : NOT_ALL_OF_IT);
}

function best(entries, scoreOf) {
  let found = { entry: null, score: Infinity };
  for (const entry of entries) {
    if (scoreOf(entry) < found.score) found = { entry, score: scoreOf(entry) };
  }
  return found;
}

function hit({ sort, text, hash }, terms) {
  return { sort, text, hash, terms };
}

/** `text` as nodes, with `terms` marked. */
export function marked(text, terms) {
  const flat = plain(text);
  const spans = terms.map((term) => [flat.indexOf(term), term.length]).filter(([at]) => at >= 0).sort((a, b) => a[0] - b[0]);
  const nodes = [];
  let end = 0;
  for (const [at, length] of spans) {
    if (at < end) continue;
    nodes.push(text.slice(end, at), make("mark", {}, text.slice(at, at + length)));
    end = at + length;
  }
  return [...nodes, text.slice(end)];
}
