// The table of models: sorted, filtered, cut to the columns asked for, and saved. The rows stand in the page; what they
// hold as data is read from `data/models.json`, whose rows are in the same order.

import { make } from "./elements.js";
import { recall, remember } from "./memory.js";
import { save, textOf } from "./models-export.js";
import { answers, find, format, isAddress, nothing, numberIn, parse } from "./models-query.js";
import { RowWindow } from "./models-window.js";

const REMEMBERED = "models-columns";
const PAUSE = 150;

class Models {
  constructor(root, data) {
    this.root = root;
    this.columns = data.columns;
    this.rows = data.rows.map((cells) => ({ cells, words: wordsOf(cells, data.columns) }));
    this.table = this.one("table");
    this.window = new RowWindow(this.one("scroll"), this.table.tBodies[0], [...this.table.tBodies[0].rows]);
    this.query = nothing();
    this.makeHeaders();
    this.listen();
    this.read();
    this.table.dataset.ready = "";
    delete this.one("first").dataset.modelsFirst;
    this.one("tools").hidden = false;
  }

  one(name) {
    return this.root.querySelector(`[data-models-${name}]`);
  }

  all(name) {
    return [...this.root.querySelectorAll(`[data-models-${name}]`)];
  }

  makeHeaders() {
    this.headers = [...this.table.tHead.rows[0].cells];
    this.widths = [...this.table.querySelectorAll("col")];
    this.table.tHead.rows[0].setAttribute("aria-rowindex", 1);
    for (const header of this.headers) {
      const button = make("button", { type: "button" }, ...header.childNodes);
      button.addEventListener("click", () => this.sortBy(header.dataset.key));
      header.append(button);
      header.dataset.ordered = "";
    }
  }

  listen() {
    const { root } = this;
    this.one("tools").addEventListener("submit", (event) => event.preventDefault());
    for (const button of this.all("opens")) {
      button.addEventListener("click", () => this.open(button, button.getAttribute("aria-expanded") !== "true"));
    }
    for (const button of this.all("export")) {
      button.addEventListener("click", () => this.save(button.dataset.modelsExport));
    }
    this.one("clear").addEventListener("click", () => {
      this.change({ ...nothing(), columns: this.query.columns });
      this.one("search").focus();
    });
    this.one("usual").addEventListener("click", () => this.chooseColumns(null));
    this.one("active").addEventListener("click", (event) => this.dropFilter(event.target.closest("button")));
    root.addEventListener("input", (event) => this.input(event.target));
    root.addEventListener("pointerover", ({ target }) => {
      const cell = target.closest("td, tbody th");
      if (cell && cell.scrollWidth > cell.clientWidth) cell.title = cell.textContent;
    });
    addEventListener("hashchange", () => isAddress(location.hash, this.columns) && this.read());
  }

  input(field) {
    const query = { ...this.query };
    const range = field.closest("[data-models-range]");
    const choice = field.closest("[data-models-choice]");
    if (field.matches("[data-models-search]")) query.search = field.value;
    else if (field.dataset.modelsColumn) return this.chooseColumns(this.all("column").filter((box) => box.checked)
      .map((box) => box.dataset.modelsColumn));
    else if (range) {
      const ends = ["from", "to"].map((end) => range.querySelector(`[data-${end}]`));
      query.ranges = { ...query.ranges, [range.dataset.modelsRange]: ends.map((end) => end.value.trim()) };
    } else if (choice) {
      const chosen = [...choice.querySelectorAll(":checked")].map((box) => box.value);
      query.choices = { ...query.choices, [choice.dataset.modelsChoice]: chosen };
    }
    return this.change(query, false);
  }

  /** Takes the address over; columns that it does not name are those chosen last. */
  read() {
    const query = parse(location.hash, this.columns);
    query.columns ??= rememberedColumns()?.filter((key) => this.columns.some((column) => column.key === key)) ?? null;
    this.change(query);
  }

  /** Makes `query` the one shown; `fill` writes it into the fields, from which it else comes. */
  change(query, fill = true) {
    this.query = query;
    if (fill) this.fill();
    this.mark();
    this.showColumns();
    this.found = find(this.rows, this.columns, query);
    this.window.show(this.found);
    this.table.setAttribute("aria-rowcount", this.found.length + 1);
    this.one("count").textContent = `${this.found.length} of ${this.rows.length} checkpoints`;
    this.showSort();
    this.showActive();
    clearTimeout(this.later);
    this.later = setTimeout(() => this.write(), PAUSE);
  }

