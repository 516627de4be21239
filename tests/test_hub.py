"""Recorded configs beside the hub's, with a small server in the hub's place."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from encyclopedia.checkpoints import recorded

RECORDED = "SmallDoge/Doge-20M"


@pytest.fixture
def hub() -> Iterator[dict[str, Any]]:
    """What the server answers by repository id; ``hub["address"]`` is where it is."""
    configs: dict[str, Any] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self, with_body: bool) -> None:
            repository = self.path.strip("/").split("/resolve/")[0]
            body = json.dumps(configs[repository]).encode() if repository in configs else b"no such repository"
            self.send_response(200 if repository in configs else 404)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", f'"{hash(body)}"')
            self.send_header("X-Repo-Commit", "0" * 40)
            self.end_headers()
            if with_body:
                self.wfile.write(body)

        def do_HEAD(self) -> None:
            self.answer(with_body=False)

        def do_GET(self) -> None:
            self.answer(with_body=True)

        def log_message(self, *arguments: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        configs["address"] = f"http://127.0.0.1:{server.server_port}"
        yield configs
        server.shutdown()


def check(hub: dict[str, Any], home: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HF_ENDPOINT": hub["address"], "HF_HOME": str(home), "NO_COLOR": "1",
                   "HF_HUB_DISABLE_XET": "1"}
    environment.pop("HF_HUB_OFFLINE", None)
    return subprocess.run([sys.executable, "-m", "encyclopedia", "check", "doge", "--hub"], env=environment,
                          capture_output=True, text=True, timeout=300, check=False)


def test_equal_different_and_missing_configs(hub: dict[str, Any], tmp_path: Path) -> None:
    config = dict(recorded(RECORDED).config)
    hub[RECORDED] = config
    hub["SmallDoge/Doge-40M"] = {**recorded("SmallDoge/Doge-40M").config, "num_hidden_layers": 9}
    result = check(hub, tmp_path)
    assert result.returncode == 1
    assert f"{RECORDED}: as on the hub" in result.stdout
    assert "SmallDoge/Doge-40M: num_hidden_layers: recorded 8, the hub says 9" in result.stderr
    missing = [line for line in result.stderr.splitlines() if line.startswith("SmallDoge/Doge-260M: the hub did not")]
    assert len(missing) == 1
    assert "Traceback" not in result.stderr
