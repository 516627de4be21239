"""Benchmark: how smoothly the table of models goes with many rows, in headless Chromium.

    python scripts/bench_table.py [--rows N]

The built site's page with its real rows repeated is scrolled, sorted and filtered, with the usual columns and with all.
For each action it prints the longest time between two frames and the 95th percentile, and the processor time of the
longest task of the page's thread, which other programs on the machine lengthen far less. It fails where such a task
takes more than 100 ms: then there is a frame that long on any machine alike.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from playwright.sync_api import Page, sync_playwright  # noqa: E402

from encyclopedia.across.models import Table, model_table  # noqa: E402
from encyclopedia.across.models_page import models_view, render_models, table_json  # noqa: E402
from encyclopedia.build.facts import families_in  # noqa: E402
from tests.browser.chromium import launch  # noqa: E402

#: The longest time that a frame may take without being felt, in milliseconds.
LONGEST = 100

_ARTICLE = ('<article class="models page-body"', "</article>")

#: Runs an action in steps, two frames after each, and gives the times between frames.
_MEASURE = """async (steps) => {
  const frames = [];
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const scroller = document.querySelector("[data-models-scroll]");
  const type = (selector, text) => {
    const field = document.querySelector(selector);
    field.value = text;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const press = (selector) => document.querySelector(selector).click();
  let last = await frame();
  for (const step of steps) {
    if (step.top !== undefined) scroller.scrollTop = step.top;
    if (step.left !== undefined) scroller.scrollLeft = step.left;
    if (step.type) type(...step.type);
    if (step.press) press(step.press);
    for (let count = 0; count < 2; count += 1) {
      const now = await frame();
      frames.push(now - last);
      last = now;
    }
  }
  return frames;
}"""


def actions() -> dict[str, list[dict[str, Any]]]:
    """Each action in the steps that a reader takes."""
    def press(key: str) -> dict[str, Any]:
        return {"press": f'th[data-key="{key}"] button'}

    search = "[data-models-search]"
    return {
        "scroll down": [{"top": 400 * step} for step in range(60)] + [{"top": 0}, {"top": 20000}, {"top": 0}],
        "scroll sideways": [{"left": 60 * step} for step in range(30)] + [{"left": 0}],
        "sort": [press(key) for key in ("parameters_total", "hidden_size", "attention", "checkpoint", "num_layers",
                                        "num_layers", "positions", "context")],
        "search": [{"type": [search, text]} for text in ("g", "gq", "gqa", "gqa m", "gqa", "", "z", "zz", "")],
        "filter": [{"press": f'[data-models-choice="{key}"] input[value="{word}"]'}
                   for key, word in (("attention", "GQA"), ("norm", "RMSNorm"), ("norm", "LayerNorm"))]
        + [{"type": ['[data-models-range="hidden_size"] [data-from]', text]} for text in ("1", "1k", "2k", "")]
        + [{"press": "[data-models-clear]"}],
        "open filters": [{"press": '[aria-controls="models-filters"]'}, {"press": '[aria-controls="models-filters"]'}],
    }


def repeated(table: Table, count: int) -> Table:
    """``count`` rows, those of ``table`` over and over."""
    return Table(table.columns, tuple(islice(cycle(table.rows), count)), table.filters)


@contextmanager
def served(site: Path, pages: dict[str, str]) -> Iterator[str]:
    """The address of ``site`` with ``pages`` instead of its own."""
    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            text = pages.get(self.path.partition("?")[0])
            if text is None:
                super().do_GET()
                return
            self.send_response(200)
            self.send_header("Content-Type", "application/json" if self.path.endswith(".json") else "text/html")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *arguments: Any) -> None:
            pass

    handler = functools.partial(Handler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def with_rows(page: str, table: Table) -> str:
    """The built page with the table of ``table``."""
    article = render_models(models_view(table), ROOT / "templates")
    start, end = (text.index(_ARTICLE[0]) for text in (page, article))
    stop = page.index(_ARTICLE[1], start)
    return page[:start] + article[end:article.index(_ARTICLE[1])] + page[stop:]


def longest_task(trace: bytes) -> float:
    """The processor time of the longest task of the page's main thread, in milliseconds."""
    events = json.loads(trace)["traceEvents"]
    main = {(event["pid"], event["tid"]) for event in events
            if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"}
    return max((event.get("tdur", 0) / 1000 for event in events
                if (event["pid"], event["tid"]) in main and event["name"].endswith("RunTask")), default=0.0)


def measured(page: Page, columns: str) -> list[float]:
    """Run every action and print its row; the processor times of the longest tasks."""
    longest = []
    for name, steps in actions().items():
        browser = page.context.browser
        assert browser is not None
        browser.start_tracing(page=page, categories=["toplevel"])
        frames = sorted(page.evaluate(_MEASURE, steps))
        longest.append(longest_task(browser.stop_tracing()))
        late = frames[min(len(frames) - 1, int(0.95 * len(frames)))]
        print(f"| {columns} | {name} | {len(steps)} | {frames[-1]:.0f} ms | {late:.0f} ms | {longest[-1]:.0f} ms |",
              flush=True)
    return longest


def main() -> int:
    """Print the table; 1 where a task took too long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1000)
    arguments = parser.parse_args()
    built = ROOT / "site" / "models" / "index.html"
    if not built.is_file():
        parser.error("no site: build it first, with `encyclopedia build`")
    table = repeated(model_table(families_in(ROOT / "site_src" / "data")), arguments.rows)
    pages = {"/models/": with_rows(built.read_text(encoding="utf-8"), table), "/data/models.json": table_json(table)}
    print(f"{arguments.rows} rows, {len(table.columns)} columns")
    print("| columns | action | steps | longest frame | 95th percentile | longest task, processor time |")
    print("|---|---|---|---|---|---|")
    with served(ROOT / "site", pages) as address, sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        longest = []
        for columns, fragment in (("usual", ""),
                                  ("all", "#columns=" + ",".join(column.key for column in table.columns))):
            page.goto("about:blank")
            page.goto(f"{address}/models/{fragment}")
            page.wait_for_selector("[data-ready]")
            page.wait_for_timeout(500)
            longest += measured(page, columns)
        browser.close()
    print(f"longest task: {max(longest):.0f} ms")
    return int(max(longest) > LONGEST)


if __name__ == "__main__":
    sys.exit(main())
