"""A copy of the project to build in, cut down to a few families, with their facts captured once per run."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from encyclopedia.build.project import find_project
from tests.build.commands import command, environment

#: The project these tests are of.
ROOT = find_project(Path(__file__).parent).root

COPIED = ("encyclopedia", "site_src", "templates", "scripts", "tests", "mkdocs.yml", "pyproject.toml")
GENERATED = tuple(line.removeprefix("/site_src/").strip("/") for line in
                  (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines() if line.startswith("/site_src/"))

#: Two families that people wrote a module and notes for, one that is all derived, one that cannot be verified.
DERIVED, FAILING = "arcee", "blt"
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


def run_in(project: Path, *arguments: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """The command line of the copy ``project``."""
    return subprocess.run(command(*arguments), cwd=project, env=environment(project), capture_output=True, text=True,
                          timeout=timeout, check=False)


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


@pytest.fixture
def project(template: Path, tmp_path: Path) -> Path:
    """The root of a copy with a warm cache and neither pages nor a site."""
    copy = tmp_path / "project"
    shutil.copytree(template, copy)
    for generated in GENERATED:
        path = copy / "site_src" / generated
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    return copy


@pytest.fixture
def run(project: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command line of the copy: ``run("build", "doge")``."""

    def runner(*arguments: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        return run_in(project, *arguments, timeout=timeout)

    return runner
