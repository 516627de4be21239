// The address of a comparison: `#a=ID&b=ID&block=I,J`. Slashes stay, so that an address can be read.

import { decoded, encoded } from "./spelling.js";

/** What `hash` asks for; `blocks` is `null` where it names none. */
export function parse(hash) {
  const asked = Object.fromEntries(hash.replace(/^#/, "").split("&").map((pair) => {
    const [key, ...rest] = pair.split("=");
    return [key, decoded(rest.join("="))];
  }));
  const blocks = (asked.block ?? "").split(",").map((text) => Number.parseInt(text, 10));
  const named = blocks.length === 2 && blocks.every((block) => block >= 0);
  return { ids: [asked.a || null, asked.b || null], blocks: named ? blocks : null };
}

/** The hash of two ids and, where they are given, their blocks. */
export function format({ ids, blocks }) {
  const [a, b] = ids.map(encoded);
  return `#a=${a}&b=${b}${blocks ? `&block=${blocks.join(",")}` : ""}`;
}
