// A table's body of which only the rows in sight, and some around them, stand in the page: a thousand rows of thirty
// cells would take a browser half a second to lay out again after every sort.

import { make } from "./elements.js";

const AROUND = 4;

/** Shows `rows`, which stand in `body` already, through `scroller`. */
export class RowWindow {
  constructor(scroller, body, rows) {
    this.scroller = scroller;
    this.body = body;
    this.rows = rows;
    this.cells = rows.map((row) => [...row.cells]);
    this.columns = rows.length ? this.cells[0].map((_, place) => place) : [];
    this.fitted = rows.map(() => this.columns);
    this.order = rows.map((_, place) => place);
    this.height = rows[0]?.getBoundingClientRect().height || 24;
    this.above = space();
    this.below = space();
    this.whole = false;
    body.replaceChildren(this.above, this.below);
    this.update();
    scroller.addEventListener("scroll", () => this.update(), { passive: true });
    new ResizeObserver(() => this.update()).observe(scroller);
    addEventListener("beforeprint", () => this.print(true));
    addEventListener("afterprint", () => this.print(false));
  }

  /** Shows the rows at the places `order`, from its beginning. */
  show(order) {
    this.order = order;
    order.forEach((place, index) => this.rows[place].setAttribute("aria-rowindex", index + 2));
    this.scroller.scrollTop = 0;
    this.update(true);
  }

  /** Shows the columns at the places `columns`; the cells of others are not in the page. */
  choose(columns) {
    this.columns = columns;
    this.update(true);
  }

  print(whole) {
    this.whole = whole;
    this.update();
  }

  update(anew = false) {
    const [first, last] = this.range();
    if (!anew && first === this.first && last === this.last) return;
    [this.first, this.last] = [first, last];
    const wanted = this.order.slice(first, last).map((place) => this.fit(place));
    this.drop(new Set(wanted));
    let next = this.above.nextSibling;
    for (const row of wanted) {
      if (row === next) next = next.nextSibling;
      else this.body.insertBefore(row, next);
    }
    stretch(this.above, first * this.height);
    stretch(this.below, (this.order.length - last) * this.height);
  }

  fit(place) {
    if (this.fitted[place] !== this.columns) {
      this.rows[place].replaceChildren(...this.columns.map((column) => this.cells[place][column]));
      this.fitted[place] = this.columns;
    }
    return this.rows[place];
  }

  // In steps, so that not every pixel scrolled changes the page.
  range() {
    if (this.whole) return [0, this.order.length];
    const step = AROUND / 2;
    const top = Math.floor(this.scroller.scrollTop / this.height / step) * step;
    const seen = Math.ceil(this.scroller.clientHeight / this.height / step) * step;
    return [Math.max(0, top - AROUND), Math.min(this.order.length, top + seen + AROUND + step)];
  }

  drop(wanted) {
    for (const row of [...this.body.rows]) {
      if (row === this.above || row === this.below || wanted.has(row)) continue;
      // Else the keyboard would start from the top of the page again.
      if (row.contains(document.activeElement)) this.scroller.focus({ preventScroll: true });
      row.remove();
    }
  }
}

function space() {
  return make("tr", { "class": "models-space", "aria-hidden": "true" }, make("td"));
}

function stretch(row, height) {
  row.hidden = !height;
  row.firstChild.style.height = `${height}px`;
}
