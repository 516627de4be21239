"""Two builds of one commit are the same, byte for byte."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.build.commands import command, environment

#: A time that both sites carry, because a copy without a history has no commit to take it from.
TIME = "1790000000"


def built(project: Path, seed: str, jobs: str) -> dict[str, bytes]:
    """Every file of the site after everything was captured anew."""
    result = subprocess.run(
        command("build", "--force", "--jobs", jobs), cwd=project, capture_output=True, text=True, check=False,
        env={**environment(project), "PYTHONHASHSEED": seed, "SOURCE_DATE_EPOCH": TIME})
    assert result.returncode == 0, result.stderr
    site = project / "site"
    return {path.relative_to(site).as_posix(): path.read_bytes() for path in site.rglob("*") if path.is_file()}


def test_a_site_depends_on_neither_hash_seed_nor_workers_nor_place(project: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "somewhere" / "else"
    shutil.copytree(project, elsewhere)
    first, second = built(project, "1", "1"), built(elsewhere, "4321", "3")
    assert {"index.html", "data/doge.json", "families/laguna/index.html", "sitemap.xml.gz"} <= set(first)
    assert sorted(first) == sorted(second)
    assert [name for name in first if first[name] != second[name]] == []
