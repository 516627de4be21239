// What is asked of the table of models: words, ranges, choices, order and columns; its address, and the rows it finds.

import { decoded } from "./spelling.js";

const OWN = ["q", "sort", "columns"];
const UNITS = { k: 1e3, m: 1e6, b: 1e9, g: 1e9, t: 1e12 };
const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/** A query that asks for nothing. */
export function nothing() {
  return { search: "", sort: [], ranges: {}, choices: {}, columns: null };
}

/** The number that `text` spells, such as `4,096`, `7B`, `128k`, `16 GB` or `6 GFLOP`; `null` where it is empty, `NaN` where none. */
export function numberIn(text) {
  if (!text.trim()) return null;
  const found = /^([\d,]*\.?\d+)\s*(?:([kmbgt])(?:b|flop)?)?$/i.exec(text.trim());
  return found ? Number(found[1].replaceAll(",", "")) * (UNITS[found[2]?.toLowerCase()] ?? 1) : NaN;
}

/** The query that `hash` spells for `columns`; what it spells of no column is left out. */
export function parse(hash, columns) {
  const query = nothing();
  const byKey = new Map(columns.map((column) => [column.key, column]));
  for (const pair of hash.replace(/^#/, "").split("&")) {
    const [key, ...rest] = pair.split("=");
    const parts = rest.join("=").split(",").map(decoded);
    const known = (name) => byKey.has(name.replace(/^-/, ""));
    if (key === "q") query.search = decoded(rest.join("="));
    else if (key === "sort") {
      query.sort = parts.filter(known).map((part) => ({ key: part.replace(/^-/, ""), down: part.startsWith("-") }));
    } else if (key === "columns") query.columns = parts.filter((part) => byKey.has(part));
    else if (!byKey.has(key)) continue;
    else if (byKey.get(key).sort === "text") query.choices[key] = parts;
    else query.ranges[key] = [...decoded(rest.join("=")).split(".."), ""].slice(0, 2);
  }
  return query;
}

/** Whether `hash` is an address of the table, and not a link to a part of the page. */
export function isAddress(hash, columns) {
  const keys = hash.replace(/^#/, "").split("&").map((pair) => pair.split("=")[0]);
  return hash.length < 2 || keys.some((key) => OWN.includes(key) || columns.some((column) => column.key === key));
}

/** The address of `query`, without the hash; empty where it asks for nothing. */
export function format(query) {
  const words = (list) => list.map(encodeURIComponent).join(",");
  const pairs = [];
  if (query.search) pairs.push(`q=${encodeURIComponent(query.search)}`);
  for (const [key, list] of Object.entries(query.choices)) if (list.length) pairs.push(`${key}=${words(list)}`);
  for (const [key, [from, to]] of Object.entries(query.ranges)) {
    if (from || to) pairs.push(`${key}=${encodeURIComponent(from)}..${encodeURIComponent(to)}`);
  }
  if (query.sort.length) pairs.push(`sort=${query.sort.map(({ key, down }) => (down ? "-" : "") + key).join(",")}`);
  if (query.columns) pairs.push(`columns=${query.columns.join(",")}`);
  return pairs.join("&");
}

/** A cell's answers as a list. */
export function answers(cell) {
  return cell === null ? [] : Array.isArray(cell) ? cell : [cell];
}

/** The places of the `rows` that `query` finds, in its order. */
export function find(rows, columns, query) {
  const tests = testsOf(columns, query);
  const found = [];
  rows.forEach((row, place) => {
    if (tests.every((test) => test(row))) found.push(place);
  });
  return sorted(found, rows, columns, query.sort);
}

function testsOf(columns, query) {
  const tests = query.search.toLowerCase().split(/\s+/).filter(Boolean)
    .map((word) => (row) => row.words.includes(word));
  for (const column of columns) {
    const chosen = query.choices[column.key] ?? [];
    if (chosen.length) {
      const has = (row) => (word) => answers(row.cells[column.key]).includes(word);
      tests.push((row) => (column.every ? chosen.every(has(row)) : chosen.some(has(row))));
    }
    const [from, to] = (query.ranges[column.key] ?? ["", ""]).map(numberIn);
    if (from !== null || to !== null) {
      tests.push((row) => answers(row.cells[column.key])
        .some((value) => !(value < (from ?? -Infinity)) && !(value > (to ?? Infinity))));
    }
  }
  return tests;
}

function sorted(places, rows, columns, sort) {
  const orders = sort.map(({ key, down }) => {
    const number = columns.find((column) => column.key === key).sort === "number";
    const keys = rows.map((row) => {
      const list = answers(row.cells[key]);
      if (!list.length) return null;
      return number ? Math[down ? "max" : "min"](...list) : list.join(", ");
    });
    const compare = number ? (one, other) => one - other : collator.compare;
    return (one, other) => {
      const [first, second] = [keys[one], keys[other]];
      // What has no answer comes last either way.
      if (first === null || second === null) return (first === null) - (second === null);
      return compare(first, second) * (down ? -1 : 1);
    };
  });
  return places.sort((one, other) => {
    for (const order of orders) {
      const found = order(one, other);
      if (found) return found;
    }
    return one - other;
  });
}
