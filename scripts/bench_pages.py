"""Benchmark: what families' pages weigh and how fast they are, beside Material's stock theme with the same text.

    python scripts/bench_pages.py [--loads N] [FAMILY ...]

The built site's pages are loaded in headless Chromium from a local server that compresses, each time with an empty
cache. By default these are Doge, Laguna and the heaviest page. Beside each, in the same run, stands a page of
Material's stock theme, without its fonts from another host, that has the visible text of the same page. Times are
medians over the loads, which take turns. A diagram is usable when it is painted, the slider moves and a part answers; a
stock page, when it is painted, its document is parsed and its scripts have run. Of a step and of a hover it is the
processor time of the page's thread, with style, layout and paint. Fails where an aim is missed.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import html
import http.server
import statistics
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from playwright.sync_api import Browser, Page, sync_playwright  # noqa: E402

from tests.browser.chromium import launch  # noqa: E402

#: Aims, in bytes after compression, milliseconds and times the stock page.
SCRIPTS, STYLES, HTML, ANSWER, USABLE = 25_000, 15_000, 120_000, 16.0, 1.3

#: The page with several checkpoints that :data:`HTML` is an aim for.
HELD_TO_WEIGHT = "laguna"

#: What is loaded for charts only, which come after the page is usable.
CHARTS = ("depth.css", "depth.js", "looks.js", "plotly.js", "plotly.min.js")

SORTS = ("html", "own css", "own js", "charts", "Material css", "Material js", "fonts", "images", "other")

_OBSERVE = """(() => {
  window.seen = { paint: 0, shift: 0 };
  const watch = (type, take) =>
    new PerformanceObserver((list) => list.getEntries().forEach(take)).observe({ type, buffered: true });
  watch("largest-contentful-paint", (entry) => { seen.paint = entry.startTime; });
  watch("layout-shift", (entry) => { if (!entry.hadRecentInput) seen.shift += entry.value; });
})()"""

_SEEN = """() => {
  const [navigation] = performance.getEntriesByType("navigation");
  const [answers] = performance.getEntriesByName("family:usable");
  const [painted] = performance.getEntriesByName("first-contentful-paint");
  const usable = Math.max(answers?.startTime ?? navigation.domContentLoadedEventEnd, painted.startTime);
  return { usable, paint: seen.paint, shift: seen.shift };
}"""

#: A step of the slider, and a hover over a part, each with the layout it brings about.
_ACTS = {
    "step": """(index) => {
  const slider = document.querySelector("[data-block-slider]");
  slider.value = String((index + 1) % (Number(slider.max) + 1));
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  document.body.getBoundingClientRect();
}""",
    "hover": """(index) => {
  const parts = document.querySelectorAll(".diagram-wide [data-node]");
  const event = new PointerEvent("pointerover", { bubbles: true, pointerType: "mouse" });
  parts[index % parts.length].dispatchEvent(event);
  document.body.getBoundingClientRect();
}""",
}

#: All of a page's text, with what is laid out only when it comes near.
_TEXT = """() => {
  const article = document.querySelector("article");
  for (const section of article.querySelectorAll("section")) section.style.contentVisibility = "visible";
  return article.innerText.split(/\\n+/).map((line) => line.trim()).filter(Boolean);
}"""


@dataclass
class Measured:
    """A page's figures: bytes by sort, requests, and medians over its loads in milliseconds."""

    sizes: Counter[str]
    requests: int
    strangers: list[str]
    usable: float
    paint: float
    shift: float
    step: float | None = None
    hover: float | None = None


class _Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # As servers of sites do: a body does not wait until its head was acknowledged.
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path.partition("?")[0]))
        path = path / "index.html" if path.is_dir() else path
        if not path.is_file():
            self.send_error(404)
            return
        body = compressed(path)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        pass


@functools.cache
def compressed(path: Path) -> bytes:
    """A file as a server sends it."""
    return gzip.compress(path.read_bytes(), 9, mtime=0)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address at which ``folder`` is served."""
    handler = functools.partial(_Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def sort_of(path: str) -> str:
    """One of :data:`SORTS` for an address on the site."""
    name, ending = path.rpartition("/")[2], path.rpartition(".")[2]
    if name in CHARTS:
        return "charts"
    if not name or ending == "html":
        return "html"
    if ending in ("css", "js"):
        theme = "/assets/stylesheets/" in path or "/assets/javascripts/" in path
        return f"Material {ending}" if theme else f"own {ending}"
    return {"woff2": "fonts", "woff": "fonts", "png": "images", "svg": "images", "ico": "images"}.get(ending, "other")


def opened(browser: Browser, address: str, path: str) -> tuple[Page, list[str]]:
    """A page after its load, with the addresses that it asked for."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.add_init_script(_OBSERVE)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(f"{address}/{path}")
    page.wait_for_load_state("networkidle")
    return page, requests


def text_of(browser: Browser, address: str, path: str) -> list[str]:
    """The lines of text of a page."""
    page, _ = opened(browser, address, path)
    text: list[str] = page.evaluate(_TEXT)
    page.context.close()
    return text


