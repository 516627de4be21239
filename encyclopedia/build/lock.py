"""One build of a project at a time: its pages and its site have one writer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from filelock import FileLock, Timeout
from rich.console import Console

from encyclopedia.build.project import Project
from encyclopedia.files import clear_scraps, writing


@contextmanager
def only_build(project: Project, console: Console) -> Iterator[None]:
    """Be the only one that writes the project's pages and site; where another process is, say so and wait for it.

    The lock is the system's, so it ends with its process, however that ends. What killed builds left half written is
    cleared away first.

    Raises:
        CannotWrite: where the project's folder cannot be written.
    """
    lock = FileLock(project.lock)
    with writing(project.lock):
        try:
            # Long enough for the other to have said which process it is.
            lock.acquire(timeout=0.5)
        except Timeout:
            console.print(f"{project.root}: {_holder(project)} builds here; waiting until it has finished, or stop it",
                          highlight=False, markup=False, soft_wrap=True)
            lock.acquire()
    try:
        # Only the line above needs it, so a full disk does not end the build here.
        with suppress(OSError):
            project.builder.write_text(f"{os.getpid()}\n", encoding="ascii")
        for folder in (project.source, project.cache):
            clear_scraps(folder)
        yield
    finally:
        lock.release()


def _holder(project: Project) -> str:
    try:
        return f"process {int(project.builder.read_text(encoding='ascii'))}"
    except (OSError, ValueError):
        return "another process"
