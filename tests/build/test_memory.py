"""Workers that the system ends, as where memory runs out: once, it is made up for; always, it is said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from encyclopedia.build.worker import _of_the_machine
from tests.build.commands import command, environment, run_in
from tests.build.conftest import DERIVED
from tests.build.killing import digest
from tests.build.turning import Turning

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")


def workers_of(process: int) -> list[int]:
    """The worker processes of a build."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if (entry.name.isdigit() and f"\nPPid:\t{process}\n" in (entry / "status").read_text()
                    and b"multiprocessing.spawn" in (entry / "cmdline").read_bytes()):
                found.append(int(entry.name))
    return found


def build_with_kills(project: Path, kills: int) -> tuple[int, str, int]:
    """Build, while the first ``kills`` workers are killed as they appear.

    Returns:
        The exit code, what it said, and how many were killed.
    """
    process = subprocess.Popen(command("build", DERIVED, "--jobs", "1"), cwd=project, env=environment(project),
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    killed: set[int] = set()

    def kill() -> None:
        while process.poll() is None and len(killed) < kills:
            for worker in set(workers_of(process.pid)) - killed:
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
                    killed.add(worker)
            time.sleep(0.02)

    killer = threading.Thread(target=kill)
    killer.start()
    said = process.communicate(timeout=300)[0]
    killer.join()
    return process.returncode, said, len(killed)


def test_a_worker_that_is_killed_is_made_up_for(turning: Turning) -> None:
    turning.turn(turning.other)
    turning.forget()
    code, said, killed = build_with_kills(turning.root, 1)
    assert (code, killed) == (0, 1), said
    assert "1 checkpoint captured" in said
    assert digest(turning.site) == turning.sites[turning.heading]


def test_workers_that_are_always_killed_are_said_and_leave_the_old_page(turning: Turning) -> None:
    old = (turning.site / "families" / DERIVED / "index.html").read_bytes()
    turning.forget()
    entries = set(turning.cache.iterdir())
    code, said, killed = build_with_kills(turning.root, 1000)
    assert code == 1
    assert killed >= 2
    assert "Traceback" not in said
    [line] = [line for line in said.splitlines() if "was ended" in line]
    assert line == (f"{DERIVED}: its process was ended, as it is where memory runs out; free some memory, "
                    "or give --jobs a smaller number, and run again")
    assert set(turning.cache.iterdir()) == entries
    assert (turning.site / "families" / DERIVED / "index.html").read_bytes() == old
    recovered = run_in(turning.root, "build", DERIVED)
    assert recovered.returncode == 0
    assert "1 checkpoint captured" in recovered.stderr
    assert digest(turning.site) == turning.sites[turning.heading]


def _full_disk() -> None:
    with open("/dev/full", "wb", buffering=0) as stream:
        stream.write(b"a")


@pytest.mark.parametrize("asked", [
    lambda: bytearray(2**62), lambda: torch.empty(2**50), lambda: numpy.empty(2**50), _full_disk,
], ids=["Python", "PyTorch", "NumPy", "disk"])
def test_what_the_machine_has_not_got_is_no_fact_about_a_family(asked: Callable[[], Any]) -> None:
    with pytest.raises((MemoryError, RuntimeError, OSError)) as raised:
        asked()
    assert _of_the_machine(str(raised.value) or type(raised.value).__name__)


def test_what_is_wrong_with_a_model_is_one() -> None:
    assert not _of_the_machine("checkpoint 'a/b': config key 'hidden_size': 7 does not split into 2 heads")
