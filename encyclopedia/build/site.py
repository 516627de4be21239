"""Making the site from the written pages, beside the old one, and putting it in its place when it is whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from encyclopedia.build.files import restore_folder, swap_folder
from encyclopedia.build.project import Project

#: Tells the MkDocs hook that the pages are up to date.
PAGES_WRITTEN = "ENCYCLOPEDIA_PAGES_WRITTEN"


class SiteFailed(Exception):
    """The site engine did not finish."""


def build_site(project: Project) -> None:
    """Build ``project.site``; until the new one is whole the old one stays.

    Raises:
        SiteFailed: with the engine's last line.
    """
    restore_folder(project.site)
    for left_over in project.root.glob(f"{project.site.name}.new-*"):
        shutil.rmtree(left_over, ignore_errors=True)
    new = Path(tempfile.mkdtemp(prefix=f"{project.site.name}.new-", dir=project.root))
    new.chmod(0o755)
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--config-file", str(project.root / "mkdocs.yml"),
               "--site-dir", str(new)]
    environment = {**os.environ, **_build_time(project), PAGES_WRITTEN: "1", "NO_MKDOCS_2_WARNING": "1"}
    try:
        result = subprocess.run(command, cwd=project.root, env=environment, capture_output=True, text=True, check=False)
        if result.returncode:
            lines = [line for line in (result.stdout + result.stderr).splitlines() if line.strip()]
            raise SiteFailed(f"mkdocs build: {lines[-1].strip() if lines else f'exit code {result.returncode}'}")
        swap_folder(new, project.site)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _build_time(project: Project) -> dict[str, str]:
    """The time that the site carries, as the variable that says it: the commit's, so that a commit has one site."""
    if "SOURCE_DATE_EPOCH" in os.environ or shutil.which("git") is None:
        return {}
    shown = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=project.root, capture_output=True, text=True,
                           check=False)
    return {"SOURCE_DATE_EPOCH": shown.stdout.strip()} if shown.returncode == 0 and shown.stdout.strip() else {}
