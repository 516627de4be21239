// The matrix of families and values: filters that the address spells, arrow keys, and a line about the cell pointed at.

const KEYS = ["family", "group", "host"];
const STEPS = {
  ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0],
};

/** The filters that `hash` spells, or `null` where it is somebody else's. */
export function parse(hash) {
  const pairs = new URLSearchParams(hash.replace(/^#/, ""));
  return KEYS.some((key) => pairs.has(key)) ? Object.fromEntries(KEYS.map((key) => [key, pairs.get(key) ?? ""])) : null;
}

/** The hash of `filters`, empty where nothing is filtered. */
export function format(filters) {
  const pairs = KEYS.filter((key) => filters[key]).map((key) => `${key}=${encodeURIComponent(filters[key])}`);
  return pairs.length ? `#${pairs.join("&")}` : "";
}

/** Makes a matrix filter and answer. */
export function start(matrix) {
  const form = matrix.querySelector("[data-matrix-filter]");
  const table = matrix.querySelector("[data-matrix-table]");
  const said = matrix.querySelector("[data-matrix-said]");
  const families = [...table.querySelectorAll(".matrix-families > tr")].map((row) => ({
    row,
    group: row.parentElement.dataset.group,
    text: `${row.cells[0].textContent} ${row.querySelector("a").title}`.toLowerCase(),
  }));
  const groups = [...table.querySelectorAll(".matrix-group")];
  const names = [...table.querySelectorAll(".matrix-columns > th")];
  const hosts = names.map((name, at) => (at ? name.firstElementChild.getAttribute("href").split(".")[0] : ""));
  const meanings = new Map([...matrix.querySelectorAll(".matrix-legend li")].map((entry) => {
    const word = entry.querySelector("b").textContent;
    return [word, entry.textContent.trim().slice(word.length).trim()];
  }));
  const hint = said.textContent;

  function apply(filters) {
    const words = filters.family.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = {};
    let count = 0;
    for (const { row, group, text } of families) {
      row.hidden = Boolean(filters.group && group !== filters.group) || !words.every((word) => text.includes(word));
      if (!row.hidden) {
        shown[group] = (shown[group] ?? 0) + 1;
        count += 1;
      }
    }
    for (const head of groups) {
      head.hidden = !shown[head.dataset.group];
      head.querySelector("[data-matrix-group-count]").textContent = shown[head.dataset.group] ?? 0;
    }
    if (filters.host) table.dataset.only = filters.host;
    else delete table.dataset.only;
    const all = `${families.length} ${families.length === 1 ? "family" : "families"}`;
    form.querySelector("[data-matrix-count]").textContent = count === families.length ? all : `${count} of ${all}`;
    enter();
  }

  function fill(filters) {
    for (const key of KEYS) form.elements[key].value = filters[key];
    // A select left empty was given a value that is none of its own.
    return Object.fromEntries(KEYS.map((key) => {
      if (form.elements[key].selectedIndex === -1) form.elements[key].value = "";
      return [key, form.elements[key].value];
    }));
  }

  const typed = () => Object.fromEntries(KEYS.map((key) => [key, form.elements[key].value.trim()]));
  const show = (filters) => {
    apply(filters);
    const address = location.pathname + location.search + format(filters);
    if (format(filters) !== location.hash) history.replaceState(null, "", address);
  };
  form.addEventListener("input", () => show(typed()));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => show(typed())));
  const read = () => {
    const filters = parse(location.hash);
    if (filters || !location.hash) apply(fill(filters ?? { family: "", group: "", host: "" }));
  };
  window.addEventListener("hashchange", read);

  // One link of the table is reached by Tab; arrows go on from there.
  let current = null;
  const links = table.querySelectorAll("a");
  for (const link of links) link.tabIndex = -1;
  const visible = (cell) => cell && cell.getClientRects().length > 0;
  function enter(link = null) {
    const next = link ?? (current && visible(current) ? current : [...links].find((each) => visible(each)));
    if (current) current.tabIndex = -1;
    current = next ?? null;
    if (current) current.tabIndex = 0;
  }
  const rows = () => [...table.rows].filter((row) => !row.hidden && row.cells.length === names.length && visible(row));

  function move(cell, [down, right]) {
    const column = cell.cellIndex;
    if (right) {
      for (let at = column + right; at >= 0 && at < names.length; at += right) {
        const link = cell.parentElement.cells[at].querySelector("a");
        if (visible(link)) return link;
      }
      return null;
    }
    const all = rows();
    for (let at = all.indexOf(cell.parentElement) + down; at >= 0 && at < all.length; at += down) {
      const link = all[at].cells[column].querySelector("a");
      if (visible(link)) return link;
    }
    return null;
  }

  table.addEventListener("keydown", (event) => {
    const cell = event.target.closest?.("td, th");
    if (!cell || event.ctrlKey || event.metaKey || event.altKey) return;
    let next = null;
    if (STEPS[event.key]) next = move(cell, STEPS[event.key]);
    else if (event.key === "Home") next = [...cell.parentElement.querySelectorAll("a")].find(visible);
    else if (event.key === "End") next = [...cell.parentElement.querySelectorAll("a")].reverse().find(visible);
    else return;
    event.preventDefault();
    if (!next) return;
    enter(next);
    next.focus();
  });

  let marked = null;
  function tell(cell) {
    marked?.classList.remove("matrix-here");
    marked = null;
    const inside = cell?.closest(".matrix-families");
    if (!inside || cell.cellIndex === 0) {
      said.textContent = hint;
      return;
    }
    marked = names[cell.cellIndex].firstElementChild;
    marked.classList.add("matrix-here");
    const word = cell.textContent.trim();
    const family = cell.parentElement.cells[0].textContent.trim();
    said.textContent = `${family}, ${hosts[cell.cellIndex]}.${marked.textContent}: ${meanings.get(word)}.`;
  }
  table.addEventListener("pointerover", (event) => tell(event.target.closest("td, th")));
  table.addEventListener("pointerleave", () => tell(null));
  table.addEventListener("focusin", (event) => {
    const link = event.target.closest("a");
    if (link && link !== current) enter(link);
    if (link?.closest(".matrix-families")) reveal(link);
    tell(event.target.closest("td, th"));
  });

  // The sticky head and column would cover what the browser scrolls to.
  function reveal(link) {
    const box = matrix.querySelector("[data-matrix-scroll]");
    const head = table.tHead.getBoundingClientRect();
    const first = link.closest("tr").cells[0].getBoundingClientRect();
    const at = link.getBoundingClientRect();
    if (at.top < head.bottom) box.scrollTop -= head.bottom - at.top;
    if (at.left < first.right) box.scrollLeft -= first.right - at.left;
  }

  form.hidden = false;
  enter();
  read();
}

for (const matrix of document.querySelectorAll("[data-matrix]")) start(matrix);
