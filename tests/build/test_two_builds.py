"""Two builds of one project: the second waits for the first, and for no one that was killed."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from pathlib import Path

from tests.build.commands import command, environment, run_in
from tests.build.conftest import DERIVED
from tests.build.killing import digest, scraps
from tests.build.turning import Turning

WAITING = re.compile(r"process (\d+) builds here; waiting until it has finished, or stop it")


def started(project: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(command("build", DERIVED, "--jobs", "1"), cwd=project, env=environment(project), text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_until_it_builds(process: subprocess.Popen[str], project: Path) -> None:
    until = time.monotonic() + 120
    while (project / "site.builder").read_text().strip() != str(process.pid):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)


def test_the_second_waits_for_the_first_and_names_it(turning: Turning) -> None:
    turning.turn(turning.other)
    turning.forget()
    both = [started(turning.root), started(turning.root)]
    said = {process.pid: process.communicate(timeout=300)[1] for process in both}
    assert [process.returncode for process in both] == [0, 0], said
    waited = {pid: found[1] for pid, words in said.items() if (found := WAITING.search(words))}
    [(second, named)] = waited.items()
    assert {second, int(named)} == set(said)
    assert "1 checkpoint captured" in said[int(named)]
    assert "0 checkpoints captured" in said[second]
    assert digest(turning.site) == turning.sites[turning.heading]
    assert scraps(turning.root) == []


def test_a_killed_build_stands_in_nobodys_way(turning: Turning) -> None:
    turning.forget()
    first = started(turning.root)
    wait_until_it_builds(first, turning.root)
    second = started(turning.root)
    assert second.stderr is not None
    # Others' lines come before it, and it is written while the first holds the lock.
    line = second.stderr.readline()
    found = WAITING.search(line)
    assert found is not None, line
    assert int(found[1]) == first.pid
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=60)
    assert second.wait(timeout=300) == 0
    second.communicate()
    third = run_in(turning.root, "build", DERIVED)
    assert third.returncode == 0
    assert not WAITING.search(third.stderr)
    assert digest(turning.site) == turning.sites[turning.heading]