  write() {
    const hash = format(this.query);
    if (hash !== location.hash.replace(/^#/, "")) history.replaceState(null, "", hash ? `#${hash}` : location.pathname);
  }

  fill() {
    this.one("search").value = this.query.search;
    for (const field of this.all("range")) {
      const [from, to] = this.query.ranges[field.dataset.modelsRange] ?? ["", ""];
      field.querySelector("[data-from]").value = from;
      field.querySelector("[data-to]").value = to;
    }
    for (const field of this.all("choice")) {
      const chosen = this.query.choices[field.dataset.modelsChoice] ?? [];
      for (const box of field.querySelectorAll("input")) box.checked = chosen.includes(box.value);
    }
  }

  // A range that spells no number is not asked for, and says so.
  mark() {
    for (const end of this.root.querySelectorAll("[data-models-range] input")) {
      end.toggleAttribute("aria-invalid", false);
      if (Number.isNaN(numberIn(end.value))) end.setAttribute("aria-invalid", "true");
    }
  }

  sortBy(key) {
    const number = this.columns.find((column) => column.key === key).sort === "number";
    const [first] = this.query.sort;
    const down = first?.key === key ? !first.down : number;
    // What was sorted by before decides between equals.
    const sort = [{ key, down }, ...this.query.sort.filter((entry) => entry.key !== key)].slice(0, 3);
    this.change({ ...this.query, sort });
  }

  showSort() {
    const [first] = this.query.sort;
    for (const header of this.headers) {
      if (header.dataset.key !== first?.key) header.removeAttribute("aria-sort");
      else header.setAttribute("aria-sort", first.down ? "descending" : "ascending");
    }
  }

  chooseColumns(keys) {
    remember(REMEMBERED, keys);
    this.change({ ...this.query, columns: keys });
  }

  get shown() {
    const narrow = matchMedia("(max-width: 47.5em)").matches;
    const usual = (column) => column.shown === "always" || (column.shown === "wide" && !narrow);
    const { columns } = this.query;
    return this.columns.filter((column, place) => !place || (columns ? columns.includes(column.key) : usual(column)));
  }

  showColumns() {
    const shown = new Set(this.shown.map((column) => column.key));
    const places = this.columns.flatMap((column, place) => (shown.has(column.key) ? [place] : []));
    for (const box of this.all("column")) box.checked = shown.has(box.dataset.modelsColumn);
    if (`${places}` === this.places) return;
    this.places = `${places}`;
    this.table.querySelector("colgroup").replaceChildren(...places.map((place) => this.widths[place]));
    this.table.tHead.rows[0].replaceChildren(...places.map((place) => this.headers[place]));
    this.window.choose(places);
  }

  showActive() {
    const chips = [];
    const title = (key) => this.columns.find((column) => column.key === key).title;
    for (const [key, list] of Object.entries(this.query.choices)) {
      for (const word of list) chips.push(chip(`${title(key)}: ${word}`, key, word));
    }
    for (const [key, [from, to]] of Object.entries(this.query.ranges)) {
      if (from || to) chips.push(chip(`${title(key)}: ${from || "…"} to ${to || "…"}`, key));
    }
    const list = this.one("active");
    list.replaceChildren(...chips);
    list.hidden = !chips.length;
    this.one("clear").hidden = !(chips.length || this.query.search || this.query.sort.length);
  }

  dropFilter(button) {
    if (!button) return;
    const { key, word } = button.dataset;
    const { [key]: _, ...ranges } = this.query.ranges;
    const kept = (this.query.choices[key] ?? []).filter((chosen) => chosen !== word);
    this.change({ ...this.query, ranges, choices: { ...this.query.choices, [key]: kept } });
    (this.one("active").querySelector("button") ?? this.one("search")).focus();
  }

  open(button, wanted) {
    for (const other of this.all("opens")) {
      const expanded = other === button && wanted;
      other.setAttribute("aria-expanded", expanded);
      document.getElementById(other.getAttribute("aria-controls")).hidden = !expanded;
    }
  }

  save(kind) {
    const { length } = this.found;
    const name = length === this.rows.length ? "models" : `models-${length}-of-${this.rows.length}`;
    save(kind, name, textOf(kind, this.found.map((place) => this.rows[place]), this.shown));
  }
}

function wordsOf(cells, columns) {
  return columns.filter((column) => column.sort === "text").flatMap((column) => answers(cells[column.key]))
    .join(" ").toLowerCase();
}

function chip(text, key, word) {
  const attributes = { "type": "button", "class": "chip", "aria-label": `${text}, take this filter away`, "data-key": key };
  return make("li", {}, make("button", word === undefined ? attributes : { ...attributes, "data-word": word }, text));
}

function rememberedColumns() {
  const keys = recall(REMEMBERED);
  return Array.isArray(keys) ? keys : null;
}

const root = document.querySelector("[data-models]");
if (root) {
  const answer = await fetch(new URL("../../data/models.json", import.meta.url));
  if (answer.ok) new Models(root, await answer.json());
}
