"""Writing files whole or not at all."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
import tempfile
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def write_text(path: Path, text: str) -> bool:
    """Write ``text`` to ``path`` in one step; a file that holds it already is left untouched.

    Returns:
        Whether the file changed.
    """
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return True


def swap_folder(new: Path, current: Path) -> None:
    """Put the folder ``new`` in the place of ``current``, so that ``current`` is whole at every moment.

    Where the system can exchange two names in one step it does; elsewhere the old folder is moved aside first, and
    :func:`restore_folder` brings it back after an interruption between the two moves.
    """
    if not current.exists():
        os.rename(new, current)
        return
    if _exchange(new, current):
        shutil.rmtree(new)
        return
    aside = _aside(current)
    os.rename(current, aside)
    os.rename(new, current)
    shutil.rmtree(aside)


def restore_folder(current: Path) -> None:
    """Bring ``current`` back where an interrupted :func:`swap_folder` had moved it aside."""
    aside = _aside(current)
    if not aside.exists():
        return
    if current.exists():
        shutil.rmtree(aside)
    else:
        os.rename(aside, current)


def _aside(current: Path) -> Path:
    return current.with_name(f"{current.name}.previous")


def _exchange(one: Path, other: Path) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    return rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0
