// The address: `#ckpt=ID&block=I&pin=NODE&context=N`. Anything else after the hash is an ordinary link and no state.

import { decoded, encoded } from "./spelling.js";

const KEYS = { ckpt: "checkpoint", block: "block", pin: "pin", context: "context" };
const PAUSE = 120;

/** The state that `hash` spells, or `null` where it is somebody else's. */
export function parse(hash) {
  const state = {};
  for (const pair of hash.replace(/^#/, "").split("&")) {
    const [key, ...rest] = pair.split("=");
    if (KEYS[key] && rest.length) state[KEYS[key]] = decoded(rest.join("="));
  }
  if (!Object.keys(state).length) return null;
  if ("context" in state) state.context = Math.max(Number.parseInt(state.context, 10) || 0, 0) || null;
  if ("block" in state) state.block = Number.parseInt(state.block, 10) || 0;
  return state;
}

/** The hash of `state`. Slashes stay, so that an address can be read. */
export function format({ checkpoint, block, pin, context }) {
  const more = `${pin ? `&pin=${encoded(pin)}` : ""}${context ? `&context=${context}` : ""}`;
  return `#ckpt=${encoded(checkpoint)}&block=${block}${more}`;
}

let waiting = null;
let later = 0;

/** Makes `state` a new entry of the history. */
export function push(state) {
  settle();
  if (format(state) !== location.hash) history.pushState(null, "", format(state));
}

/** Puts `state` in the current entry; several at once become one, because browsers limit how many they take. */
export function replace(state) {
  waiting = state;
  if (later) return;
  write();
  later = setTimeout(() => { later = 0; write(); }, PAUSE);
}

function settle() {
  clearTimeout(later);
  later = 0;
  write();
}

function write() {
  if (waiting) history.replaceState(null, "", format(waiting));
  waiting = null;
}
