// How roles look in a chart: a colour and, where two roles share one, a pattern; `depth.css` has the same as swatches.

const NAMES = ["mute", "line", "card", "stream", "attention", "mlp", "mlp-ink", "norm"];

/** Colours as the page's sheet has them now, by role. */
export function colours(element) {
  const sheet = getComputedStyle(element);
  return Object.fromEntries(NAMES.map((name) => [name, sheet.getPropertyValue(`--${name}`).trim()]));
}

/** The `marker` of the bars of a role in a block. */
export function markerOf(role, colour) {
  const soft = (name, part) => mix(colour[name], colour.card, part);
  const patterned = (name, part, shape, size = 6, solidity = 0.32, ink = 0.85) => ({
    color: soft(name, part),
    pattern: { shape, size, solidity, bgcolor: soft(name, part), fgcolor: soft(name, ink) },
  });
  return {
    attention: () => ({ color: soft("attention", 0.82) }),
    recurrent: () => patterned("attention", 0.3, "/"),
    mlp: () => ({ color: soft("mlp", 0.82) }),
    shared: () => patterned("mlp", 0.34, "-"),
    router: () => ({ color: colour["mlp-ink"] }),
    experts: () => patterned("mlp", 0.46, ".", 6, 0.26),
    idle: () => patterned("mlp", 0.06, "\\", 7, 0.14, 0.5),
    norm: () => ({ color: colour.norm }),
    other: () => ({ color: soft("mute", 0.7) }),
  }[role]();
}

/** The `marker` of the bars of a size. */
export function markerOfSize(role, colour) {
  return { color: mix(colour[role], colour.card, 0.72) };
}

/** `part` of a `#rrggbb` colour over the rest of another. */
function mix(over, under, part) {
  const channels = (hex) => [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
  const below = channels(under);
  const mixed = channels(over).map((value, at) => Math.round(value * part + below[at] * (1 - part)));
  return `rgb(${mixed.join(", ")})`;
}
