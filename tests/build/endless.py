"""Pieces of the project's work that go on until they are killed, so that the dangerous moments are met often."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from encyclopedia.build import files
from encyclopedia.build.cache import FactsCache
from encyclopedia.build.facts import families_in
from encyclopedia.build.pages import write_pages
from encyclopedia.build.project import Project
from encyclopedia.cli import main
from encyclopedia.facts import NotesFacts, SnippetFacts
from encyclopedia.files import clear_scraps, restore_folder, swap_folder

#: The two states that what is written over and over alternates between.
STATES = ("one", "other")


def command_line(*arguments: str) -> None:
    sys.argv = ["encyclopedia", *arguments]
    main()


def pages(rounds: str) -> None:
    """Write a family's pages and those about all families, its title alternating."""
    project = Project(Path.cwd())
    [family] = families_in(project.source / "data")
    for state in _alternating(rounds):
        write_pages(project, [family.model_copy(update={"title": state})], [])


def swaps(place: str, rounds: str, exchange: str) -> None:
    """Put one folder in the place of the other, as a build does with its site."""
    if exchange == "aside":
        files._exchange = lambda one, other: False
    current = Path(place) / "site"
    for state in _alternating(rounds):
        restore_folder(current)
        new = Path(place) / f"site.new-{os.getpid()}"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        for number in range(40):
            (new / f"{number}.html").write_text(state)
        swap_folder(new, current)


def entries(place: str, rounds: str) -> None:
    """Store facts in a cache over and over."""
    store = FactsCache(Path(place), NotesFacts)
    for state in _alternating(rounds):
        for number in range(20):
            store.put(str(number), NotesFacts(snippets=[SnippetFacts(line=1, ran_on=[state] * 2000, reason=None)]))
    assert store.trouble is None


def clear(place: str) -> None:
    clear_scraps(Path(place))


def _alternating(rounds: str) -> Iterator[str]:
    states = itertools.cycle(STATES)
    return states if rounds == "endless" else itertools.islice(states, int(rounds))


ACTIONS: dict[str, Callable[..., None]] = {
    "command": command_line, "pages": pages, "swaps": swaps, "entries": entries, "clear": clear}
