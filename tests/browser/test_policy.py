"""Under the policy that pages carry and hosts send, nothing of a page is blocked, and nothing in it would need more."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Opened
from tests.browser.kinds import KINDS, sideways
from tests.browser.searching import finds

pytestmark = pytest.mark.core

#: Of scripts that hold data, which no browser runs.
DATA = {"application/json", "text/html"}


class Sources(HTMLParser):
    """What a page runs and how it is dressed: what stands in it, and the files it asks for."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.inline: list[str] = []
        self.files: list[str] = []
        self.policies: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        if tag == "style" or (tag == "script" and "src" not in found and found.get("type") not in DATA):
            self.inline.append(f"<{tag}>")
        self.inline += [f"<{tag} {name}>" for name in found if name == "style" or name.startswith("on")]
        if tag == "script":
            self.files += [found["src"]] if found.get("src") else []
        if tag == "link" and found.get("rel") in ("stylesheet", "modulepreload"):
            self.files.append(found["href"] or "")
        if tag == "meta" and found.get("http-equiv") == "Content-Security-Policy":
            self.policies.append(found["content"] or "")


def directives(policy: str) -> dict[str, list[str]]:
    return {name: sources for name, *sources in (part.split() for part in policy.split(";"))}


def test_no_page_has_anything_inline_and_every_file_it_asks_for_is_there(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        found = Sources(page.read_text(encoding="utf-8"))
        assert found.inline == [], page
        for source in found.files:
            parts = urlsplit(source)
            assert not parts.netloc, (page, source)
            start = site if parts.path.startswith("/") else page.parent
            assert (start / parts.path.lstrip("/")).is_file(), (page, source)


def test_the_policy_allows_this_site_alone_and_every_page_carries_it(site: Path) -> None:
    [said] = [line for line in (site / "_headers").read_text(encoding="utf-8").splitlines()
              if "Content-Security-Policy:" in line]
    header = directives(said.partition(": ")[2])
    assert header["default-src"] == ["'none'"]
    assert header["frame-ancestors"] == ["'none'"]
    assert {source for sources in header.values() for source in sources} == {"'none'", "'self'", "data:"}
    assert [name for name, sources in header.items() if "data:" in sources] == ["img-src"]
    carried = {policy for page in site.rglob("*.html")
               for policy in Sources(page.read_text(encoding="utf-8")).policies or [""]}
    assert len(carried) == 1
    del header["frame-ancestors"]
    assert directives(carried.pop()) == header


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_of_a_page_is_blocked_or_asked_of_another_host_and_it_fits_the_window(
    open_page: Callable[..., Opened], address: str, kind: str
) -> None:
    opened = open_page(KINDS[kind].path)
    KINDS[kind].prepare(opened.page)
    assert opened.errors == []
    assert {urlsplit(url).netloc for url in opened.requests} == {urlsplit(address).netloc}
    assert sideways(opened.page) <= 0


def test_what_the_policy_forbids_is_blocked_and_said(open_page: Callable[..., Opened]) -> None:
    opened = open_page("models/")
    opened.page.evaluate("""() => {
        const script = document.createElement("script");
        script.textContent = "window.ran = true";
        document.body.append(script);
    }""")
    assert opened.page.evaluate("window.ran") is None
    assert all("Content Security Policy" in error for error in opened.errors)
    assert opened.errors


def test_the_search_works_under_it(open_page: Callable[..., Opened]) -> None:
    opened = open_page("")
    expect(finds(opened.page, "attention_scores").first).to_be_visible(timeout=20_000)
    assert opened.errors == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_colours_are_the_readers_from_the_first_paint(open_page: Callable[..., Opened], scheme: str) -> None:
    page = open_page("", scheme=scheme).page
    other = {"light": "slate", "dark": "default"}[scheme]
    page.locator("label[for^=__palette]:visible").click()
    expect(page.locator("body")).to_have_attribute("data-md-color-scheme", other)
    # With the theme's own scripts held back, the choice is put on the page by what runs before it is painted.
    page.route("**/assets/javascripts/bundle*", lambda route: route.abort())
    page.reload()
    expect(page.locator("body")).to_have_attribute("data-md-color-scheme", other)
    page.evaluate("localStorage.clear()")
    page.reload()
    expect(page.locator("body")).to_have_attribute(
        "data-md-color-scheme", {"light": "default", "dark": "slate"}[scheme])
