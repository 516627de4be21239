"""A build stopped at any moment leaves the old site whole and the cache readable."""

from __future__ import annotations

import hashlib
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from encyclopedia.facts import CheckpointFacts, NotesFacts
from tests.build.commands import command, environment


def digest(folder: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        found.update(path.relative_to(folder).as_posix().encode())
        found.update(path.read_bytes() if path.is_file() else b"")
    return found.hexdigest()


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_build_leaves_everything_whole(
    project: Path, run: Callable[..., Any], sent: signal.Signals
) -> None:
    first = run("build")
    assert first.returncode == 0, first.stderr
    whole = digest(project / "site")
    moments = random.Random(sent)
    for _ in range(3):
        (project / "site_src" / "notes" / "doge.md").open("a").write("\n\nOne more sentence.\n")
        process = subprocess.Popen(command("build", "--force"), cwd=project, env=environment(project),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(moments.uniform(0.5, 9))
        process.send_signal(sent)
        process.wait(timeout=180)
        assert digest(project / "site") == whole
        for entry in (project / ".cache" / "facts").glob("*.json"):
            model = NotesFacts if entry.name.startswith("notes-") else CheckpointFacts
            model.model_validate_json(entry.read_text())
    last = run("build")
    assert last.returncode == 0, last.stderr
    assert "One more sentence." in (project / "site" / "families" / "doge" / "index.html").read_text()
