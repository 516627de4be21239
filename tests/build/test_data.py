"""The published data keeps its contract and its own schema."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

CHECKPOINT = {"id", "available", "reason", "architecture", "config_source", "sizes", "config", "parameters", "kinds",
              "hosts", "printout", "checks"}
SIZES = {"num_layers", "hidden_size", "num_heads", "num_kv_heads", "head_dim", "qk_head_dim", "vocab_size",
         "intermediate_size"}
KIND = {"blocks", "label", "attention_type", "modules", "sizes", "identity", "identity_error"}
VALUE = {"name", "layout", "dims", "location", "where", "condition", "description", "shapes", "checked"}


@pytest.fixture
def data(run: Callable[..., Any], project: Path) -> dict[str, Any]:
    """The data files of a build, by name without ``.json``."""
    result = run("pages")
    assert result.returncode == 0, result.stderr
    folder = project / "site_src" / "data"
    return {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}


def test_the_data_follows_the_contract_and_its_schema(data: dict[str, Any]) -> None:
    index, schema = data.pop("index"), data.pop("schema")
    assert [entry["model_type"] for entry in index["families"]] == sorted(data)
    for entry in index["families"]:
        assert {"title", "subtitle", "quirks", "checkpoints", "versions"} <= set(entry)
    for name, family in data.items():
        jsonschema.validate(family, schema)
        assert family["schema"] == 1
        assert family["model_type"] == name
        assert {"transformers", "torch", "nnsight", "encyclopedia"} == set(family["versions"])
        assert family["reference"] in [checkpoint["id"] for checkpoint in family["checkpoints"]]
        for checkpoint in family["checkpoints"]:
            check_checkpoint(checkpoint)


def check_checkpoint(checkpoint: dict[str, Any]) -> None:
    assert set(checkpoint) >= CHECKPOINT
    if not checkpoint["available"]:
        assert checkpoint["reason"]
        return
    assert set(checkpoint["sizes"]) == SIZES
    assert set(checkpoint["parameters"]) == {"total", "active"}
    blocks = [block for kind in checkpoint["kinds"] for block in kind["blocks"]]
    assert sorted(blocks) == list(range(checkpoint["sizes"]["num_layers"]))
    for kind in checkpoint["kinds"]:
        assert set(kind) >= KIND
        assert kind["identity_error"] <= 2e-6
    for host in checkpoint["hosts"]:
        for value in host["values"]:
            assert set(value) >= VALUE
            assert value["checked"] is True
            assert len(value["shapes"]) == len(checkpoint["kinds"])
            for shape in value["shapes"]:
                assert shape is None or not value["dims"] or len(shape) == len(value["dims"])
    checks = checkpoint["checks"]
    assert checks["values"]["checked"] == checks["values"]["total"] == sum(
        len(host["values"]) for host in checkpoint["hosts"])
    assert checks["snippets"]["run"] > 0


def test_a_page_of_data_that_is_not_the_schemas_is_refused(data: dict[str, Any]) -> None:
    broken = data["doge"] | {"title": 3}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, data["schema"])
