// Files of what the table of models shows: the columns in sight, the rows found, in their order.

import { make } from "./elements.js";
import { answers } from "./models-query.js";

const TYPES = { csv: "text/csv", json: "application/json" };

/** The text of a file of `rows`; `kind` is `csv` or `json`, laid out as `data/models.csv` and `data/models.json`. */
export function textOf(kind, rows, columns) {
  return kind === "csv" ? csv(rows, columns) : json(rows, columns);
}

/** Has the browser save `text` under `name`. */
export function save(kind, name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: TYPES[kind] }));
  const link = make("a", { href: address, download: `${name}.${kind}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

function csv(rows, columns) {
  const lines = [columns.map((column) => column.heading)];
  for (const row of rows) lines.push(columns.map((column) => answers(row.cells[column.key]).join("; ")));
  return lines.map((line) => `${line.map(quoted).join(",")}\n`).join("");
}

function quoted(text) {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function json(rows, columns) {
  const cut = (row) => Object.fromEntries(columns.map((column) => [column.key, row.cells[column.key]]));
  return `${JSON.stringify({ columns, rows: rows.map(cut) }, null, 1)}\n`;
}