def load(browser: Browser, places: Sequence[tuple[str, str]], loads: int, steps: int) -> list[Measured]:
    """Load pages (addresses of sites and paths) in turns, ``loads`` times each.

    Turns keep what else goes on in the machine out of their proportion. On the first page ``steps`` steps and hovers
    are timed in the end.
    """
    seen: list[list[dict[str, float]]] = [[] for _ in places]
    asked: list[list[str]] = [[] for _ in places]
    late: dict[str, float] = {}
    for turn in range(loads + 1):
        for index, (address, path) in enumerate(places):
            page, requests = opened(browser, address, path)
            # The first load warms the server and is not counted.
            if turn:
                seen[index].append(page.evaluate(_SEEN))
            # A step changes the address, for which a browser asks for the icon again.
            asked[index] = requests.copy()
            if turn == loads and not index:
                late = answers(page, steps)
            page.context.close()
    found = []
    for index, (address, _) in enumerate(places):
        sizes: Counter[str] = Counter()
        for url in asked[index]:
            if url.startswith(address):
                sizes[sort_of(urlsplit(url).path)] += len(_body(address, urlsplit(url).path))
        medians = {key: statistics.median(entry[key] for entry in seen[index]) for key in seen[index][0]}
        found.append(Measured(
            sizes, len(asked[index]), [url for url in asked[index] if not url.startswith(address)], medians["usable"],
            medians["paint"], max(entry["shift"] for entry in seen[index]),
            *((late["step"], late["hover"]) if not index else ())))
    return found


def answers(page: Page, steps: int) -> dict[str, float]:
    """For each of :data:`_ACTS`, the 95th percentile of the processor time of the page's thread, in milliseconds.

    Other programs on the machine lengthen it far less than the time on the wall. The frame that shows it is in it.
    """
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return 1000 * next(float(metric["value"]) for metric in metrics if metric["name"] == "TaskDuration")

    found = {}
    for name, act in _ACTS.items():
        times = []
        for index in range(steps):
            before = spent()
            page.evaluate(act, index)
            page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
            times.append(spent() - before)
        found[name] = statistics.quantiles(times, n=20)[-1]
    return found


@functools.cache
def _body(address: str, path: str) -> bytes:
    import urllib.request

    with urllib.request.urlopen(address + path) as answer:
        return bytes(answer.read())


def stock(texts: dict[str, Sequence[str]], folder: Path) -> Path:
    """A site of Material's stock theme with a page for each of ``texts``; its folder."""
    docs = folder / "docs"
    docs.mkdir()
    for name, lines in {"index": ["Stock"], **texts}.items():
        paragraphs = (html.escape(line).translate({ord(sign): f"\\{sign}" for sign in "\\`*_{}[]#+-.!|>"})
                      for line in lines)
        (docs / f"{name}.md").write_text("# Stock\n\n" + "\n\n".join(paragraphs) + "\n", encoding="utf-8")
    (folder / "mkdocs.yml").write_text("site_name: stock\ntheme:\n  name: material\n  font: false\n", encoding="utf-8")
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet", "--config-file", str(folder / "mkdocs.yml")],
                   check=True)
    return folder / "site"


def row(name: str, found: Measured) -> str:
    """A page's row of the table."""
    def time(value: float | None) -> str:
        return "" if value is None else f"{value:.1f} ms"

    sizes = " | ".join(f"{found.sizes[sort] / 1000:.1f}" for sort in SORTS)
    return (f"| {name} | {sizes} | {found.requests} | {found.usable:.0f} ms | {found.paint:.0f} ms | "
            f"{found.shift:.3f} | {time(found.step)} | {time(found.hover)} |")


def aims(family: str, found: Measured, beside: Measured) -> Iterator[tuple[bool, str]]:
    """Each aim for a family's page: whether it is met, and how far."""
    assert found.step is not None
    assert found.hover is not None
    weights = {"own js": SCRIPTS, "own css": STYLES} | ({"html": HTML} if family == HELD_TO_WEIGHT else {})
    for sort, most in weights.items():
        yield found.sizes[sort] <= most, f"{sort} {found.sizes[sort] / 1000:.1f} of {most / 1000:.0f} kB"
    yield found.step < ANSWER, f"a step of the slider {found.step:.1f} of {ANSWER:.0f} ms"
    yield found.hover < ANSWER, f"a hover {found.hover:.1f} of {ANSWER:.0f} ms"
    times = found.usable / beside.usable
    yield times <= USABLE, f"usable after {times:.2f} of {USABLE} times the stock page"
    yield found.shift == 0, f"layout shift {found.shift:.3f}"
    yield not found.strangers, f"{len(found.strangers)} requests to other hosts"


def main() -> int:
    """Print the table and the aims; 1 where one is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*")
    parser.add_argument("--loads", type=int, default=7)
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()
    pages = {path.parent.name: path for path in (ROOT / "site" / "families").glob("*/index.html")}
    if not pages:
        parser.error("no pages of families: build the site first, with `encyclopedia build`")
    families = arguments.families or list(dict.fromkeys(
        [name for name in ("doge", "laguna") if name in pages]
        + [max(pages, key=lambda name: len(compressed(pages[name])))]))
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = launch(playwright)
        with served(ROOT / "site") as ours:
            texts = {name: text_of(browser, ours, f"families/{name}/") for name in families}
            with served(stock(texts, Path(folder))) as theirs:
                found = {name: load(browser, [(ours, f"families/{name}/"), (theirs, f"{name}/")], arguments.loads,
                                    arguments.steps) for name in families}
        browser.close()
    print("Sizes in kB after gzip; times are medians, of steps and hovers the 95th percentile of processor time.\n")
    print(f"| page | {' | '.join(SORTS)} | requests | usable | largest paint | shift | step | hover |")
    print("|---" * (len(SORTS) + 7) + "|")
    for name in families:
        print(row(name, found[name][0]))
        print(row(f"stock page of {name}", found[name][1]))
    missed = 0
    print()
    for name in families:
        for met, said in aims(name, *found[name]):
            missed += not met
            print(f"{'pass' if met else 'FAIL'}  {name}: {said}")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
