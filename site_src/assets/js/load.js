// What the site says of a family: its facts, and the diagrams that stand on its page.

import { thaw } from "./elements.js";
import { kindsByBlock } from "./slider.js";

const SITE = new URL("../../", import.meta.url);
const families = new Map();

/** The facts of `modelType` and the document of its page, fetched once; an error says what to do. */
export function family(modelType) {
  if (!families.has(modelType)) {
    const read = Promise.all([
      fetched(`data/${modelType}.json`, (text) => JSON.parse(text)),
      fetched(`families/${modelType}/`, (text) => new DOMParser().parseFromString(text, "text/html")),
    ]).then(([facts, page]) => ({ facts, page }));
    read.catch(() => families.delete(modelType));
    families.set(modelType, read);
  }
  return families.get(modelType);
}

/**
 * The block section of checkpoint `id` on `page`, as new elements; `null` where the page has none. Its `diagrams` are
 * lists of nodes by kind.
 */
export function blockOf(page, id) {
  const article = page.querySelector("article.family");
  const kept = page.querySelector(`script[data-checkpoint-content="${CSS.escape(id)}"]`);
  const source = article?.dataset.reference === id ? article : kept && thaw(kept);
  const region = source?.querySelector("[data-region=block]");
  if (!region) return null;
  const root = document.importNode(region, true);
  const { kinds, cards } = JSON.parse(root.querySelector("[data-facts]").textContent);
  const kindOf = kindsByBlock(kinds);
  const homes = new Map([...root.querySelectorAll("script[data-kind]")].map((script) =>
    [Number(script.dataset.kind), thaw(script).querySelector("[data-part=diagram]")]));
  homes.set(kindOf[0], root.querySelector("[data-diagram] [data-part=diagram]"));
  // Two diagrams beside each other have the room that one has on a phone.
  for (const home of homes.values()) home.querySelector(".diagram-wide").remove();
  const diagrams = new Map([...homes].map(([kind, home]) => [kind, [...home.childNodes]]));
  return { cards, kindOf, labels: kinds.map(({ label }) => label), slider: root.querySelector(".slider"), diagrams };
}

async function fetched(path, parse) {
  const advice = location.protocol === "file:"
    ? "browsers let no page read its neighbours from a file: serve the site, for example by python -m http.server"
    : "reload the page, or see whether this copy of the site is whole";
  const answer = await fetch(new URL(path, SITE)).catch((error) => ({ ok: false, status: error.message }));
  if (!answer.ok) throw new Error(`${path} could not be read (${answer.status}); ${advice}.`);
  return parse(await answer.text());
}
