"""Making the site from the written pages, beside the old one, and putting it in its place when it is whole."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

from encyclopedia.build.project import Project
from encyclopedia.files import CannotWrite, named_fault, restore_folder, swap_folder, writing

_ENGINE = Path(__file__).with_name("engine.py")

#: Tells the MkDocs hook that the pages are up to date.
PAGES_WRITTEN = "ENCYCLOPEDIA_PAGES_WRITTEN"


class Engine(StrEnum):
    """What makes the site from the written pages; both read the same ``mkdocs.yml``."""

    MKDOCS = "mkdocs"
    ZENSICAL = "zensical"


class SiteFailed(Exception):
    """The site engine is not installed or did not finish."""


def build_site(project: Project, engine: Engine = Engine.MKDOCS, place: Path | None = None,
               address: str | None = None) -> None:
    """Build the site; until the new one is whole the old one stays.

    Args:
        project: whose written pages it is made from.
        engine: what makes it.
        place: its folder, beside ``project.site`` and that by default.
        address: where it will be hosted, which the page in place of a missing one and the sitemap need to know.

    Raises:
        SiteFailed: with the package to install where the engine is missing, else with what stopped the engine.
        CannotWrite: where the disk is full, or anything else keeps the new site from being written.
    """
    if find_spec(engine) is None:
        raise SiteFailed(f"{engine}: not installed here, so it cannot build the site; pip install {engine}")
    site = place or project.site
    with writing(site):
        restore_folder(site)
        _clear_left_overs(site)
        new = Path(tempfile.mkdtemp(prefix=f"{site.name}.new-", dir=site.parent))
        # Zensical takes the folder of the site from its config alone, and paths in that from the config's own folder.
        config = new.with_suffix(f"{new.suffix}.yml")
        try:
            new.chmod(0o755)
            settings = {"INHERIT": "mkdocs.yml", "site_dir": new.name} | ({"site_url": address} if address else {})
            config.write_text(json.dumps(settings), encoding="utf-8")
            result = _run(engine, config, project)
            if result.returncode:
                raise _stopped(engine, result, site)
            swap_folder(new, site)
        finally:
            config.unlink(missing_ok=True)
            shutil.rmtree(new, ignore_errors=True)


def _clear_left_overs(site: Path) -> None:
    """Remove what builds that were killed left beside the site."""
    for left_over in site.parent.glob(f"{site.name}.new-*"):
        if left_over.is_dir():
            shutil.rmtree(left_over, ignore_errors=True)
        else:
            left_over.unlink(missing_ok=True)


def _run(engine: Engine, config: Path, project: Project) -> subprocess.CompletedProcess[str]:
    """Run the engine; it ends when this process does, and does not write on into a folder that nobody waits for."""
    environment = {**os.environ, **_build_time(project), PAGES_WRITTEN: "1", "NO_MKDOCS_2_WARNING": "1"}
    # Run by its path, without that path among the places of modules: its neighbours are no modules of an engine's.
    command = [sys.executable, "-P", str(_ENGINE), engine, "build", "--strict", "--config-file", str(config)]
    theirs, ours = os.pipe()
    try:
        return subprocess.run(command, cwd=project.root, env=environment, stdin=theirs, capture_output=True, text=True,
                              check=False)
    finally:
        os.close(theirs)
        os.close(ours)


def _stopped(engine: Engine, result: subprocess.CompletedProcess[str], site: Path) -> Exception:
    """What an engine that did not finish is to be told of."""
    fault = named_fault(result.stdout + result.stderr)
    if fault is not None:
        return CannotWrite(site, fault, os.strerror(fault))
    return SiteFailed(f"{engine} build: {_reason(result)}")


def _reason(result: subprocess.CompletedProcess[str]) -> str:
    """What stopped the engine, on one line: the first warning or error that it gave, else the last thing it said."""
    lines = [line.strip() for line in (result.stdout + result.stderr).splitlines() if line.strip()]
    told = next((line for line in lines if line.startswith(("WARNING", "ERROR", "Warning:", "Error:"))), None)
    return told or (lines[-1] if lines else f"exit code {result.returncode}")


def _build_time(project: Project) -> dict[str, str]:
    """The time that the site carries, as the variable that says it: the commit's, so that a commit has one site."""
    if "SOURCE_DATE_EPOCH" in os.environ or shutil.which("git") is None:
        return {}
    shown = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=project.root, capture_output=True, text=True,
                           check=False)
    return {"SOURCE_DATE_EPOCH": shown.stdout.strip()} if shown.returncode == 0 and shown.stdout.strip() else {}
