"""A disk that is full: the old site stays, one line says what to do, and the next build makes it good."""

from __future__ import annotations

import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.build.commands import run_in, said_once
from tests.build.conftest import DERIVED
from tests.build.disks import Disk, disk, needs_mounts
from tests.build.killing import digest, scraps
from tests.build.turning import Turning

SIZE = 96 * 2**20
ADVICE = "no space left on device; free some space and run again"


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Disk]:
    place = tmp_path / "disk"
    place.mkdir()
    with disk(place, SIZE) as made:
        yield made


def build(disk: Disk, project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_in(project, "build", DERIVED, *arguments, cwd=None, inside=disk.within(project))


def _small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


@needs_mounts
def test_a_disk_that_fills_up_at_every_stage(prepared: Turning, small: Disk) -> None:
    shutil.copytree(prepared.root, small.path / "project")
    seen = Turning(small.path / "project", prepared.sites, prepared.seconds)
    project = small.place / "project"
    old = digest(seen.site)
    # No room for a page; for pages, and no new site; for most of that.
    for left, what in ((0, project / "site_src"), (2**20, project / "site"), (7 * 2**20, project / "site")):
        seen.turn(seen.other)
        filling = small.fill(left)
        result = build(small, project)
        assert result.returncode == 1
        line = said_once(result, "cannot write")
        assert line.startswith(f"cannot write {what}")
        assert line.endswith(ADVICE)
        assert digest(seen.site) == old
        filling.unlink()
    assert build(small, project).returncode == 0
    assert digest(seen.site) == seen.sites[seen.heading] != old
    assert scraps(seen.root) == []


@needs_mounts
@pytest.mark.parametrize("fault", ["full", "read-only"])
def test_a_cache_that_cannot_be_written_costs_time_alone(turning: Turning, fault: str) -> None:
    cache = turning.root / ".cache"
    with disk(cache, 2**20) as small:
        if fault == "full":
            small.fill(0)
        else:
            small.freeze()
        turning.turn(turning.other)
        result = build(small, turning.root)
    assert result.returncode == 0, result.stderr
    assert "1 checkpoint captured" in result.stderr
    line = said_once(result, "cannot write")
    assert line.startswith(f"cannot write {cache}/facts")
    assert {"full": "no space left on device; free some", "read-only": "read-only file system; make"}[fault] in line
    assert line.endswith("; the build goes on and captures this again next time")
    assert digest(turning.site) == turning.sites[turning.heading]


@needs_mounts
def test_a_project_that_is_read_only(prepared: Turning, small: Disk) -> None:
    shutil.copytree(prepared.root, small.path / "project")
    small.freeze()
    project = small.place / "project"
    result = build(small, project)
    assert result.returncode == 1
    assert result.stderr.splitlines() == [
        f"cannot write {project / 'site.lock'}: read-only file system; make the file system writable, or work on a "
        "copy of the project"]
    checked = run_in(project, "check", DERIVED, cwd=None, inside=small.within(project))
    assert checked.returncode == 0, checked.stderr
    assert "values read" in checked.stdout


def test_a_limit_on_the_size_of_files(turning: Turning) -> None:
    old = digest(turning.site)
    turning.turn(turning.other)
    limited = run_in(turning.root, "build", DERIVED, preexec_fn=_small_files)
    assert limited.returncode == 1
    assert said_once(limited, "cannot write").endswith("file too large; raise the limit of a file's size (ulimit -f) "
                                                       "and run again")
    assert digest(turning.site) == old
    assert run_in(turning.root, "build", DERIVED).returncode == 0
    assert digest(turning.site) == turning.sites[turning.heading] != old
