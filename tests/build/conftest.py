"""A copy of the project to build in, with the facts the real one has captured."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from encyclopedia.build.project import find_project
from tests.build.commands import command, environment

COPIED = ("encyclopedia", "site_src", "templates", "scripts", "tests", "mkdocs.yml", "pyproject.toml")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The root of a copy of the project without a site."""
    root = find_project(Path(__file__).parent).root
    copy = tmp_path / "project"
    copy.mkdir()
    for name in COPIED:
        source = root / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, copy / name)
    for generated in ("families", "data", "source", "index.md"):
        path = copy / "site_src" / generated
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    if (root / ".cache").is_dir():
        shutil.copytree(root / ".cache", copy / ".cache")
    return copy


@pytest.fixture
def run(project: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command line of the copy: ``run("build", "doge")``."""

    def runner(*arguments: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command(*arguments), cwd=project, env=environment(project), capture_output=True,
                              text=True, timeout=timeout, check=False)

    return runner
