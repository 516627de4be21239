"""Telling how far a build is: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class Report(Protocol):
    """Called once for each finished piece of work."""

    def __call__(self, what: str) -> None: ...


@contextmanager
def progress(title: str, total: int, console: Console) -> Iterator[Report]:
    """A report for ``total`` pieces of work under ``title``."""
    if total == 0:
        yield lambda what: None
        return
    if not console.is_terminal:
        done = 0

        def line(what: str) -> None:
            nonlocal done
            done += 1
            console.print(f"{title} {done}/{total}: {what}", highlight=False, markup=False, soft_wrap=True)

        yield line
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
               TextColumn("{task.fields[what]}", style="dim"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=total, what="")

        def advance(what: str) -> None:
            bar.update(task, advance=1, what=what)

        yield advance
