// Which families hold what a reader chose, and what would be left without one choice.

const UNITS = { k: 1e3, m: 1e6, b: 1e9, t: 1e12 };

/** A number of parameters as people write it, such as `7B`; `NaN` where it is none. */
function countIn(text) {
  const [, digits, unit] = /^\s*([\d.]+)\s*([kmbt]?)\s*$/i.exec(text) ?? [];
  return digits ? Number(digits) * (UNITS[unit.toLowerCase()] ?? 1) : NaN;
}

/** Whether `family` holds every filter of `state` but the one named `without`. */
export function holds(family, state, without = null) {
  return Object.entries(TESTS).every(([key, test]) => key === without || test(family, state));
}

/** The names under which `family` counts in the filter `key`. */
export function names(family, key) {
  return NAMES[key](family);
}

const NAMES = {
  quirk: (family) => family.quirks,
  value: (family) => family.valueNames,
  mixer: (family) => (family.mixer ? [family.mixer] : []),
  mlp: (family) => family.mlps,
  group: (family) => [family.group],
};

const TESTS = {
  ...Object.fromEntries(Object.entries(NAMES).map(([key, of]) => [key, (family, state) => {
    const having = of(family);
    return [state[key]].flat().filter(Boolean).every((name) => having.includes(name));
  }])),
  // One checkpoint has to lie between both bounds, so neither is tested without the other.
  parameters: (family, { min, max }) => {
    if (!min && !max) return true;
    const [low, high] = [min ? countIn(min) : 0, max ? countIn(max) : Infinity];
    return family.parameters.some((count) => count >= low && count <= high);
  },
  annotated: (family, { annotated }) => !annotated || family.annotated,
};
