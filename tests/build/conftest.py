"""A copy of the project to build in, cut down to a few families, with their facts captured once per run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from encyclopedia.build.project import find_project
from tests.build.commands import run_in
from tests.build.killing import Forks, digest, forks
from tests.build.turning import FAMILY, HEADINGS, Turning

#: The project these tests are of.
ROOT = find_project(Path(__file__).parent).root

COPIED = ("encyclopedia", "site_src", "templates", "scripts", "tests", "mkdocs.yml", "pyproject.toml")
GENERATED = tuple(line.removeprefix("/site_src/").strip("/") for line in
                  (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines() if line.startswith("/site_src/"))

#: Two families that people wrote a module and notes for, one that is all derived, one that cannot be verified.
DERIVED, FAILING = FAMILY, "blt"
FAMILIES = (DERIVED, FAILING, "doge", "laguna")

EVERY_FAMILY = "return tuple(sorted({*text_decoders(), *families_recorded()}))"


def _copied(folder: Path) -> Path:
    """The project at ``folder`` without a site, knowing :data:`FAMILIES` alone."""
    folder.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__", *GENERATED)
                            if name == "site_src" else shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, folder / name)
    coverage = folder / "encyclopedia" / "coverage.py"
    text = coverage.read_text(encoding="utf-8")
    assert EVERY_FAMILY in text
    coverage.write_text(text.replace(EVERY_FAMILY, f"return {FAMILIES!r}"), encoding="utf-8")
    for record in (folder / "encyclopedia" / "checkpoints").glob("*.json"):
        if record.stem not in FAMILIES:
            record.unlink()
    return folder


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy whose pages are written and whose cache holds every family's facts; tests leave it as it is."""
    base = tmp_path_factory.getbasetemp()
    shared = base if os.environ.get("PYTEST_XDIST_WORKER") is None else base.parent
    with FileLock(shared / "template.lock"):
        if not (shared / "template").is_dir():
            copy = _copied(shared / "template.new")
            result = run_in(copy, "pages", "--jobs", "2", timeout=1200)
            assert result.returncode == 0, result.stderr
            copy.rename(shared / "template")
    return shared / "template"


def strip(project: Path) -> None:
    """Take the pages of a copy away."""
    for generated in GENERATED:
        path = project / "site_src" / generated
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


@pytest.fixture
def project(template: Path, tmp_path: Path) -> Path:
    """The root of a copy with a warm cache and neither pages nor a site."""
    copy = tmp_path / "project"
    shutil.copytree(template, copy)
    strip(copy)
    return copy


@pytest.fixture
def run(project: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command line of the copy: ``run("build", "doge")``."""

    def runner(*arguments: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        return run_in(project, *arguments, timeout=timeout)

    return runner


@pytest.fixture(scope="session")
def prepared(template: Path) -> Turning:
    """What every test's :class:`Turning` is copied from, made once per run."""
    place, told = template.with_name("turning"), template.with_name("turning.json")
    with FileLock(template.with_name("turning.lock")):
        if not told.is_file():
            shutil.copytree(template, place)
            strip(place)
            turning = Turning(place, dict.fromkeys(HEADINGS, ""), {})
            with forks(place, place.with_suffix(".log")) as work:
                for heading in [*turning.sites, *turning.sites]:
                    turning.turn(heading)
                    captures = bool(turning.sites[heading])
                    if captures:
                        turning.forget()
                    ended = work.run("command", "build", DERIVED, "--jobs", "1")
                    assert ended.code == 0, ended.said
                    site = digest(turning.site)
                    assert turning.sites[heading] in ("", site), "two builds of one state differ"
                    turning.sites[heading] = site
                    turning.seconds[captures] = ended.seconds
            told.write_text(json.dumps([turning.sites, list(turning.seconds.items())]))
        sites, seconds = json.loads(told.read_text())
        return Turning(place, sites, dict(seconds))


@pytest.fixture
def turning(prepared: Turning, tmp_path: Path) -> Turning:
    shutil.copytree(prepared.root, tmp_path / "project")
    return Turning(tmp_path / "project", prepared.sites, prepared.seconds)


@pytest.fixture
def work(turning: Turning, tmp_path: Path) -> Iterator[Forks]:
    """Runs the work of the copy ``turning`` in forks, which saves importing everything each time."""
    with forks(turning.root, tmp_path / "log") as running:
        yield running
