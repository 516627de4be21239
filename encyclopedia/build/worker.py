"""What runs in a worker process: capturing one checkpoint, or running one family's snippets."""

from __future__ import annotations

import errno
import logging
import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import connection

from encyclopedia.checkpoints import RecordedCheckpoint
from encyclopedia.facts import CheckpointFacts, FamilyFacts, NotesFacts

#: What Python, PyTorch, NumPy and the system say where memory, files or space have run out. Some say it in errors of
#: types of their own, and a family without a module has its error as text.
_MACHINE = ("MemoryError", "not enough memory", "can't allocate memory", "Unable to allocate",
            *(os.strerror(code) for code in (errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE,
                                             errno.EIO, errno.EAGAIN)))


@dataclass(frozen=True)
class CaptureTask:
    """Capture the facts of a checkpoint."""

    record: RecordedCheckpoint

    @property
    def name(self) -> str:
        """The checkpoint's id."""
        return self.record.id


@dataclass(frozen=True)
class NotesTask:
    """Run the snippets of a family's notes.

    Attributes:
        text: the notes.
        family: the family's facts, without those about its notes.
        records: its checkpoints.
    """

    text: str
    family: FamilyFacts
    records: Sequence[RecordedCheckpoint]

    @property
    def name(self) -> str:
        """The family's ``model_type``."""
        return self.family.model_type


Task = CaptureTask | NotesTask


@dataclass(frozen=True)
class Result:
    """What came of a task: its facts, or one line that says why there are none.

    Attributes:
        name: the task's.
        facts: what was found.
        failure: the line.
        passing: whether the machine failed and not the task, so that nothing was learnt about it.
    """

    name: str
    facts: CheckpointFacts | NotesFacts | None
    failure: str | None = None
    passing: bool = False


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
        if isinstance(task, CaptureTask):
            from encyclopedia.capture.checkpoint import capture_or_fail

            facts = capture_or_fail(task.record)
            if facts.failure is not None and _of_the_machine(facts.failure.reason):
                return _passing(task.name, facts.failure.reason)
            return Result(task.name, facts)
        from encyclopedia.capture.snippets import check_notes

        return Result(task.name, check_notes(task.text, task.family, task.records))
    except Exception as error:
        said = " ".join(str(error).split()) or type(error).__name__
        return _passing(task.name, said) if _of_the_machine(said) else Result(
            task.name, None, failure_line(task.name, error))


def died(name: str) -> Result:
    """What came of a task whose process was ended from outside, running alone."""
    return Result(name, None, f"{name}: its process was ended, as it is where memory runs out; free some memory, or "
                              "give --jobs a smaller number, and run again", passing=True)


def _passing(name: str, reason: str) -> Result:
    return Result(name, None, f"{name}: the machine failed and not the model ({reason[:200]}); free some memory or "
                              "space, or give --jobs a smaller number, and run again", passing=True)


def _of_the_machine(reason: str) -> bool:
    """Whether what was said of a failure is about the machine: memory or a disk that was full, not the model."""
    return any(words in reason for words in _MACHINE)


def failure_line(name: str, error: Exception) -> str:
    """``error`` on one line that names what failed."""
    message = " ".join(str(error).split()) or "no message"
    return message if name in message else f"checkpoint {name!r}: {type(error).__name__}: {message}"
