"""What of the project's own requirements is not installed, or not in a version that it works with.

Asked before anything else is imported, so it reads what is written about the packages and imports none of them.
"""

from __future__ import annotations

import tomllib
from importlib import metadata
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent


def unmet_requirements() -> str | None:
    """One line that names every requirement that is not met and what to do, or ``None`` where all are.

    The requirements are those of the ``pyproject.toml`` beside the package, or else of the installed package.
    """
    try:
        from packaging.requirements import Requirement
    except ImportError:
        return _advised(["packaging is not installed"])
    problems = []
    for line in _stated():
        requirement = Requirement(line)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        needed = ",".join(sorted(map(str, requirement.specifier), reverse=True))
        try:
            installed = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            problems.append(f"{requirement.name} is not installed, the encyclopedia needs {needed}")
            continue
        # A release candidate of a supported version is one.
        if not requirement.specifier.contains(installed, prereleases=True):
            problems.append(f"{requirement.name} {installed} is installed, the encyclopedia needs {needed}")
    return _advised(problems) if problems else None


def _stated() -> list[str]:
    project = _ROOT / "pyproject.toml"
    if project.is_file():
        return tomllib.loads(project.read_text(encoding="utf-8"))["project"]["dependencies"]
    try:
        return metadata.requires("encyclopedia") or []
    except metadata.PackageNotFoundError:
        return []


def _advised(problems: list[str]) -> str:
    return f"{'; '.join(problems)}; pip install -c constraints.txt -e . in the project's folder"
