"""Built sites, served under a sub-path, and pages of them in a real browser.

Tests run on the site that MkDocs makes. Those with the mark ``core`` run on Zensical's too.
"""

from __future__ import annotations

import functools
import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from encyclopedia.build.project import find_project
from encyclopedia.build.site import Engine, build_site
from tests.browser.chromium import launch

SUB_PATH = "/some/where"

#: What is built for these tests: two families in all their states, one page per sort of block, one that failed, and
#: the one that quirks depart from.
FAMILIES = ("doge", "laguna")
SORTS = ("cohere", "gemma2", "mamba2")
FAILING = "blt"
PLAIN = "llama"

DESKTOP = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine" in metafunc.fixturenames:
        metafunc.parametrize("engine", list(Engine), indirect=True, scope="session")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if not _on_the_other_engine_for_nothing(item)]


def _on_the_other_engine_for_nothing(item: pytest.Item) -> bool:
    """Whether a test of this folder would run on Zensical's site though it is none of the core."""
    if not item.path.is_relative_to(Path(__file__).parent) or item.get_closest_marker("core"):
        return False
    call = getattr(item, "callspec", None)
    return call is not None and call.params.get("engine") is Engine.ZENSICAL


@pytest.fixture(scope="session")
def engine(request: pytest.FixtureRequest) -> Engine:
    """What made the site that a test looks at."""
    pytest.importorskip(request.param)
    return request.param


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Engine], Path]:
    """``built(engine)``: the folder of its site with the pages of these families, made once per run of all workers.

    The project's own site is MkDocs's, built from the cache where that holds everything; Zensical's is made from the
    pages that were written for it, and stands beside it.
    """
    project = find_project(Path(__file__).parent)
    run = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        run = run.parent

    def once(engine: Engine) -> Path:
        if engine is Engine.ZENSICAL:
            once(Engine.MKDOCS)
        place = project.site if engine is Engine.MKDOCS else project.root / f"{project.site.name}.{engine}"
        done = run / f"{engine}.built"
        project.cache.mkdir(parents=True, exist_ok=True)
        with FileLock(project.cache / "site.lock"):
            if done.exists():
                return place
            if engine is Engine.MKDOCS:
                subprocess.run([sys.executable, "-m", "encyclopedia", "build", *FAMILIES, *SORTS, FAILING, PLAIN],
                               cwd=project.root, check=True)
            else:
                build_site(project, engine, place)
            done.touch()
        return place

    return once


@pytest.fixture(scope="session")
def site(built: Callable[[Engine], Path], engine: Engine) -> Path:
    """The folder of the engine's site."""
    return built(engine)


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Sends the headers that the site asks its host for."""

    def end_headers(self) -> None:
        for line in (Path(self.directory) / "_headers").read_text(encoding="utf-8").splitlines()[1:]:
            self.send_header(*line.strip().split(": ", 1))
        super().end_headers()

    def translate_path(self, path: str) -> str:
        return super().translate_path(path.removeprefix(SUB_PATH))

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """The site's address, under :data:`SUB_PATH`."""
    handler = functools.partial(_Handler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}{SUB_PATH}"
        server.shutdown()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = launch(playwright)
        yield browser
        browser.close()


@dataclass
class Opened:
    """A page, with what went wrong on it; ``facts`` are those of its family, empty for a page about all of them."""

    page: Page
    errors: list[str]
    requests: list[str]
    facts: dict[str, Any]

    def node(self, name: str) -> Any:
        """The visible part with that node id."""
        return self.page.locator(f'[data-node="{name}"]:visible')

    def checkpoint(self, name: str | None = None) -> dict[str, Any]:
        """The facts of a checkpoint, of the reference by default."""
        wanted = name or self.facts["reference"]
        return next(entry for entry in self.facts["checkpoints"] if entry["id"] == wanted)


@pytest.fixture
def open_page(browser: Browser, address: str) -> Iterator[Callable[..., Opened]]:
    """Opens a page by its path on the site: ``open_page("checks/", phone=True, scheme="dark")``."""
    contexts: list[BrowserContext] = []

    def opener(
        path: str, *, phone: bool = False, scheme: str = "light", script: bool = True, facts: dict | None = None
    ) -> Opened:
        context = browser.new_context(
            viewport=PHONE if phone else DESKTOP, has_touch=phone, is_mobile=phone, color_scheme=scheme,
            java_script_enabled=script, device_scale_factor=1, reduced_motion="reduce")
        contexts.append(context)
        page = context.new_page()
        opened = Opened(page, [], [], facts or {})
        page.on("console", lambda message: opened.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: opened.errors.append(str(error)))
        page.on("request", lambda request: opened.requests.append(request.url))
        page.goto(f"{address}/{path}")
        page.wait_for_load_state("load")
        return opened

    yield opener
    for context in contexts:
        context.close()


@pytest.fixture
def open_family(open_page: Callable[..., Opened], site: Path) -> Callable[..., Opened]:
    """Opens a family's page: ``open_family("laguna", phone=True, scheme="dark", hash="block=3")``."""

    def opener(model_type: str, *, hash: str = "", **more: Any) -> Opened:
        facts = json.loads((site / "data" / f"{model_type}.json").read_text(encoding="utf-8"))
        return open_page(f"families/{model_type}/" + (f"#{hash}" if hash else ""), facts=facts, **more)

    return opener
