// The charts over the depth: drawn when they come into view, linked with the slider both ways.

import { amount } from "./format.js";
import { colours, markerOf, markerOfSize } from "./looks.js";
import { plotly } from "./plotly.js";

// In pixels, as `encyclopedia/page/depth.py` reserves them and `depth.css` places the marker by.
const LEFT = 50;
const RIGHT = 8;
const PANEL = 196;
const TITLE = 26;
const BAR_ROW = 62;
const STRIP_ROW = 26;
const LINE = 15;
const AXIS = 34;

const CONFIG = { displayModeBar: false, displaylogo: false, responsive: false, doubleClick: false, scrollZoom: false };
const FROM_BOTTOM = ["attention", "recurrent", "mlp", "shared", "router", "experts", "norm", "other"];

class Depth {
  constructor(article) {
    this.article = article;
    this.drawn = new WeakMap();
    this.arriving = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) if (isIntersecting) this.draw(target);
    }, { rootMargin: "160px" });
    this.sizes = new ResizeObserver((entries) => {
      for (const { target } of entries) if (this.drawn.get(target)?.width !== target.clientWidth) this.drawn.has(target) && this.draw(target);
    });
    const recolour = () => this.charts.forEach((chart) => this.drawn.has(chart) && this.draw(chart));
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
    this.sizes.disconnect();
    const region = this.article.querySelector("[data-region=depth]");
    this.charts = [...region.querySelectorAll("[data-depth-chart]")];
    if (!this.charts.length) return;
    Object.assign(this, JSON.parse(region.querySelector("[data-depth-facts]").textContent));
    this.kindOf = [];
    this.kinds.forEach(({ blocks }, kind) => blocks.forEach((block) => { this.kindOf[block] = kind; }));
    this.legend = region.querySelector(".depth-legend");
    this.block = Number(this.article.querySelector("[data-block-slider]").value);
    this.mark();
    for (const chart of this.charts) {
      // A chart that was drawn before it was put aside may have missed a change of colours or of width.
      if (this.drawn.has(chart)) this.draw(chart);
      this.arriving.observe(chart);
      this.sizes.observe(chart);
    }
  }

  move(block) {
    if (block === this.block || !this.charts.length) return;
    this.block = block;
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = null;
      this.mark();
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

  get blocks() {
    return this.kindOf.map((_, block) => block);
  }

  ofParameters(chart) {
    const colour = colours(chart);
    const parts = this.kinds.map((kind) => kind.parameters);
    const split = parts.some((kind) => sum(kind, 0) > sum(kind, 1));
    const roles = FROM_BOTTOM.filter((role) => parts.some((kind) => role in kind));
    const bars = (role, panel, count) => ({
      type: "bar", name: role, x: this.blocks, y: this.kindOf.map((kind) => count(parts[kind])), yaxis: panel ? "y2" : "y",
      marker: { ...markerOf(role, colour), line: { width: 0 } }, hoverinfo: "none", showlegend: false,
    });
    const active = (panel) => roles.map((role) => bars(role, panel, (kind) => kind[role]?.[1] ?? 0));
    const traces = active(false);
    if (split) {
      const above = roles.indexOf("experts") + 1 || roles.length;
      traces.splice(above, 0, bars("idle", false, (kind) => sum(kind, 0) - sum(kind, 1)));
      traces.push(...active(true));
    }
    const titles = split ? ["every parameter", "those a token uses"] : ["every parameter"];
    const rows = titles.map((title) => ({ lines: [title], label: TITLE, height: PANEL - TITLE }));
    return { traces, layout: this.layout(colour, rows, { barmode: "stack" }) };
  }

  ofSizes(chart) {
    const colour = colours(chart);
    const rows = this.variations.map(({ label, values }) => {
      const there = [...new Set(values.filter((value) => value !== null))].sort((one, other) => one - other);
      const bars = there.length > 1;
      return { lines: label, label: LINE * label.length, height: bars ? BAR_ROW : STRIP_ROW, ticks: bars ? apart(there) : [], top: there.at(-1) };
    });
    const traces = this.variations.map(({ role, values }, row) => ({
      type: "bar", x: this.blocks, y: this.kindOf.map((kind) => values[kind]), yaxis: row ? `y${row + 1}` : "y",
      marker: { ...markerOfSize(role, colour), line: { width: 0 } }, hoverinfo: "none", showlegend: false,
    }));
    return { traces, layout: this.layout(colour, rows, {}) };
  }

  /** One row above the other over the same blocks; a row has its title above it. */
  layout(colour, rows, more) {
    const whole = rows.reduce((total, row) => total + row.label + row.height, 0);
    const fonts = getComputedStyle(this.article);
    const mono = { family: fonts.getPropertyValue("--mono"), size: 11, color: colour.mute };
    const layout = {
      ...more,
      margin: { l: LEFT, r: RIGHT, t: 0, b: AXIS, pad: 0 },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: mono, bargap: this.kindOf.length > 60 ? 0.1 : 0.16, hovermode: "x", hoverdistance: -1, dragmode: false,
      annotations: [],
      xaxis: {
        range: [-0.5, this.kindOf.length - 0.5], fixedrange: true, showgrid: false, zeroline: false, tickformat: "d",
        nticks: Math.min(this.kindOf.length, 11), ticks: "", anchor: rows.length > 1 ? `y${rows.length}` : "y",
        title: { text: "block", font: mono, standoff: 4 },
      },
    };
    let from = 0;
    rows.forEach((row, index) => {
      const top = 1 - (from + row.label) / whole;
      const bottom = 1 - (from + row.label + row.height - (index < rows.length - 1 ? 8 : 0)) / whole;
      layout[`yaxis${index ? index + 1 : ""}`] = {
        domain: [Math.max(bottom, 0), top], fixedrange: true, zeroline: true, zerolinecolor: colour.line, gridcolor: colour.line,
        rangemode: "tozero", exponentformat: "B", nticks: 4, automargin: false,
        ...(row.ticks && { tickvals: row.ticks, ticktext: row.ticks.map((value) => value.toLocaleString("en-US")), range: [0, row.top] }),
      };
      layout.annotations.push({
        text: row.lines.join("<br>"), xref: "paper", yref: "paper", x: 0, y: top, xanchor: "left", yanchor: "bottom",
        align: "left", showarrow: false, font: { ...mono, color: colour.ink },
      });
      from += row.label + row.height;
    });
    return layout;
  }
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
