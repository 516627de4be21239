"""Writing files whole or not at all, and saying in one line why one could not be written."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2

#: A file that is being written: the target's name and the writer's process.
_SCRAP = re.compile(r"\..+\.(?P<process>\d+)\.part")

#: What a system says of a disk, whatever is being written.
DISK_FAULTS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)

#: What to do about what a system says of a file that it does not write.
_NEXT_STEPS = {
    errno.ENOSPC: "free some space and run again",
    errno.EDQUOT: "free some of the quota and run again",
    errno.EFBIG: "raise the limit of a file's size (ulimit -f) and run again",
    errno.EROFS: "make the file system writable, or work on a copy of the project",
    errno.EACCES: "make it writable and run again",
    errno.EPERM: "make it writable and run again",
    errno.EISDIR: "remove the folder that is in its place and run again",
    errno.ENOTDIR: "remove the file that is in a folder's place and run again",
    errno.EEXIST: "remove the file that is in a folder's place and run again",
    errno.EIO: "look after the disk and run again",
}


class CannotWrite(Exception):
    """A file or folder that could not be written: which, why, and what to do, on one line.

    Attributes:
        reason: what the system said.
    """

    def __init__(self, path: Path | str, code: int | None, reason: str) -> None:
        self.reason = reason
        step = _NEXT_STEPS.get(code or 0, "mend that and run again")
        super().__init__(f"cannot write {path}: {reason[:1].lower()}{reason[1:]}; {step}")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Have what the system says about writing ``path`` end in a :class:`CannotWrite`."""
    try:
        yield
    except OSError as error:
        raise CannotWrite(path, error.errno, error.strerror or str(error)) from error


def named_fault(text: str) -> int | None:
    """The error number of the fault of a disk that another program's words name, or ``None`` where they name none."""
    return next((code for code in DISK_FAULTS if os.strerror(code) in text), None)


def write_text(path: Path, text: str) -> bool:
    """Write ``text`` to ``path`` in one step; a file that holds it already is left untouched.

    Returns:
        Whether the file changed.

    Raises:
        CannotWrite: the file is then as it was.
    """
    content = text.encode()
    with writing(path):
        if path.is_file() and path.read_bytes() == content:
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        with _in_one_step(path) as part:
            part.write_bytes(content)
    return True


def copy_file(source: Path, path: Path) -> None:
    """Copy ``source`` to ``path`` in one step.

    Raises:
        CannotWrite: the file is then as it was.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with _in_one_step(path) as part:
            shutil.copyfile(source, part)


@contextmanager
def _in_one_step(path: Path) -> Iterator[Path]:
    """A file beside ``path`` that takes its place when it is written."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        os.replace(part, path)
    except BaseException:
        # What stopped the writing is the error to tell, not that its scrap cannot be removed either.
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def clear_scraps(folder: Path) -> None:
    """Remove what processes that were killed left half written in ``folder``; that of running ones stays.

    What cannot be removed is left: it is in nobody's way.
    """
    with suppress(OSError):
        for path in folder.rglob(".*.part"):
            found = _SCRAP.fullmatch(path.name)
            if found is not None and not _runs(int(found["process"])):
                path.unlink(missing_ok=True)


def _runs(process: int) -> bool:
    # A number that came round again: nothing is being written yet.
    if process == os.getpid():
        return False
    if sys.platform == "win32":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
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
