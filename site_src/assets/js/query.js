// A flat state in the address's hash: `#q=doge&quirk=hybrid&quirk=tied-embeddings`. A hash that names none of a state's
// keys is an ordinary link and leaves the state at its defaults.

import { decoded, encoded } from "./spelling.js";

const PAUSE = 150;

/** What a page keeps in its address: texts under keys, or lists of texts. */
export class Query {
  /** `defaults` has every key, with `""` for a text and `[]` for a list. */
  constructor(defaults) {
    this.defaults = defaults;
    this.waiting = null;
    this.later = 0;
  }

  /** The state that `hash` spells. */
  parse(hash = location.hash) {
    const state = structuredClone(this.defaults);
    for (const pair of hash.replace(/^#/, "").split("&")) {
      const at = pair.indexOf("=");
      const key = pair.slice(0, at);
      if (at < 1 || !Object.hasOwn(state, key)) continue;
      const text = decoded(pair.slice(at + 1).replaceAll("+", " "));
      if (!Array.isArray(state[key])) state[key] = text;
      else if (text && !state[key].includes(text)) state[key].push(text);
    }
    return state;
  }

  /** The hash of `state`, empty where nothing differs from the defaults. Slashes stay, so that it can be read. */
  format(state) {
    const pairs = Object.keys(this.defaults).flatMap((key) =>
      [state[key]].flat().filter(Boolean).map((text) => `${key}=${encoded(text).replaceAll("%20", "+")}`));
    return pairs.length ? `#${pairs.join("&")}` : "";
  }

  /** Makes `state` a new entry of the history. */
  push(state) {
    this.settle();
    if (this.format(state) !== this.format(this.parse())) history.pushState(null, "", this.address(state));
  }

  /** Puts `state` in the current entry; several at once become one, because browsers limit how many they take. */
  replace(state) {
    this.waiting = state;
    clearTimeout(this.later);
    this.later = setTimeout(() => this.settle(), PAUSE);
  }

  /** Calls `changed(state)` when the reader goes back or forward, or edits the address. */
  listen(changed) {
    let last = location.hash;
    const follow = () => {
      if (location.hash === last && !this.waiting) return;
      this.drop();
      last = location.hash;
      changed(this.parse());
    };
    addEventListener("popstate", () => { last = null; follow(); });
    addEventListener("hashchange", follow);
    addEventListener("pagehide", () => this.settle());
  }

  settle() {
    const state = this.waiting;
    this.drop();
    if (state) history.replaceState(null, "", this.address(state));
  }

  drop() {
    clearTimeout(this.later);
    this.waiting = null;
  }

  address(state) {
    return this.format(state) || location.pathname + location.search;
  }
}
