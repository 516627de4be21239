// Numbers as the page writes them.

const POWERS = [["P", 1e15], ["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]];
const COUNTS = [["T", 1e12], ["B", 1e9], ["M", 1e6], ["K", 1e3]];

/** A count for reading: `33.4 B`, `268 M`. */
export function amount(count) {
  return scaled(count, COUNTS).trim();
}

/** `count` with the prefix of a power of 1,000: `66.9 GB`. */
export function measure(count, unit) {
  return `${scaled(count, POWERS)}${unit}`;
}

/** `count` in full: `66,885,234,176`. */
export function exact(count) {
  return count.toLocaleString("en-US");
}

function scaled(count, powers) {
  const found = powers.find(([, size]) => count >= size);
  if (!found) return `${count} `;
  const value = count / found[1];
  return `${value.toFixed(value >= 100 ? 0 : 1)} ${found[0]}`;
}
