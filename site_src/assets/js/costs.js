// The panel of costs: what depends on the length of the text is computed again at the length its reader sets.

import { exact, measure } from "./format.js";
import { parse } from "./state.js";

const SHORTEST = 128;
const LONGEST = 2 ** 20;
// Steps of the range between a power of two and the next.
const STEPS = 8;

/** Bytes of a cache of `entries` after `length` tokens. */
function cacheBytes(entries, length) {
  const inBlock = ([, fixed, each, window]) => fixed + each * Math.min(length, window ?? length);
  return entries.reduce((sum, entry) => sum + entry[0] * inBlock(entry), 0);
}

class Costs {
  constructor(article) {
    this.article = article;
    this.length = parse(location.hash)?.context ?? null;
    article.addEventListener("family:block", ({ detail }) => this.follow(detail.context));
    article.addEventListener("family:checkpoint", () => this.enter());
    article.addEventListener("input", ({ target }) => {
      if (target.matches("[data-costs-length]")) this.choose(target.valueAsNumber);
      if (target.matches("[data-costs-range]")) this.choose(lengthAt(target.valueAsNumber));
    });
    article.addEventListener("change", ({ target }) => target.matches("[data-costs-length]") && this.show());
    article.addEventListener("click", ({ target }) => {
      const preset = target.closest?.("[data-costs-preset]");
      if (preset) this.choose(Number(preset.dataset.costsPreset));
    });
    this.enter();
  }

  /** Takes up the panel of the checkpoint that is shown. */
  enter() {
    this.panel = this.article.querySelector("[data-region=depth] [data-costs]");
    if (!this.panel) return;
    this.facts = JSON.parse(this.panel.querySelector("[data-costs-facts]").textContent);
    this.presets = [...this.panel.querySelectorAll("[data-costs-preset]")];
    const longest = Math.max(LONGEST, ...this.presets.map((preset) => Number(preset.dataset.costsPreset)));
    this.panel.querySelector("[data-costs-range]").max = String(placeOf(longest));
    for (const control of this.panel.querySelectorAll("input, button")) control.disabled = false;
    this.show();
  }

  follow(context) {
    if (context === this.length) return;
    this.length = context;
    this.show();
  }

  choose(length) {
    if (!Number.isSafeInteger(length) || length < 1) return;
    this.length = length;
    this.show();
    this.article.dispatchEvent(new CustomEvent("family:context", { detail: { context: length } }));
  }

  show() {
    if (!this.panel) return;
    const length = this.length ?? Number(this.panel.dataset.length);
    const [fixed, each] = this.facts.flops;
    const [number, range] = this.panel.querySelectorAll("input");
    if (number.valueAsNumber !== length) number.value = String(length);
    range.value = String(placeOf(length));
    range.setAttribute("aria-valuetext", `${exact(length)} tokens`);
    for (const preset of this.presets) {
      preset.setAttribute("aria-pressed", String(Number(preset.dataset.costsPreset) === length));
    }
    for (const name of ["kept", "needed"].filter((cache) => this.facts[cache])) {
      this.put(name, cacheBytes(this.facts[name], length), "B", " bytes");
    }
    this.put("flops", fixed + each * length, "FLOP", "");
    const { window } = this.facts;
    this.panel.querySelector('[data-cost-label="flops"]').textContent = window && length > window ? "at most" : "";
  }

  put(name, count, unit, words) {
    const place = this.panel.querySelector(`[data-cost="${name}"]`);
    place.textContent = measure(count, unit);
    this.panel.querySelector(`[data-cost-exact="${name}"]`).textContent = `${exact(count)}${words}`;
  }
}

function lengthAt(place) {
  return SHORTEST * 2 ** Math.floor(place / STEPS) * (1 + (place % STEPS) / STEPS);
}

function placeOf(length) {
  const power = Math.floor(Math.log2(length / SHORTEST));
  return STEPS * power + Math.round(STEPS * (length / (SHORTEST * 2 ** power) - 1));
}

const article = document.querySelector("article.family");
if (article) new Costs(article);
