"""Without any network a build is as it always is, and what needs a hub ends with one line."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.build.commands import environment, run_in
from tests.build.conftest import DERIVED
from tests.build.killing import digest
from tests.build.turning import Turning

HUB_ID = "nobody/such-a-model"

#: A port of this machine where nothing listens.
CLOSED = "http://127.0.0.1:9"


@cache
def cut_off() -> tuple[str, ...]:
    """The command that runs another without a network; none where this user may not have that."""
    alone = ("unshare", "--net") if os.geteuid() == 0 else ("unshare", "--user", "--map-root-user", "--net")
    try:
        return alone if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode == 0 else ()
    except OSError:
        return ()


def without_hub(project: Path, home: Path) -> dict[str, str]:
    """An environment whose hub and proxies do not answer, and which has nothing of a hub's from before."""
    proxies = [f"{scheme}_proxy" for scheme in ("http", "https", "all")]
    return {**environment(project), "HF_HOME": str(home), "HF_ENDPOINT": CLOSED,
            **{name: CLOSED for proxy in proxies for name in (proxy, proxy.upper())}}


def test_a_build(turning: Turning, tmp_path: Path) -> None:
    turning.turn(turning.other)
    turning.forget()
    result = run_in(turning.root, "build", DERIVED, inside=cut_off(), env=without_hub(turning.root, tmp_path / "home"))
    assert result.returncode == 0, result.stderr
    assert digest(turning.site) == turning.sites[turning.heading]


@pytest.mark.parametrize(("way", "arguments"), [
    ("cut off", ("sync", "doge")),
    ("closed", ("sync", "doge")),
    ("cut off", ("check", "doge", "--weights", HUB_ID)),
    ("closed", ("measure", "doge", "--weights", HUB_ID)),
    ("cut off", ("page", HUB_ID)),
], ids=lambda part: part if isinstance(part, str) else part[0])
def test_what_needs_a_hub_ends_with_one_line(
    turning: Turning, tmp_path: Path, way: str, arguments: tuple[str, ...]
) -> None:
    if way == "cut off" and not cut_off():
        pytest.skip("this user may not leave the network")
    surroundings = without_hub(turning.root, tmp_path / "home")
    if way == "cut off":
        for name in list(surroundings):
            if name == "HF_ENDPOINT" or name.lower().endswith("_proxy"):
                del surroundings[name]
    result = run_in(turning.root, *arguments, inside=cut_off() if way == "cut off" else (), env=surroundings)
    assert result.returncode == 1
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    assert ("no answer" in line) or ("a hub or its cache could give: download it first" in line)
