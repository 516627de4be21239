// The matrix of families and values: filters that the address spells, arrow keys, and a line about the cell pointed at.

const KEYS = ["family", "group", "host"];
const STEPS = {
  ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0],
};

class Matrix {
  constructor(root) {
    this.root = root;
    this.table = root.querySelector("[data-matrix-table]");
    this.names = [...this.table.querySelectorAll(".matrix-columns > th")];
    const focus = new Focus(this.table, this.names.length);
    const filters = new Filters(root.querySelector("[data-matrix-filter]"), this.table, () => focus.enter());
    this.said = root.querySelector("[data-matrix-said]");
    this.hint = this.said.textContent;
    this.hosts = this.names.map((name, at) => (at ? name.firstElementChild.getAttribute("href").split(".")[0] : ""));
    this.meanings = new Map([...root.querySelectorAll(".matrix-legend li")].map((entry) => {
      const word = entry.querySelector("b").textContent;
      return [word, entry.textContent.trim().slice(word.length).trim()];
    }));
    this.marked = null;
    this.table.addEventListener("pointerover", (event) => this.tell(event.target.closest("td, th")));
    this.table.addEventListener("pointerleave", () => this.tell(null));
    this.table.addEventListener("focusin", (event) => {
      const link = event.target.closest("a");
      if (link) focus.enter(link);
      if (link?.closest(".matrix-families")) this.reveal(link);
      this.tell(event.target.closest("td, th"));
    });
    focus.enter();
    filters.read();
  }

  /** Says what `cell` means, or how to ask where it is none of the families'. */
  tell(cell) {
    this.marked?.classList.remove("matrix-here");
    this.marked = null;
    if (!cell?.closest(".matrix-families") || cell.cellIndex === 0) {
      this.said.textContent = this.hint;
      return;
    }
    this.marked = this.names[cell.cellIndex].firstElementChild;
    this.marked.classList.add("matrix-here");
    const family = cell.parentElement.cells[0].textContent.trim();
    const value = `${this.hosts[cell.cellIndex]}.${this.marked.textContent}`;
    this.said.textContent = `${family}, ${value}: ${this.meanings.get(cell.textContent.trim())}.`;
  }

  // The sticky head and column would cover what the browser scrolls to.
  reveal(link) {
    const box = this.root.querySelector("[data-matrix-scroll]");
    const head = this.table.tHead.getBoundingClientRect();
    const first = link.closest("tr").cells[0].getBoundingClientRect();
    const at = link.getBoundingClientRect();
    if (at.top < head.bottom) box.scrollTop -= head.bottom - at.top;
    if (at.left < first.right) box.scrollLeft -= first.right - at.left;
  }
}

/** The fields above the matrix, what they leave of it, and the address that spells them. */
class Filters {
  /** `onChange()` hears of every change of what is shown. */
  constructor(form, table, onChange) {
    Object.assign(this, { form, table, onChange });
    this.families = [...table.querySelectorAll(".matrix-families > tr")].map((row) => ({
      row,
      group: row.parentElement.dataset.group,
      text: `${row.cells[0].textContent} ${row.querySelector("a").title}`.toLowerCase(),
    }));
    this.groups = [...table.querySelectorAll(".matrix-group")];
    form.addEventListener("input", () => this.show());
    form.addEventListener("submit", (event) => event.preventDefault());
    // The fields are empty when the event is over.
    form.addEventListener("reset", () => setTimeout(() => this.show()));
    window.addEventListener("hashchange", () => this.read());
    form.hidden = false;
  }

  /** Takes the address over, unless it is somebody else's. */
  read() {
    const filters = parse(location.hash);
    if (filters || !location.hash) this.apply(this.fill(filters ?? { family: "", group: "", host: "" }));
  }

  /** Shows what was typed, and spells it in the address. */
  show() {
    const filters = this.typed();
    this.apply(filters);
    const hash = format(filters);
    if (hash !== location.hash) history.replaceState(null, "", location.pathname + location.search + hash);
  }

  typed() {
    return Object.fromEntries(KEYS.map((key) => [key, this.form.elements[key].value.trim()]));
  }

