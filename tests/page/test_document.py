"""What a page's front matter asks a browser for."""

from __future__ import annotations

import re

import pytest

from encyclopedia.build.project import find_project
from encyclopedia.page.document import document
from encyclopedia.page.render import FAILED_STYLES, SCRIPTS
from encyclopedia.page.scripts import imported
from encyclopedia.page.sheets import PARTS

ASSETS = find_project().root / "site_src" / "assets"


def test_every_module_that_is_reached_is_named_once_and_no_script_again() -> None:
    named = [*SCRIPTS, *imported(SCRIPTS)]
    assert len(set(named)) == len(named)
    reached = {other for name in named
               for other in re.findall(r'"\./([\w-]+\.js)"', (ASSETS / "js" / name).read_text(encoding="utf-8"))}
    assert reached <= set(named)
    assert imported(["copy.js"]) == []


def test_a_script_that_is_not_there_is_an_error() -> None:
    with pytest.raises(FileNotFoundError, match=r"no-such\.js"):
        document("<p>text</p>", title="A page", hue=1, scripts=["no-such.js"])


def test_every_sheet_of_a_family_is_there() -> None:
    named = {*FAILED_STYLES, *(part for parts in PARTS.values() for part in parts)}
    assert [name for name in named if not (ASSETS / "css" / name).is_file()] == []
