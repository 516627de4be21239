"""Killed at any moment, a build leaves the old site or the new one, a cache that can be read, and nothing to grow."""

from __future__ import annotations

import os
import random
import signal
import sys
from pathlib import Path

import pytest

from encyclopedia.facts import CheckpointFacts, NotesFacts
from tests.build.conftest import DERIVED
from tests.build.endless import STATES
from tests.build.killing import Forks, contents, digest, scraps
from tests.build.turning import Turning

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")

#: Kills of whole builds: so many tests, for two cores to share, of so many kills each.
GROUPS, KILLS = 8, 14

SIGNALS = [signal.SIGKILL] * 5 + [signal.SIGTERM, signal.SIGINT]


@pytest.mark.parametrize("seed", range(GROUPS))
def test_a_build_killed_at_random_moments(turning: Turning, work: Forks, seed: int) -> None:
    moments = random.Random(seed)
    headings = {site: heading for heading, site in turning.sites.items()}
    others = {path.name: path.read_bytes() for path in turning.cache.iterdir() if not path.name.startswith(DERIVED)}
    entries = {path.name for path in turning.cache.iterdir()}
    killed = 0
    while killed < KILLS:
        before = digest(turning.site)
        after = next(site for site in turning.sites.values() if site != before)
        turning.turn(headings[after])
        captures = moments.random() < 0.35
        if captures:
            turning.forget()
        ended = work.run("command", "build", DERIVED, "--jobs", "1", sent=moments.choice(SIGNALS),
                         kill_after=moments.uniform(0, turning.seconds[captures]))
        killed += ended.code != 0
        assert "Traceback" not in ended.said
        assert digest(turning.site) in ((before, after) if ended.code else (after,)), ended.said
        for entry in turning.cache.glob("*.json"):
            model = NotesFacts if entry.name.startswith("notes-") else CheckpointFacts
            model.model_validate_json(entry.read_bytes())
        assert others.items() <= contents(turning.cache).items()
        # A folder and a config of one build, and a file that was being written.
        assert len(scraps(turning.root)) <= 3
    last = work.run("command", "build", DERIVED, "--jobs", "1")
    assert last.code == 0, last.said
    assert digest(turning.site) == turning.sites[turning.heading]
    assert scraps(turning.root) == []
    assert {path.name for path in turning.cache.iterdir()} == entries


def test_pages_killed_while_they_are_written(turning: Turning, work: Forks) -> None:
    moments = random.Random("pages")
    source = turning.root / "site_src"
    whole = []
    for rounds in ("1", "2"):
        ended = work.run("pages", rounds)
        assert ended.code == 0, ended.said
        whole.append(contents(source))
    assert whole[0].keys() == whole[1].keys()
    assert whole[0] != whole[1]
    for _ in range(30):
        assert work.run("pages", "endless", kill_after=moments.uniform(0.02, ended.seconds / 2)).code == -signal.SIGKILL
        for path, content in contents(source).items():
            assert content in (whole[0][path], whole[1][path]), path
    assert work.run("clear", str(source)).code == 0
    assert scraps(turning.root) == []
    assert work.run("pages", "1").code == 0
    assert contents(source) == whole[0]


@pytest.mark.parametrize("way", ["exchanged", "aside"])
def test_a_site_killed_while_it_is_put_in_place(work: Forks, tmp_path: Path, way: str) -> None:
    moments = random.Random(way)
    assert work.run("swaps", str(tmp_path), "1", way).code == 0
    for _ in range(60):
        assert work.run("swaps", str(tmp_path), "endless", way,
                        kill_after=moments.uniform(0.01, 0.2)).code == -signal.SIGKILL
        # Without an exchange in one step, the next run brings back a site that had been moved aside.
        site = tmp_path / "site"
        if way == "aside" and not site.exists():
            site = tmp_path / "site.previous"
        pages = [path.read_text() for path in site.iterdir()]
        assert pages in [[state] * 40 for state in STATES]
    assert work.run("swaps", str(tmp_path), "2", way).code == 0
    assert {path.read_text() for path in (tmp_path / "site").iterdir()} == {STATES[1]}
    assert not (tmp_path / "site.previous").exists()


def test_a_cache_killed_while_it_is_written(work: Forks, tmp_path: Path) -> None:
    moments = random.Random("cache")
    cache = tmp_path / "cache"
    for _ in range(60):
        assert work.run("entries", str(cache), "endless",
                        kill_after=moments.uniform(0.03, 0.2)).code == -signal.SIGKILL
        for entry in cache.glob("*.json"):
            [snippet] = NotesFacts.model_validate_json(entry.read_bytes()).snippets
            assert snippet.ran_on in [[state] * 2000 for state in STATES]
    left = list(cache.glob(".*.part"))
    assert left, "no kill met a file while it was written"
    assert work.run("clear", str(cache)).code == 0
    assert sorted(os.listdir(cache), key=str) == sorted((f"{number}.json" for number in range(20)), key=str)
