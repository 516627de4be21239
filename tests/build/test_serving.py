"""Serving: a plain ``mkdocs serve`` and the command, both following what pages are made from."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.build.commands import command, environment

PATIENCE = 300


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def running(arguments: list[str], project: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(arguments, cwd=project, env=environment(project), text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=30)


def wait_for(address: str, text: str) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                if text in answer.read().decode():
                    return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            pass
        time.sleep(0.5)
    pytest.fail(f"{address} never had {text!r}")


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_plain_mkdocs_serve_follows_every_sort_of_source(project: Path) -> None:
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    serve = [sys.executable, "-m", "mkdocs", "serve", "--dev-addr", f"127.0.0.1:{port}"]
    with running(serve, project):
        wait_for(f"{base}/families/doge/", "SmallDoge/Doge-260M")
        with (project / "site_src" / "notes" / "doge.md").open("a") as notes:
            notes.write("\n\nA sentence in the notes.\n")
        wait_for(f"{base}/families/doge/", "A sentence in the notes.")
        change(project / "templates" / "page" / "block.html.jinja", ">The block<", ">The block, seen from here<")
        wait_for(f"{base}/families/doge/", "The block, seen from here")
        with (project / "site_src" / "assets" / "css" / "base.css").open("a") as style:
            style.write("\n.from-the-test { color: red }\n")
        wait_for(f"{base}/sheets/site.css", ".from-the-test")
        change(project / "encyclopedia" / "families" / "doge.py", 'title="Doge"', 'title="Doge and friends"')
        wait_for(f"{base}/families/doge/", "Doge and friends")


def test_a_port_that_is_taken_is_one_line_before_anything_is_built(project: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = subprocess.run(command("serve", "doge", "--port", str(port)), cwd=project, env=environment(project),
                                capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 1
    assert result.stdout == ""
    assert len(result.stderr.strip().splitlines()) == 1
    assert f"127.0.0.1:{port}: nothing can listen there" in result.stderr
    assert "--port" in result.stderr


def test_the_command_builds_and_says_where_it_serves(project: Path) -> None:
    port = free_port()
    with running(command("serve", "doge", "--port", str(port)), project) as process:
        wait_for(f"http://127.0.0.1:{port}/families/doge/", "SmallDoge/Doge-260M")
        process.terminate()
        printed, _ = process.communicate(timeout=30)
    assert f"http://127.0.0.1:{port}/" in printed
