"""Data flows one way: no stage knows one that comes after it, and what comes after the facts needs no model."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import encyclopedia

PACKAGE = Path(encyclopedia.__file__).parent

EARLY = ("checkpoints", "families", "twin", "structure", "model", "checks", "capture", "measure", "lens")
LATE = {"page", "across", "diff", "standalone", "build", "cli"}

#: By folder, the stages that it must not know.
AFTER = {
    **dict.fromkeys(EARLY, LATE),
    "page": LATE - {"page"},
    "diff": LATE - {"diff"},
    "across": {"standalone", "build", "cli"},
    "build": {"standalone", "cli"},
}

#: Modules that several stages share.
SHARED = ("coverage", "facts", "files", "hooks", "instantiate", "location", "native", "notes", "quirks", "vocabulary",
          "weights")


def known(path: Path) -> set[str]:
    """The folders and modules of the package that a file imports from."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    names += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    return {name.split(".")[1] for name in names if name.startswith("encyclopedia.")}


@pytest.mark.parametrize("folder", AFTER)
def test_no_stage_knows_a_later_one(folder: str) -> None:
    files = sorted((PACKAGE / folder).rglob("*.py"))
    assert files
    assert {str(file.relative_to(PACKAGE)): late for file in files if (late := known(file) & AFTER[folder])} == {}


@pytest.mark.parametrize("module", SHARED)
def test_what_stages_share_knows_no_late_one(module: str) -> None:
    assert known(PACKAGE / f"{module}.py") & LATE == set()


def test_facts_know_nothing() -> None:
    assert known(PACKAGE / "facts.py") == set()


def test_pages_are_written_without_a_model() -> None:
    code = ("import sys, encyclopedia.build.pages, encyclopedia.build.facts, encyclopedia.diff;"
            "sys.exit(sorted({'torch', 'transformers', 'nnsight'} & set(sys.modules)) or 0)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
