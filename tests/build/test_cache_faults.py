"""A cache that holds anything but facts: what cannot be read is captured afresh, and the pages are the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.build.commands import run_in, said_once
from tests.build.conftest import DERIVED
from tests.build.killing import Forks, contents
from tests.build.turning import Turning


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


#: By what it is, what it makes of an entry.
FAULTS: dict[str, Callable[[Path], Any]] = {
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "empty": lambda path: path.write_bytes(b""),
    "binary": lambda path: path.write_bytes(bytes(range(256)) * 64),
    "another shape": lambda path: path.write_text('{"id": "a/b", "hosts": 3, "more": null}'),
    "no object": lambda path: path.write_text("[1, 2, 3]"),
    "deep": lambda path: path.write_text("[" * 100_000),
    "a dangling link": lambda path: (path.unlink(), path.symlink_to("nowhere/at/all")),
}


def test_entries_that_are_none_are_made_afresh(turning: Turning, work: Forks) -> None:
    entries = [*turning.cache.glob(f"{DERIVED}-*.json"), *turning.cache.glob(f"notes-{DERIVED}-*.json")]
    assert len(entries) == 2
    good, pages = contents(turning.cache), contents(turning.root / "site_src")
    for corrupt in FAULTS.values():
        for entry in entries:
            corrupt(entry)
        result = work.run("command", "pages", DERIVED, "--jobs", "1")
        assert result.code == 0, result.said
        assert "checking notes 1/1" in result.said
        assert "1 checkpoint captured" in result.said
        assert "cannot write" not in result.said
        assert contents(turning.cache) == good
        assert contents(turning.root / "site_src") == pages


def test_an_entry_of_another_checkpoint_is_none(turning: Turning, work: Forks) -> None:
    [entry] = turning.cache.glob(f"{DERIVED}-*.json")
    good = entry.read_bytes()
    entry.write_text(json.dumps({**json.loads(good), "id": "somebody/else"}))
    assert "1 checkpoint captured" in work.run("command", "pages", DERIVED, "--jobs", "1").said
    assert entry.read_bytes() == good


@pytest.mark.parametrize("place", ["entry", "folder"])
def test_what_is_in_the_place_of_an_entry_or_of_the_cache_is_said_once(
    turning: Turning, work: Forks, place: str
) -> None:
    if place == "entry":
        [path] = turning.cache.glob(f"{DERIVED}-*.json")
        _folder(path)
        advice = "remove the folder that is in its place and run again"
    else:
        path = turning.cache
        turning.root.joinpath(".cache").rename(turning.root / "moved")
        turning.root.joinpath(".cache").write_text("no folder")
        advice = "remove the file that is in a folder's place and run again"
    pages = contents(turning.root / "site_src")
    for _ in range(2):
        result = work.run("command", "pages", DERIVED, "--jobs", "1")
        assert result.code == 0, result.said
        assert "Traceback" not in result.said
        assert "1 checkpoint captured" in result.said
        [line] = [line for line in result.said.splitlines() if "cannot write" in line]
        assert line.startswith(f"cannot write {path}")
        assert advice in line
    assert contents(turning.root / "site_src") == pages


def test_data_of_a_page_that_is_no_facts_is_named_with_what_to_do(turning: Turning) -> None:
    data = turning.root / "site_src" / "data"
    data.joinpath("doge.json").write_bytes(b"\xff\xfe")
    result = run_in(turning.root, "pages", DERIVED)
    assert result.returncode == 1
    assert "encyclopedia build doge" in said_once(result, str(data / "doge.json"))
    assert run_in(turning.root, "pages", "doge").returncode == 0
