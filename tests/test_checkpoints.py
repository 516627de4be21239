"""Recorded checkpoints: what a broken file or entry says, and that it takes nothing else with it."""

from __future__ import annotations

import copy
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import CONFIG_MAPPING

from encyclopedia import checkpoints
from encyclopedia.checkpoints import (
    BrokenConfig,
    RecordedCheckpoint,
    check_config,
    families_recorded,
    read_family,
    recorded,
)
from encyclopedia.instantiate import build_without_weights, config_of

GOOD: dict[str, Any] = {
    "id": "owner/small",
    "reason": None,
    "published_parameters": None,
    "config_source": "Made up for a test.",
    "config": {
        "architectures": ["DogeForCausalLM"],
        "model_type": "doge",
        "vocab_size": 64,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
    },
}
BESIDE = {**copy.deepcopy(GOOD), "id": "owner/beside"}


def entry(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(GOOD), **changes}


def with_config(**changes: Any) -> dict[str, Any]:
    made = entry()
    made["config"] |= changes
    made["config"] = {key: value for key, value in made["config"].items() if value is not ...}
    return made


def without(key: str) -> dict[str, Any]:
    made = entry()
    del made[key]
    return made


def write(folder: Path, *entries: Any) -> Path:
    (folder / "doge.json").write_text(json.dumps({"model_type": "doge", "checkpoints": list(entries)}))
    return folder


BROKEN = {
    "no id": (without("id"), ["number 1", "'id'"]),
    "an id that is no text": (entry(id=7), ["number 1", "'id'"]),
    "an id without an owner": (entry(id="small"), ["'small'", "'id'"]),
    "an id with markup": (entry(id="owner/<script>alert(1)</script>"), ["owner/<script>", "'id'"]),
    "an id with a line break": (entry(id="owner/small\n"), [r"owner/small\n", "'id'"]),
    "an id that climbs": (entry(id="../../etc/passwd"), ["../../etc/passwd", "'id'"]),
    "an id in another script": (entry(id="ownеr/small"), ["'id'"]),
    "no config": (without("config"), ["owner/small", "'config'"]),
    "a config that is a list": (entry(config=[]), ["owner/small", "'config'"]),
    "no reason": (without("reason"), ["owner/small", "'reason'"]),
    "an unknown key": (entry(architecture="Doge"), ["owner/small", "'architecture'"]),
    "published counts of the wrong type": (
        entry(published_parameters={"total": "many", "active": None, "known_from": ""}),
        ["owner/small", "'published_parameters.total'"]),
    "no model type": (with_config(model_type=...), ["owner/small", "'model_type'"]),
    "a model type that is no text": (with_config(model_type=3), ["owner/small", "'model_type'"]),
    "another family's model type": (with_config(model_type="laguna"), ["owner/small", "'model_type'", "laguna"]),
    "no architectures": (with_config(architectures=...), ["owner/small", "'architectures'"]),
    "empty architectures": (with_config(architectures=[]), ["owner/small", "'architectures'"]),
    "an architecture that is no list": (
        with_config(architectures="DogeForCausalLM"), ["owner/small", "'architectures'"]),
    "an architecture with markup": (
        with_config(architectures=["<img src=x onerror=alert(1)>"]), ["owner/small", "'architectures'"]),
    "an architecture with a line break": (with_config(architectures=["Doge\n"]), ["owner/small", "'architectures'"]),
    "a negative size": (with_config(hidden_size=-32), ["owner/small", "'hidden_size'", "-32"]),
    "a negative count": (with_config(num_attention_heads=-4), ["owner/small", "'num_attention_heads'"]),
    "a size that is text": (with_config(vocab_size="64"), ["owner/small", "'vocab_size'"]),
    "a size that is a fraction": (with_config(hidden_size=32.5), ["owner/small", "'hidden_size'"]),
    "a size that is a truth value": (with_config(hidden_size=True), ["owner/small", "'hidden_size'"]),
    "a size that is no number": (with_config(hidden_size=float("nan")), ["owner/small", "'hidden_size'"]),
    "a negative size in a list": (
        with_config(num_attention_heads_per_layer=[4, -4]), ["owner/small", "'num_attention_heads_per_layer'"]),
    "a list that is not of numbers": (
        with_config(num_attention_heads_per_layer=[4, None]), ["owner/small", "'num_attention_heads_per_layer'"]),
    "markup in an architecture of one that is not shown": (
        {**with_config(architectures=["<b>"]), "reason": "Not public."}, ["owner/small", "'architectures'"]),
    "no architecture in a list of one that is not shown": (
        {**with_config(architectures={"0": "Doge"}), "reason": "Not public."}, ["owner/small", "'architectures'"]),
    "a list in an entry's place": ([], ["number 1"]),
    "text in an entry's place": ("owner/small", ["number 1"]),
    "nothing in an entry's place": (None, ["number 1"]),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_entry_is_one_line_and_takes_no_other_away(tmp_path: Path, broken: str) -> None:
    made, named = BROKEN[broken]
    good, errors = read_family("doge", write(tmp_path, made, BESIDE))
    assert [record.id for record in good] == ["owner/beside"]
    assert len(errors) == 1
    message = str(errors[0])
    assert "\n" not in message
    for part in named:
        assert part in message


def test_the_second_of_two_with_one_id_is_broken(tmp_path: Path) -> None:
    good, errors = read_family("doge", write(tmp_path, entry(), BESIDE, entry()))
    assert [record.id for record in good] == ["owner/small", "owner/beside"]
    assert [str(error) for error in errors] == ["doge checkpoint 'owner/small': key 'id': recorded twice"]


@pytest.mark.parametrize("text", ["", "not JSON", "[]", "3", "{}", '{"checkpoints": 3}', '{"checkpoints": {"a": 1}}',
                                  '{"checkpoints": null}', '{"checkpoints": "owner/small"}', "\ufeff{}", "{"])
def test_a_broken_file_is_one_line_that_names_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "doge.json").write_text(text)
    with pytest.raises(BrokenConfig, match=r"doge\.json: ") as error:
        read_family("doge", tmp_path)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_text_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "doge.json").write_bytes(b"\xff\xfe\x00")
    for name in ("doge", "missing"):
        with pytest.raises(BrokenConfig, match=rf"{name}\.json: "):
            read_family(name, tmp_path)


