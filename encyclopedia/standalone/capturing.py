"""Capturing somebody's config in a process of its own, within limits of time and memory."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from multiprocessing import connection
from multiprocessing.connection import Connection
from pathlib import Path

from encyclopedia.build.worker import prepare
from encyclopedia.checkpoints import RecordedCheckpoint
from encyclopedia.facts import CheckpointFacts
from encyclopedia.standalone.reading import UnreadableConfig, one_line

#: Address space beyond what the loaded libraries have. The largest recorded checkpoint takes a tenth of a GiB of it.
MEMORY = 4 * 2**30


def capture_within(record: RecordedCheckpoint, seconds: float) -> CheckpointFacts:
    """The facts of a checkpoint that nobody has looked at.

    Args:
        record: as :func:`encyclopedia.standalone.reading.read_config` gives it.
        seconds: how long it may take.

    Raises:
        UnreadableConfig: in one line, where there are none, or not within the limits.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(theirs, record), daemon=True)
    process.start()
    theirs.close()
    try:
        if not connection.wait([ours], seconds):
            raise UnreadableConfig(f"{record.id}: no facts within {seconds:g} seconds; give it longer by --timeout, or "
                                   "look for a number in the config that is too large")
        facts, failure = ours.recv()
    except EOFError as error:
        raise UnreadableConfig(f"{record.id}: the capture ended without facts, as it does where memory runs out; "
                               "look for a number in the config that is too large") from error
    finally:
        process.kill()
        process.join()
        ours.close()
    if facts is None:
        raise UnreadableConfig(failure)
    return CheckpointFacts.model_validate_json(facts)


def captured(record: RecordedCheckpoint) -> tuple[CheckpointFacts | None, str]:
    """The facts of a checkpoint, or none and one line that says why."""
    from encyclopedia.capture.checkpoint import capture_checkpoint

    try:
        return capture_checkpoint(record, lenient=True), ""
    except MemoryError:
        why = "memory ran out"
    # What fails on a config that nobody wrote a family for is as often transformers as this project.
    except Exception as error:
        why = str(error) or "no message"
        if record.id not in why:
            why = f"{type(error).__name__}: {why}"
    said = one_line(why)[:400]
    name = "" if record.id in said else f"{record.id}: "
    return None, one_line(f"{name}{said}; compare the config with a known one of its family")


def _work(pipe: Connection, record: RecordedCheckpoint) -> None:
    # What libraries print about a config that they refuse is no message of this command.
    silence = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(silence, stream)
    prepare()
    _limit_memory()
    facts, failure = captured(record)
    pipe.send((None if facts is None else facts.model_dump_json(by_alias=True), failure))
    pipe.close()


def _limit_memory() -> None:
    """Bound the address space where the system can tell what the libraries take of it, and can bound it."""
    # Loaded first, so that the bound is about what a config makes.
    import encyclopedia.capture.checkpoint  # noqa: F401

    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        wanted = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (wanted if hard < 0 else min(wanted, hard), hard))
