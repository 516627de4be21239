// The panel of costs: what depends on the length of the text is computed again at the length its reader sets.

import { exact, measure } from "./format.js";
import { parse } from "./state.js";

const SHORTEST = 128;
const STEPS = 1000;
const LONGEST = 2 ** 20;

/** Bytes of a cache of `entries` after `length` tokens. */
export function cacheBytes(entries, length) {
  return entries.reduce((sum, [blocks, fixed, each, window]) => sum + blocks * (fixed + each * Math.min(length, window ?? length)), 0);
}

class Costs {
  constructor(article) {
    this.article = article;
    this.length = parse(location.hash)?.context ?? null;
    article.addEventListener("family:block", ({ detail }) => this.follow(detail.context));
    article.addEventListener("family:checkpoint", () => this.enter());
    article.addEventListener("input", ({ target }) => {
      if (target.matches("[data-costs-length]")) this.choose(target.valueAsNumber);
      if (target.matches("[data-costs-range]")) this.choose(lengthAt(target.valueAsNumber, this.longest));
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
    this.longest = Math.max(LONGEST, ...this.presets.map((preset) => Number(preset.dataset.costsPreset)));
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
    range.value = String(placeOf(length, this.longest));
    range.setAttribute("aria-valuetext", `${exact(length)} tokens`);
    for (const preset of this.presets) preset.setAttribute("aria-pressed", String(Number(preset.dataset.costsPreset) === length));
    for (const name of ["kept", "needed"]) if (this.facts[name]) this.put(name, cacheBytes(this.facts[name], length), "B", " bytes");
    this.put("flops", fixed + each * length, "FLOP", "");
  }

  put(name, count, unit, words) {
    const place = this.panel.querySelector(`[data-cost="${name}"]`);
    const whole = this.panel.querySelector(`[data-cost-exact="${name}"]`);
    place.textContent = measure(count, unit);
    if (whole) whole.textContent = `${exact(count)}${words}`;
    else place.title = `${exact(count)}${words}`;
  }
}

// The range runs over powers of two, with the steps between them.
function lengthAt(place, longest) {
  const length = SHORTEST * (longest / SHORTEST) ** (place / STEPS);
  const power = 2 ** Math.floor(Math.log2(length) - 3);
  return Math.round(length / power) * power;
}

function placeOf(length, longest) {
  return Math.round((STEPS * Math.log(length / SHORTEST)) / Math.log(longest / SHORTEST));
}

const article = document.querySelector("article.family");
if (article) new Costs(article);