def test_a_broken_file_takes_no_other_family_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, entry())
    (tmp_path / "laguna.json").write_text("not JSON")
    monkeypatch.setattr(checkpoints, "families_recorded", lambda: families_recorded(tmp_path))
    monkeypatch.setattr(checkpoints, "read_family", lambda name: read_family(name, tmp_path))
    checkpoints._all_recorded.cache_clear()
    try:
        assert recorded("owner/small").id == "owner/small"
    finally:
        checkpoints._all_recorded.cache_clear()


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sorted(GOOD["config"])), values)
def test_checking_any_value_of_any_key_passes_or_names_both(key: str, value: Any) -> None:
    record = RecordedCheckpoint.model_validate(with_config(**{key: value}))
    message = complaint(record)
    if message is not None:
        assert "owner/small" in message
        assert repr(key) in message
        assert "\n" not in message


def complaint(record: RecordedCheckpoint) -> str | None:
    """What checking the config complains of."""
    try:
        check_config(record)
    except BrokenConfig as error:
        return str(error)
    return None


@given(values)
def test_any_entry_loads_or_is_reported(made: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        good, errors = read_family("doge", write(Path(folder), made, BESIDE))
    assert len(good) + len(errors) == 2
    assert "owner/beside" in {record.id for record in good}


@pytest.mark.parametrize(("changes", "key"), [
    ({"hidden_size": ...}, "hidden_size"),
    ({"vocab_size": ...}, "vocab_size"),
    ({"num_hidden_layers": 0}, "num_hidden_layers"),
    ({"num_attention_heads": 0}, "num_attention_heads"),
    ({"hidden_act": "no_such_function"}, ""),
    ({"rope_parameters": {"rope_type": "no_such_rotary"}}, ""),
    ({"hidden_size": None}, ""),
])
def test_a_config_that_does_not_build_names_the_checkpoint(changes: dict[str, Any], key: str) -> None:
    record = RecordedCheckpoint.model_validate(with_config(**changes))
    with pytest.raises(BrokenConfig) as error:
        build_without_weights(record)
    assert "owner/small" in str(error.value)
    assert key in str(error.value)
    assert "\n" not in str(error.value)


def test_an_unknown_model_type_names_the_key() -> None:
    record = RecordedCheckpoint.model_validate(with_config(model_type="no_such_model"))
    with pytest.raises(BrokenConfig, match=r"'owner/small'.*'model_type'.*no_such_model"):
        config_of(record)


def test_what_is_recorded_is_sound() -> None:
    for name in families_recorded():
        good, errors = read_family(name)
        assert not errors
        assert [record.reference for record in good].count(True) == 1
        reference = next(record for record in good if record.reference)
        assert reference.reason is None
        for record in good:
            known = {key.strip() for keys in record.known_from for key in keys.split(",")}
            assert known <= set(record.config), record.id
            if record.reason is None:
                assert record.config_source
                # A family may spell the width otherwise, or nest the decoder's config.
                native = CONFIG_MAPPING[name].attribute_map.get("hidden_size", "hidden_size")
                width = next(key for key in (native, "hidden_size", "text_config") if key in record.config)
                assert record.source_of(width) is not None, record.id
            else:
                assert record.reason.strip()


def test_the_source_of_a_key() -> None:
    record = RecordedCheckpoint.model_validate({**entry(), "known_from": {"hidden_size, vocab_size": "here"}})
    assert record.source_of("vocab_size") == "here"
    assert record.source_of("hidden") is None
