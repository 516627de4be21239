// The charts over the depth: drawn when they come into view, linked with the slider both ways.

import { amount, exact } from "./format.js";
import { colours, markerOf, markerOfSize } from "./looks.js";
import { plotly } from "./plotly.js";
import { kindsByBlock } from "./slider.js";

// In pixels, as `depth.css` reserves them and places the marker by.
const LEFT = 50;
const RIGHT = 8;
const PANEL = 196;
const TITLE = 26;
const BAR_ROW = 62;
const STRIP_ROW = 28;
const LINE = 15;
const GAP = 10;
const AXIS = 22;

const CONFIG = { displayModeBar: false, displaylogo: false, responsive: false, doubleClick: false, scrollZoom: false };
const FROM_BOTTOM = ["attention", "recurrent", "mlp", "shared", "router", "experts", "norm", "other"];

class Depth {
  constructor(article) {
    this.article = article;
    this.drawn = new WeakMap();
    this.arriving = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) if (isIntersecting) this.draw(target);
    }, { rootMargin: "160px" });
    this.resizing = new ResizeObserver((entries) => {
      for (const { target } of entries) {
        const drawn = this.drawn.get(target);
        if (drawn && drawn.width !== target.clientWidth) this.draw(target);
      }
    });
    this.near = false;
    new IntersectionObserver((entries) => {
      this.near = entries.at(-1).isIntersecting;
      if (this.near && this.charts.length) this.mark();
    }, { rootMargin: "50%" }).observe(article.querySelector("[data-region=depth]"));
    const recolour = () => this.charts.filter((chart) => this.drawn.has(chart)).forEach((chart) => this.draw(chart));
    new MutationObserver(recolour).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
    article.addEventListener("family:checkpoint", () => this.enter());
    article.addEventListener("family:block", ({ detail }) => this.move(detail.block));
    article.addEventListener("click", (event) => {
      const link = event.target.closest?.("[data-depth-go]");
      if (!link || event.metaKey || event.ctrlKey || event.shiftKey) return;
      event.preventDefault();
      this.go(Number(link.dataset.depthGo));
    });
    this.enter();
  }

  /** Takes up the charts of the checkpoint that is shown. */
  enter() {
    this.arriving.disconnect();
    this.resizing.disconnect();
    const region = this.article.querySelector("[data-region=depth]");
    this.charts = [...region.querySelectorAll("[data-depth-chart]")];
    if (!this.charts.length) return;
    Object.assign(this, JSON.parse(region.querySelector("[data-depth-facts]").textContent));
    this.kindOf = kindsByBlock(this.kinds);
    this.legend = region.querySelector(".depth-legend");
    this.block = Number(this.article.querySelector("[data-block-slider]").value);
    this.mark();
    for (const chart of this.charts) {
      chart.style.setProperty("--blocks", chart.dataset.blocks);
      // A chart that was drawn before it was put aside may have missed a change of colours or of width.
      if (this.drawn.has(chart)) this.draw(chart);
      this.arriving.observe(chart);
      this.resizing.observe(chart);
    }
  }

  move(block) {
    if (block === this.block || !this.charts.length) return;
    this.block = block;
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = null;
      // What is out of sight is brought up to date when it comes near.
      if (this.near) this.mark();
    });
  }

  go(block) {
    this.article.dispatchEvent(new CustomEvent("family:go", { detail: { block } }));
  }

  /** Puts the marker on the slider's block, and that block's numbers (or those of the one pointed at) in the legend. */
  mark(pointed = null) {
    for (const chart of this.charts) {
      chart.style.setProperty("--block", this.block);
      chart.style.setProperty("--pointed", pointed ?? this.block);
    }
    this.say(pointed ?? this.block);
  }

  say(block) {
    const kind = this.kindOf[block];
    const parts = this.kinds[kind].parameters;
    this.legend.querySelector("[data-depth-block]").textContent = `block ${block}`;
    this.legend.querySelector("[data-depth-label]").textContent =
      `${this.kinds[kind].label}: ${amount(sum(parts, 0))} parameters`;
    for (const entry of this.legend.querySelectorAll("[data-depth-role]")) {
      const role = entry.dataset.depthRole;
      const count = role === "idle" ? sum(parts, 0) - sum(parts, 1) : parts[role]?.[1] ?? 0;
      const there = role === "idle" ? count > 0 : Boolean(parts[role]);
      entry.classList.toggle("depth-none", !there);
      entry.querySelector("b").textContent = there ? amount(count) : "–";
    }
  }

  async draw(chart) {
    this.arriving.unobserve(chart);
    const first = !this.drawn.has(chart);
    const width = chart.clientWidth;
    this.drawn.set(chart, { width });
    const plot = chart.querySelector("[data-depth-plot]");
    let library;
    try {
      library = await plotly();
    } catch {
      this.drawn.delete(chart);
      chart.dataset.missing = "";
      return;
    }
    if (!chart.isConnected) {
      this.drawn.delete(chart);
      return;
    }
    const { traces, layout } = chart.dataset.depthChart === "sizes" ? this.ofSizes(chart) : this.ofParameters(chart);
    await library.react(plot, traces, { ...layout, width, height: chart.clientHeight }, CONFIG);
    chart.dataset.drawn = "";
    if (first) this.listen(chart, plot);
  }

  listen(chart, plot) {
    plot.on("plotly_click", ({ points }) => this.go(points[0].x));
    plot.on("plotly_hover", ({ points }) => this.mark(points[0].x));
    plot.on("plotly_unhover", () => this.mark());
  }

  /** What the bars of any trace have. */
  bars(marker) {
    const blocks = this.kindOf.map((_, block) => block);
    return { type: "bar", x: blocks, marker: { ...marker, line: { width: 0 } }, hoverinfo: "none", showlegend: false };
  }

  ofParameters(chart) {
    const colour = colours(chart);
    const parts = this.kinds.map((kind) => kind.parameters);
    const split = parts.some((kind) => sum(kind, 0) > sum(kind, 1));
    const roles = FROM_BOTTOM.filter((role) => parts.some((kind) => role in kind));
    const bars = (role, panel, count) => ({
      ...this.bars(markerOf(role, colour)), yaxis: axis(panel), y: this.kindOf.map((kind) => count(parts[kind])),
    });
    const active = (panel) => roles.map((role) => bars(role, panel, (kind) => kind[role]?.[1] ?? 0));
    const traces = active(0);
    if (split) {
      const above = roles.indexOf("experts") + 1 || roles.length;
      traces.splice(above, 0, bars("idle", 0, (kind) => sum(kind, 0) - sum(kind, 1)));
      traces.push(...active(1));
    }
    const rows = Array.from({ length: split ? 2 : 1 }, () => ({ label: TITLE, height: PANEL - TITLE }));
    return { traces, layout: this.layout(chart, colour, rows, { barmode: "stack" }) };
  }

  ofSizes(chart) {
    const colour = colours(chart);
    const rows = this.variations.map(({ label, values }) => {
      const there = [...new Set(values.filter((value) => value !== null))].sort((one, other) => one - other);
      const bars = there.length > 1;
      const height = bars ? BAR_ROW : STRIP_ROW;
      return { label: LINE * label, height, ticks: bars ? apart(there) : [], top: there.at(-1) };
    });
    const traces = this.variations.map(({ role, values }, row) => ({
      ...this.bars(markerOfSize(role, colour)), yaxis: axis(row), y: this.kindOf.map((kind) => values[kind]),
    }));
    return { traces, layout: this.layout(chart, colour, rows, {}) };
  }

  /** One row above the other over the same blocks; a row has its title above it. */
  layout(chart, colour, rows, more) {
    const inside = chart.clientWidth - LEFT - RIGHT;
    const whole = rows.reduce((total, row) => total + row.label + row.height, 0);
    const fonts = getComputedStyle(this.article);
    const mono = { family: fonts.getPropertyValue("--mono"), size: 11, color: colour.mute };
    const layout = {
      ...more,
      margin: { l: LEFT, r: RIGHT, t: 0, b: AXIS, pad: 0 },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      // Gaps thinner than a pixel would come and go.
      bargap: inside / this.kindOf.length < 8 ? 0 : 0.16,
      font: mono, hovermode: "x", hoverdistance: -1, dragmode: false,
      xaxis: {
        range: [-0.5, this.kindOf.length - 0.5], fixedrange: true, showgrid: false, zeroline: false, ticks: "",
        nticks: Math.min(this.kindOf.length, Math.max(Math.floor(inside / 56), 3)), anchor: axis(rows.length - 1),
        tickformat: "d", tickprefix: "block ", showtickprefix: "first", ticklabelstandoff: 3,
      },
    };
    let from = 0;
    rows.forEach((row, index) => {
      const [top, bottom] = [from + row.label, from + row.label + row.height - GAP].map((place) => 1 - place / whole);
      layout[axis(index).replace("y", "yaxis")] = {
        domain: [bottom, top], fixedrange: true, zerolinecolor: colour.line, gridcolor: colour.line,
        rangemode: "tozero", exponentformat: "B", nticks: 4, ticklabelstandoff: 6, automargin: false,
        ...(row.ticks && { tickvals: row.ticks, ticktext: row.ticks.map(exact), range: [0, row.top] }),
      };
      from += row.label + row.height;
    });
    return layout;
  }
}

/** The name of the axis of the row at `index`. */
function axis(index) {
  return index ? `y${index + 1}` : "y";
}

function sum(parts, index) {
  return Object.values(parts).reduce((total, part) => total + part[index], 0);
}

/** Of ascending `values` those whose labels have room between them on an axis from zero to the last. */
function apart(values) {
  const room = values.at(-1) * (12 / BAR_ROW);
  const kept = [];
  for (const value of values.toReversed()) if (!kept.length || kept.at(-1) - value >= room) kept.push(value);
  return kept.reverse();
}

const article = document.querySelector("article.family");
if (article) new Depth(article);