  /** Writes `filters` into the fields; gives what these took, without words that a select does not offer. */
  fill(filters) {
    return Object.fromEntries(KEYS.map((key) => {
      const field = this.form.elements[key];
      field.value = filters[key];
      // A select left empty was given a value that is none of its own.
      if (field.selectedIndex === -1) field.value = "";
      return [key, field.value];
    }));
  }

  apply({ family, group, host }) {
    const words = family.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = {};
    let count = 0;
    for (const { row, group: own, text } of this.families) {
      row.hidden = Boolean(group && own !== group) || !words.every((word) => text.includes(word));
      if (row.hidden) continue;
      shown[own] = (shown[own] ?? 0) + 1;
      count += 1;
    }
    for (const head of this.groups) {
      head.hidden = !shown[head.dataset.group];
      head.querySelector("[data-matrix-group-count]").textContent = shown[head.dataset.group] ?? 0;
    }
    if (host) this.table.dataset.only = host;
    else delete this.table.dataset.only;
    const { length } = this.families;
    const all = `${length} ${length === 1 ? "family" : "families"}`;
    this.form.querySelector("[data-matrix-count]").textContent = count === length ? all : `${count} of ${all}`;
    this.onChange();
  }
}

/** One link of the table is reached by Tab; arrows go on from there. */
class Focus {
  constructor(table, columns) {
    Object.assign(this, { table, columns });
    this.links = [...table.querySelectorAll("a")];
    this.current = null;
    for (const link of this.links) link.tabIndex = -1;
    table.addEventListener("keydown", (event) => this.press(event));
  }

  /** Makes `link` the one that Tab reaches; without one, the last that was, or the first that is shown. */
  enter(link = null) {
    if (link && link === this.current) return;
    const kept = this.current && visible(this.current) ? this.current : this.links.find(visible);
    if (this.current) this.current.tabIndex = -1;
    this.current = link ?? kept ?? null;
    if (this.current) this.current.tabIndex = 0;
  }

  press(event) {
    const cell = event.target.closest?.("td, th");
    if (!cell || event.ctrlKey || event.metaKey || event.altKey) return;
    const row = () => [...cell.parentElement.querySelectorAll("a")];
    let next = null;
    if (STEPS[event.key]) next = this.from(cell, STEPS[event.key]);
    else if (event.key === "Home") next = row().find(visible);
    else if (event.key === "End") next = row().reverse().find(visible);
    else return;
    event.preventDefault();
    if (!next) return;
    this.enter(next);
    next.focus();
  }

  /** The next link that is shown, from `cell` on. */
  from(cell, [down, right]) {
    const ahead = right ? behind([...cell.parentElement.cells], cell, right)
      : behind(this.rows(), cell.parentElement, down).map((row) => row.cells[cell.cellIndex]);
    return ahead.map((other) => other.querySelector("a")).find(visible) ?? null;
  }

  rows() {
    return [...this.table.rows].filter((row) => !row.hidden && row.cells.length === this.columns && visible(row));
  }
}

/** What lies behind `entry` in `list` in the direction of `step`, the nearest first. */
function behind(list, entry, step) {
  const at = list.indexOf(entry);
  return step > 0 ? list.slice(at + 1) : list.slice(0, Math.max(at, 0)).reverse();
}

function visible(element) {
  return element?.getClientRects().length > 0;
}

/** The filters that `hash` spells, or `null` where it is somebody else's. */
function parse(hash) {
  const pairs = new URLSearchParams(hash.replace(/^#/, ""));
  return KEYS.some((key) => pairs.has(key)) ? Object.fromEntries(KEYS.map((key) => [key, pairs.get(key) ?? ""])) : null;
}

/** The hash of `filters`, empty where nothing is filtered. */
function format(filters) {
  const pairs = KEYS.filter((key) => filters[key]).map((key) => `${key}=${encodeURIComponent(filters[key])}`);
  return pairs.length ? `#${pairs.join("&")}` : "";
}

for (const matrix of document.querySelectorAll("[data-matrix]")) new Matrix(matrix);
