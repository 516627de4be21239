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

from encyclopedia.build.files import restore_folder, swap_folder
from encyclopedia.build.project import Project

#: Tells the MkDocs hook that the pages are up to date.
PAGES_WRITTEN = "ENCYCLOPEDIA_PAGES_WRITTEN"


class Engine(StrEnum):
    """What makes the site from the written pages; both read the same ``mkdocs.yml``."""

    MKDOCS = "mkdocs"
    ZENSICAL = "zensical"


class SiteFailed(Exception):
    """The site engine is not installed or did not finish."""


def build_site(project: Project, engine: Engine = Engine.MKDOCS, place: Path | None = None) -> None:
    """Build the site; until the new one is whole the old one stays.

    Args:
        project: whose written pages it is made from.
        engine: what makes it.
        place: its folder, ``project.site`` by default.

    Raises:
        SiteFailed: with the package to install where the engine is missing, else with what stopped the engine.
    """
    if find_spec(engine) is None:
        raise SiteFailed(f"{engine}: not installed here, so it cannot build the site; pip install {engine}")
    site = place or project.site
    restore_folder(site)
    for left_over in project.root.glob(f"{site.name}.new-*"):
        if left_over.is_dir():
            shutil.rmtree(left_over, ignore_errors=True)
        else:
            left_over.unlink(missing_ok=True)
    new = Path(tempfile.mkdtemp(prefix=f"{site.name}.new-", dir=project.root))
    new.chmod(0o755)
    # Zensical takes the folder of the site from its config alone, and paths in that from the config's own folder.
    config = new.with_suffix(f"{new.suffix}.yml")
    environment = {**os.environ, **_build_time(project), PAGES_WRITTEN: "1", "NO_MKDOCS_2_WARNING": "1"}
    try:
        config.write_text(json.dumps({"INHERIT": "mkdocs.yml", "site_dir": new.name}), encoding="utf-8")
        command = [sys.executable, "-m", engine, "build", "--strict", "--config-file", str(config)]
        result = subprocess.run(command, cwd=project.root, env=environment, capture_output=True, text=True, check=False)
        if result.returncode:
            raise SiteFailed(f"{engine} build: {_reason(result)}")
        swap_folder(new, site)
    finally:
        config.unlink(missing_ok=True)
        shutil.rmtree(new, ignore_errors=True)


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
