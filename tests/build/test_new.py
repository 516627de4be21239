"""``encyclopedia new``: a family's module and notes, filled with what was derived."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from encyclopedia import scaffold
from encyclopedia.build.project import Project
from encyclopedia.scaffold import CannotStart, start_family

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A folder to write into, with the project's own templates."""
    (tmp_path / "templates").symlink_to(ROOT / "templates")
    return Project(tmp_path)


@pytest.fixture(scope="module")
def facts() -> object:
    """What capturing the family gives, once for all tests."""
    from encyclopedia.capture.checkpoint import capture_checkpoint
    from encyclopedia.coverage import default_record

    return capture_checkpoint(default_record("minimax"))


@pytest.fixture(autouse=True)
def captured(monkeypatch: pytest.MonkeyPatch, facts: object) -> None:
    monkeypatch.setattr(scaffold, "capture_checkpoint", lambda record: facts)


def test_the_module_declares_what_no_run_confirmed(project: Project) -> None:
    started = start_family(project, "minimax")
    module, notes = started.files
    tree = ast.parse(module.read_text(encoding="utf-8"))
    names: dict[str, object] = {}
    exec(compile(tree, str(module), "exec"), names)
    family = names["FAMILY"]
    assert family.model_type == "minimax"
    assert family.title == "MiniMax"
    assert set(family.classes["MiniMaxDecoderLayer"].withdrawn) == {"layer_mid"}
    assert "input_layernorm" in (ast.get_docstring(tree) or "")
    assert "No sum of modules' outputs" in notes.read_text(encoding="utf-8")


def test_what_is_left_to_do_is_said(project: Project) -> None:
    left = " ".join(start_family(project, "minimax").left)
    for words in ("subtitle", "1 values", "identity=", "checkpoints/minimax.json", "notes/minimax.md"):
        assert words in left


def test_what_is_written_is_not_too_wide(project: Project) -> None:
    module, notes = start_family(project, "minimax").files
    assert max(map(len, module.read_text(encoding="utf-8").splitlines())) <= 120
    assert "{{ ref.id }}" in notes.read_text(encoding="utf-8")


def test_files_that_are_there_are_left_alone(project: Project) -> None:
    start_family(project, "minimax")
    with pytest.raises(CannotStart, match="exists already"):
        start_family(project, "minimax")


def test_a_family_that_cannot_be_derived_says_why(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(record: object) -> object:
        raise RuntimeError("no blocks")

    monkeypatch.setattr(scaffold, "capture_checkpoint", failing)
    with pytest.raises(CannotStart, match="nothing to start from: no blocks"):
        start_family(project, "minimax")
    assert not (project.notes / "minimax.md").exists()
