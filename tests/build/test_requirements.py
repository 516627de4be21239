"""Packages that are missing or of another version than the project works with: said in one line before all else."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from encyclopedia.requirements import unmet_requirements
from tests.build.commands import environment, run_in
from tests.build.conftest import DERIVED, ROOT


def installed(folder: Path, name: str, version: str) -> dict[str, str]:
    """An environment variable that puts a package of that name and version before the installed ones."""
    about = folder / f"{name}-{version}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return {"PYTHONPATH": str(folder)}


def require(project: Path, line: str) -> None:
    config = project / "pyproject.toml"
    text = config.read_text()
    assert "dependencies = [\n" in text
    config.write_text(text.replace("dependencies = [\n", f'dependencies = [\n    "{line}",\n', 1))


def with_path(project: Path, found: dict[str, str]) -> dict[str, str]:
    return {**environment(project), "PYTHONPATH": f"{found['PYTHONPATH']}:{project}"}


@pytest.mark.parametrize(("name", "version", "needed"), [
    ("transformers", "5.10.0", ">=5.18,<6"), ("transformers", "6.0.1", ">=5.18,<6"), ("typer", "0.1", ">=0.15")])
def test_an_unsupported_version_is_one_line(
    project: Path, tmp_path: Path, name: str, version: str, needed: str
) -> None:
    surroundings = with_path(project, installed(tmp_path / "other", name, version))
    for arguments in (("list",), ("build", DERIVED)):
        result = run_in(project, *arguments, env=surroundings)
        assert result.returncode == 1
        assert result.stderr == (f"{name} {version} is installed, the encyclopedia needs {needed}; "
                                 "pip install -c constraints.txt -e . in the project's folder\n")
        assert result.stdout == ""
    assert not (project / "site").exists()


def test_a_release_candidate_of_a_supported_version_is_one(tmp_path: Path) -> None:
    for version, met in (("5.99.0rc1", True), ("6.0.0.dev0", False)):
        found = subprocess.run(
            [sys.executable, "-c", "from encyclopedia.requirements import unmet_requirements\n"
                                   "print(unmet_requirements())"],
            env=with_path(ROOT, installed(tmp_path / version, "transformers", version)), cwd=tmp_path,
            capture_output=True, text=True, check=True).stdout
        assert (found == "None\n") is met, found


def test_everything_that_is_missing_is_named_in_one_line(project: Path) -> None:
    require(project, "no-such-library>=1.2,<2")
    require(project, "nor-this; python_version >= '3'")
    require(project, "nor-this-elsewhere; sys_platform == 'elsewhere'")
    result = run_in(project, "list")
    assert result.returncode == 1
    [line] = result.stderr.splitlines()
    assert "no-such-library is not installed, the encyclopedia needs >=1.2,<2; " in line
    assert "nor-this is not installed" in line
    assert "elsewhere" not in line


def test_asking_is_cheap_and_imports_nothing_that_is_asked_about() -> None:
    asked = ("import sys\nfrom encyclopedia.requirements import unmet_requirements\n"
             "assert unmet_requirements() is None\n"
             "print([name for name in ('torch', 'transformers', 'nnsight', 'typer', 'rich') if name in sys.modules])")
    assert subprocess.run([sys.executable, "-c", asked], cwd=ROOT, env=environment(ROOT), capture_output=True,
                          text=True, check=True).stdout == "[]\n"
    fastest = float("inf")
    for _ in range(5):
        start = time.process_time()
        unmet_requirements()
        fastest = min(fastest, time.process_time() - start)
    assert fastest < 0.1


def python_in(folder: Path, project: Path, found: dict[str, str] | None = None) -> Path:
    """A folder that looks like an environment: this one's interpreter, with ``found`` before its packages."""
    program = folder / "bin" / "python"
    program.parent.mkdir(parents=True)
    before = "" if found is None else f"{found['PYTHONPATH']}:"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{before}$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    program.chmod(0o755)
    return folder


def test_two_environments_are_compared_where_both_are_supported(project: Path, tmp_path: Path) -> None:
    old, new = (python_in(tmp_path / name, project) for name in ("old", "new"))
    result = run_in(project, "diff", str(old), str(new), DERIVED)
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    unsupported = python_in(tmp_path / "unsupported", project, installed(tmp_path / "found", "transformers", "5.10.0"))
    result = run_in(project, "diff", str(old), str(unsupported), DERIVED)
    assert result.returncode == 1
    assert "transformers 5.10.0 is installed, the encyclopedia needs >=5.18,<6" in result.stderr
    assert result.stderr.splitlines()[-1].endswith("install the project's requirements there")
