"""What the sites of the two engines have in common, and that nothing differs but what the README lists."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from encyclopedia.build.site import Engine

#: Folders of the theme's own files.
THEME = ("assets/javascripts/", "assets/stylesheets/")
#: The search's index on each engine's site, with the name of its list.
INDEX = {Engine.MKDOCS: ("search/search_index.json", "docs"), Engine.ZENSICAL: ("search.json", "items")}

ARTICLE = re.compile(r'<article class="md-content__inner md-typeset">(.*)</article>\s*</div>', re.DOTALL)
TAG = re.compile(r"<[^>]+>")
#: A mark of the project's for the search.
EXCLUDED = re.compile(r' data-search-exclude(="")?(?=[ >])')


@pytest.fixture(scope="module")
def sites(built: Callable[[Engine], Path]) -> dict[Engine, Path]:
    pytest.importorskip(Engine.ZENSICAL)
    return {engine: built(engine) for engine in Engine}


def files(site: Path) -> set[str]:
    """The site's files without those of the theme."""
    names = (path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file())
    return {name for name in names if not name.startswith(THEME)}


def article(page: Path) -> str:
    """What the project wrote for a page, without the marks for the search, which Zensical takes away."""
    found = ARTICLE.search(page.read_text(encoding="utf-8"))
    assert found, page
    return EXCLUDED.sub("", found[1].replace('<a id="__skip" tabindex="-1"></a>', "")).strip()


def entries(sites: dict[Engine, Path], engine: Engine) -> dict[str, dict[str, Any]]:
    """What the search of the engine's site can find, by address."""
    name, items = INDEX[engine]
    found = json.loads((sites[engine] / name).read_text(encoding="utf-8"))[items]
    return {entry["location"]: entry for entry in found}


def words(html: str) -> list[str]:
    return TAG.sub("", html).split()


def test_the_sites_have_the_same_files_but_for_the_index_and_the_packed_sitemap(sites: dict[Engine, Path]) -> None:
    mkdocs, zensical = files(sites[Engine.MKDOCS]), files(sites[Engine.ZENSICAL])
    assert mkdocs - zensical == {INDEX[Engine.MKDOCS][0], "sitemap.xml.gz"}
    assert zensical - mkdocs == {INDEX[Engine.ZENSICAL][0]}


def test_every_page_has_the_same_content_and_every_other_file_is_the_same(sites: dict[Engine, Path]) -> None:
    mkdocs, zensical = sites[Engine.MKDOCS], sites[Engine.ZENSICAL]
    shared = files(mkdocs) & files(zensical)
    pages = {name for name in shared if name.endswith("index.html")}
    assert len(pages) > 50
    assert [name for name in sorted(pages) if article(mkdocs / name) != article(zensical / name)] == []
    other = sorted(shared - pages - {"sitemap.xml"})
    assert "404.html" in other
    assert [name for name in other if (mkdocs / name).read_bytes() != (zensical / name).read_bytes()] == []


def test_both_searches_know_the_same_texts_and_only_mkdocs_weighs_them(sites: dict[Engine, Path]) -> None:
    mkdocs, zensical = entries(sites, Engine.MKDOCS), entries(sites, Engine.ZENSICAL)
    assert sorted(mkdocs) == sorted(zensical)
    assert [place for place in mkdocs if words(mkdocs[place]["text"]) != words(zensical[place]["text"])] == []
    # Zensical calls a page that the navigation names as the navigation does.
    assert {place: entry["title"] for place, entry in zensical.items() if entry["title"] != mkdocs[place]["title"]} == {
        "machines/": "Data"}
    assert any("boost" in entry for entry in mkdocs.values())
    assert not any("boost" in entry for entry in zensical.values())
