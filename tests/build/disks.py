"""A real file system of a few megabytes, in a mount namespace of its own: to be filled, or made read-only."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

#: Only root may mount, and anybody is root in a namespace of users of their own.
_AS_ROOT = () if os.geteuid() == 0 else ("--user", "--map-root-user")
_KEPT = () if os.geteuid() == 0 else ("--user", "--preserve-credentials")

_BLOCK = 4096


@cache
def mounts() -> bool:
    """Whether this machine lets the tests mount."""
    tried = ["unshare", "--mount", *_AS_ROOT, "mount", "-t", "tmpfs", "tmpfs", "/tmp"]
    try:
        return subprocess.run(tried, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


needs_mounts = pytest.mark.skipif(not mounts(), reason="this user may not mount here, even in a namespace of its own")


@dataclass(frozen=True)
class Disk:
    """A file system that the commands in its namespace see.

    Attributes:
        place: where it is mounted, to them.
        inside: the command that runs another in the namespace, in that folder or one below it.
        path: the same folder as the tests see it.
    """

    place: Path
    inside: list[str]
    path: Path

    def within(self, folder: Path) -> list[str]:
        """The command that runs another in ``folder``, as commands in the namespace see it."""
        return [*self.inside, "env", f"--chdir={folder}"]

    def fill(self, left: int) -> Path:
        """Fill it up to ``left`` bytes; what fills it is the file to remove."""
        filling = self.path / "filling"
        with filling.open("wb", buffering=0) as stream:
            try:
                while True:
                    stream.write(bytes(256 * _BLOCK))
            except OSError:
                pass
            stream.truncate(max(0, stream.tell() - left))
        return filling

    def freeze(self) -> None:
        """Make it read-only."""
        subprocess.run([*self.inside, "mount", "-o", "remount,ro", str(self.place)], check=True)


@contextmanager
def disk(place: Path, size: int) -> Iterator[Disk]:
    """A disk of ``size`` bytes at ``place``, an empty folder."""
    held = 'mount -t tmpfs -o size="$2" tmpfs "$1" && echo mounted && exec cat'
    with subprocess.Popen(["unshare", "--mount", *_AS_ROOT, "sh", "-c", held, "sh", str(place), str(size)],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "mounted\n"
        yield Disk(place, ["nsenter", f"--target={holder.pid}", "--mount", *_KEPT],
                   Path(f"/proc/{holder.pid}/root{place}"))
        assert holder.stdin is not None
        holder.stdin.close()
