"""What runs in a worker process: capturing one checkpoint, or running one family's snippets."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import warnings
from dataclasses import dataclass
from multiprocessing import connection

from encyclopedia.checkpoints import RecordedCheckpoint
from encyclopedia.facts import CheckpointFacts, FamilyFacts, NotesFacts


@dataclass(frozen=True)
class Task:
    """One piece of work.

    Attributes:
        sort: ``facts`` to capture a checkpoint, ``notes`` to run a family's snippets.
        name: the checkpoint's id or the family's ``model_type``.
        records: the checkpoint's record, or all of the family's.
        notes: the notes' text, for ``notes``.
        family: the family's facts so far, for ``notes``.
    """

    sort: str
    name: str
    records: RecordedCheckpoint | list[RecordedCheckpoint]
    notes: str = ""
    family: FamilyFacts | None = None


    @property
    def record(self) -> RecordedCheckpoint:
        """The checkpoint to capture."""
        assert isinstance(self.records, RecordedCheckpoint)
        return self.records


@dataclass(frozen=True)
class Result:
    """What came of a task: its facts, or one line that says why there are none."""

    name: str
    facts: CheckpointFacts | NotesFacts | None
    failure: str | None = None


def prepare(*, worker: bool = True) -> None:
    """Set a process up for capturing: one thread, no hub, no chatter; a worker leaves interrupts to its parent."""
    if worker:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        threading.Thread(target=_leave_with_parent, daemon=True).start()
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    import torch

    torch.set_num_threads(1)


def _leave_with_parent() -> None:
    # A pool's worker waits for ever for a parent that was killed.
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def run(task: Task) -> Result:
    """Do one piece of work; anything that goes wrong becomes the result's failure."""
    try:
        if isinstance(task.records, RecordedCheckpoint):
            from encyclopedia.capture.checkpoint import capture_or_fail

            return Result(task.name, capture_or_fail(task.records))
        from encyclopedia.capture.snippets import check_notes

        assert task.family is not None
        return Result(task.name, check_notes(task.notes, task.family, task.records))
    except Exception as error:
        return Result(task.name, None, failure_line(task.name, error))


def failure_line(name: str, error: Exception) -> str:
    """``error`` on one line that names what failed."""
    message = " ".join(str(error).split()) or "no message"
    return message if name in message else f"checkpoint {name!r}: {type(error).__name__}: {message}"
