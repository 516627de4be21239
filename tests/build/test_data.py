"""The published data keeps its contract and its own schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.build.conftest import DERIVED, FAILING, FAMILIES

CHECKPOINT = {"id", "available", "reason", "architecture", "config_source", "sizes", "config", "parameters", "kinds",
              "hosts", "printout", "checks", "unconfirmed", "is_default", "failure"}
SIZES = {"num_layers", "hidden_size", "num_heads", "num_kv_heads", "head_dim", "qk_head_dim", "vocab_size",
         "intermediate_size"}
KIND = {"blocks", "label", "attention_type", "modules", "sizes", "identity", "identity_error"}
VALUE = {"name", "layout", "dims", "location", "where", "condition", "description", "shapes", "checked"}


@pytest.fixture
def data(template: Path) -> dict[str, Any]:
    """The data files of a build, by name without ``.json``."""
    return {path.stem: json.loads(path.read_text()) for path in (template / "site_src" / "data").glob("*.json")}


def test_the_data_follows_the_contract_and_its_schema(data: dict[str, Any]) -> None:
    index, schema, _ = data.pop("index"), data.pop("schema"), data.pop("models")
    assert tuple(sorted(data)) == FAMILIES
    assert [entry["model_type"] for entry in index["families"]] == sorted(data)
    for name, family in data.items():
        jsonschema.validate(family, schema)
        assert family["schema"] == 1
        assert family["model_type"] == name
        assert {"transformers", "torch", "nnsight", "encyclopedia"} == set(family["versions"])
        assert family["reference"] in [checkpoint["id"] for checkpoint in family["checkpoints"]]
        for checkpoint in family["checkpoints"]:
            check_checkpoint(checkpoint)
            if checkpoint["available"] and family["annotated"]:
                assert checkpoint["checks"]["snippets"]["run"] > 0


def test_the_index_says_the_state_of_each_family(data: dict[str, Any]) -> None:
    entries = {entry["model_type"]: entry for entry in data["index"]["families"]}
    for entry in entries.values():
        assert {"title", "subtitle", "state", "annotated", "quirks", "mixers", "checkpoints", "counts",
                "versions"} <= set(entry)
    assert {name: entry["state"] for name, entry in entries.items()} == {
        DERIVED: "verified", FAILING: "failed", "doge": "verified", "laguna": "verified"}
    assert {name: entry["annotated"] for name, entry in entries.items()} == {
        name: data[name]["annotated"] for name in FAMILIES}
    assert entries["doge"]["annotated"]
    assert not entries[FAILING]["annotated"]
    assert entries["laguna"]["mixers"]
    counts = entries["laguna"]["counts"]
    assert counts["checkpoints"] == sum(checkpoint["available"] for checkpoint in data["laguna"]["checkpoints"])
    assert counts["values"] == counts["values_checked"] > 0
    assert counts["identities"] == counts["kinds"] > 0
    snippets = data["laguna"]["notes"]["snippets"]
    assert counts["snippets"] == len(snippets)
    assert counts["snippets_run"] == sum(bool(snippet["ran_on"]) for snippet in snippets) > 0
    assert set(entries[FAILING]["counts"].values()) == {0}


def test_what_failed_says_the_step_and_the_reason_and_shows_nothing(data: dict[str, Any], template: Path) -> None:
    family = data[FAILING]
    assert family["failure"]["step"] == "structure"
    assert "blocks" in family["failure"]["reason"]
    checkpoint, = family["checkpoints"]
    assert checkpoint["failure"] == family["failure"]
    assert not checkpoint["available"]
    page = (template / "site_src" / "families" / FAILING / "index.md").read_text()
    assert family["failure"]["reason"][:40] in page
    assert not (template / "site_src" / "families" / FAILING / "checks").exists()
    assert (template / "site_src" / "families" / DERIVED / "checks" / "index.md").exists()


def test_a_family_without_a_recorded_checkpoint_shows_its_class_defaults(data: dict[str, Any]) -> None:
    checkpoint, = data[DERIVED]["checkpoints"]
    assert checkpoint["is_default"]
    assert checkpoint["id"] == DERIVED
    assert "defaults" in checkpoint["config_source"]
    assert not any(entry["is_default"] for entry in data["doge"]["checkpoints"])


def check_checkpoint(checkpoint: dict[str, Any]) -> None:
    assert set(checkpoint) >= CHECKPOINT
    if not checkpoint["available"]:
        assert checkpoint["reason"]
        return
    assert checkpoint["failure"] is None
    assert {"num_layers", "hidden_size", "vocab_size"} <= set(checkpoint["sizes"]) <= SIZES
    assert set(checkpoint["parameters"]) == {"total", "active", "outside"}
    blocks = [block for kind in checkpoint["kinds"] for block in kind["blocks"]]
    assert sorted(blocks) == list(range(checkpoint["sizes"]["num_layers"]))
    for kind in checkpoint["kinds"]:
        assert set(kind) >= KIND
        assert (kind["identity"] is None) == (kind["identity_error"] is None)
        assert kind["identity"] is None or kind["identity_error"] <= 2e-6
    for host in checkpoint["hosts"]:
        for value in host["values"]:
            assert set(value) >= VALUE
            assert value["checked"] is True
            assert len(value["shapes"]) == len(checkpoint["kinds"])
            for shape in value["shapes"]:
                assert shape is None or not value["dims"] or len(shape) == len(value["dims"])
    for left_out in checkpoint["unconfirmed"]:
        assert left_out["reason"]
        served = [value["name"] for host in checkpoint["hosts"] if host["name"] == left_out["host"]
                  and host["classes"] == [left_out["native"]] for value in host["values"]]
        assert left_out["name"] not in served
    checks = checkpoint["checks"]
    values = [value for host in checkpoint["hosts"] for value in host["values"]]
    assert checks["values"] == {"checked": len(values), "total": len(values)}


def test_a_page_of_data_that_is_not_the_schemas_is_refused(data: dict[str, Any]) -> None:
    broken = data["doge"] | {"title": 3}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, data["schema"])
