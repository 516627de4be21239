"""Files and folders appear whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from encyclopedia import files
from encyclopedia.files import CannotWrite, restore_folder, swap_folder, write_text


def test_writing_the_same_text_leaves_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "page.md"
    assert write_text(path, "a\n") is True
    before = path.stat().st_mtime_ns
    assert write_text(path, "a\n") is False
    assert path.stat().st_mtime_ns == before
    assert write_text(path, "b\n") is True
    assert path.read_text() == "b\n"


def test_a_write_that_fails_leaves_the_old_text_and_no_scraps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "page.md"
    write_text(path, "old")

    def broken(*arguments: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(CannotWrite, match=r"cannot write .*page\.md: disk full"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["page.md"]


@pytest.mark.parametrize("exchange", [True, False], ids=["exchanged", "moved aside"])
def test_a_swap_puts_the_new_folder_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool) -> None:
    if not exchange:
        monkeypatch.setattr(files, "_exchange", lambda one, other: False)
    new, current = tmp_path / "site.new", tmp_path / "site"
    for folder, text in ((new, "new"), (current, "old")):
        folder.mkdir()
        (folder / "index.html").write_text(text)
    swap_folder(new, current)
    assert (current / "index.html").read_text() == "new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["site"]


def test_a_swap_interrupted_between_two_moves_is_undone(tmp_path: Path) -> None:
    aside = tmp_path / "site.previous"
    aside.mkdir()
    (aside / "index.html").write_text("old")
    restore_folder(tmp_path / "site")
    assert (tmp_path / "site" / "index.html").read_text() == "old"
    assert not aside.exists()
