"""Recorded configs beside the hub's, with a small server in the hub's place."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from encyclopedia.checkpoints import FOLDER, families_recorded, read_family, recorded
from encyclopedia.checkpoints.hub import KeyDifference, take_over
from encyclopedia.checkpoints.writing import text_of
from tests.fuzz.tiny import TINY

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


def run(hub: dict[str, Any], home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HF_ENDPOINT": hub["address"], "HF_HOME": str(home), "NO_COLOR": "1",
                   "HF_HUB_DISABLE_XET": "1"}
    environment.pop("HF_HUB_OFFLINE", None)
    return subprocess.run([sys.executable, "-m", "encyclopedia", *arguments], env=environment,
                          capture_output=True, text=True, timeout=300, check=False)


def test_equal_different_and_missing_configs(hub: dict[str, Any], tmp_path: Path) -> None:
    config = dict(recorded(RECORDED).config)
    hub[RECORDED] = config
    hub["SmallDoge/Doge-40M"] = {**recorded("SmallDoge/Doge-40M").config, "num_hidden_layers": 9}
    result = run(hub, tmp_path, "sync", "doge")
    assert result.returncode == 1
    assert f"{RECORDED}: as on the hub" in result.stdout
    assert "SmallDoge/Doge-40M: num_hidden_layers: recorded 8, the hub says 9" in result.stderr
    missing = [line for line in result.stderr.splitlines() if line.startswith("SmallDoge/Doge-260M: the hub did not")]
    assert len(missing) == 1
    assert "Traceback" not in result.stderr


def test_another_familys_config_and_one_that_is_no_json_are_said(hub: dict[str, Any], tmp_path: Path) -> None:
    hub[RECORDED] = {**recorded(RECORDED).config, "model_type": "llama"}
    hub["SmallDoge/Doge-40M"] = ["no", "object"]
    said = run(hub, tmp_path, "sync", "doge").stderr
    assert f"{RECORDED}: the hub's config has the model_type 'llama', the record 'doge': record it" in said
    assert "SmallDoge/Doge-40M: the hub's config.json is not an object" in said
    assert "Traceback" not in said


def test_a_page_is_made_of_a_config_on_the_hub(hub: dict[str, Any], tmp_path: Path) -> None:
    hub["maker/Tiny-Llama"] = TINY["llama"]
    file = tmp_path / "page.html"
    made = run(hub, tmp_path, "page", "maker/Tiny-Llama", "--output", str(file))
    assert made.returncode == 0, made.stderr
    text = file.read_text(encoding="utf-8")
    assert 'data-reference="maker/Tiny-Llama"' in text
    assert "model.layers[0].self_attn" in text
    missing = run(hub, tmp_path, "page", "maker/Nothing")
    assert missing.returncode == 1
    [line] = missing.stderr.strip().splitlines()
    assert line.startswith("maker/Nothing: no such file or folder here, and the hub did not give its config.json")


@pytest.mark.parametrize("model_type", families_recorded())
def test_records_are_written_as_they_stand(model_type: str) -> None:
    text = (FOLDER / f"{model_type}.json").read_text(encoding="utf-8")
    assert text_of(json.loads(text)) == text


def test_what_the_hub_says_is_taken_over_with_its_source(tmp_path: Path) -> None:
    shutil.copy(FOLDER / "doge.json", tmp_path)
    before, _ = read_family("doge", tmp_path)
    changes = [KeyDifference(RECORDED, "num_hidden_layers", 8, 9),
               KeyDifference(RECORDED, "hidden_act", "silu", "gelu")]
    take_over("doge", changes, source="the hub", folder=tmp_path)
    after, broken = read_family("doge", tmp_path)
    assert broken == []
    changed = [record for record in after if record not in before]
    assert [record.id for record in changed] == [RECORDED]
    assert (changed[0].config["num_hidden_layers"], changed[0].config["hidden_act"]) == (9, "gelu")
    assert changed[0].source_of("num_hidden_layers") == changed[0].source_of("hidden_act") == "the hub"
    old = next(record for record in before if record.id == RECORDED)
    kept = set(old.config) - {"num_hidden_layers", "hidden_act"}
    assert all(changed[0].source_of(key) == old.source_of(key) for key in kept)
