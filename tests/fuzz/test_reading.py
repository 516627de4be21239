"""Configs that nobody means well with: one line for each, or a record without anything to run in it."""

from __future__ import annotations

import json
import math
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from encyclopedia.checkpoints import BrokenConfig, recorded
from encyclopedia.checkpoints.limits import DEEPEST, MOST_BLOCKS, MOST_ENTRIES, MOST_EXPERTS, entries
from encyclopedia.coverage import all_families
from encyclopedia.instantiate import config_of
from encyclopedia.standalone.reading import LARGEST_FILE, UnreadableConfig, config_from, one_line, read_config
from tests.fuzz.inputs import ASKING, FUZZ, HOSTILE, assert_one_line, mutations, texts, values
from tests.fuzz.tiny import TINY

LLAMA = TINY["llama"]


def refused(content: bytes) -> str:
    with pytest.raises(UnreadableConfig) as caught:
        config_from(content, "local/tiny", "tiny/config.json")
    assert_one_line(str(caught.value), names="tiny/config.json")
    assert ";" in str(caught.value), "no next step"
    return str(caught.value)


def read_or_refuse(content: bytes) -> bool:
    """Whether it was read; either way what came of it is as it must be."""
    try:
        local = config_from(content, "local/tiny", "tiny/config.json")
    except UnreadableConfig as error:
        assert_one_line(str(error), names="tiny/config.json", step=True)
        return False
    assert local.model_type in all_families()
    for key, value in entries(local.record.config):
        assert key.isprintable()
        assert not key.startswith("_")
        assert key not in ("auto_map", "quantization_config", "attn_implementation", "to_dict", "get_text_config")
        assert not isinstance(value, str) or value.isprintable()
    return True


@settings(FUZZ, max_examples=600)
@given(st.one_of(st.binary(max_size=200), texts.map(lambda text: text.encode("utf-8", "surrogatepass")),
                 values.map(lambda value: json.dumps(value).encode())))
def test_whatever_is_in_the_file_is_one_line(content):
    assert not read_or_refuse(content)


@settings(FUZZ, max_examples=250)
@given(data=st.data())
@pytest.mark.parametrize("family", TINY)
def test_a_changed_config_is_read_or_refused(family, data):
    config = data.draw(mutations(TINY[family]))
    read_or_refuse(json.dumps(config, ensure_ascii=data.draw(st.booleans())).encode("utf-8", "surrogatepass"))


@settings(FUZZ, max_examples=60)
@given(data=st.data())
@pytest.mark.parametrize("family", TINY)
def test_what_was_read_is_a_config_or_one_line(family, data):
    content = json.dumps(data.draw(mutations(TINY[family]))).encode()
    try:
        record = config_from(content, "local/tiny", "tiny/config.json").record
        config = config_of(record)
    except UnreadableConfig:
        return
    except BrokenConfig as error:
        assert_one_line(one_line(str(error)), names="local/tiny")
        return
    # A setting that fetches a kernel would be seen in the config that is built.
    assert config._attn_implementation_internal in (None, "eager", "sdpa")
    assert not hasattr(config, "auto_map")


@pytest.mark.parametrize("family", TINY)
def test_the_small_configs_are_read(family):
    assert read_or_refuse(json.dumps(TINY[family]).encode())


def test_what_asks_for_code_is_left_out():
    local = config_from(json.dumps({**LLAMA, **ASKING}).encode(), "local/tiny", "tiny/config.json")
    assert set(ASKING) - {"torch_dtype"} <= {*local.ignored, "dtype"}
    assert set(ASKING) & set(local.record.config) == {"dtype"}
    assert local.record.config["dtype"] == "bfloat16"


@pytest.mark.parametrize(("content", "said"), [
    (b"", "not JSON"),
    (b"\xff\xfe{", "not JSON in UTF-8"),
    (b"[1]", "no JSON object but a list"),
    (b'{"a": NaN}', "NaN is no number of JSON"),
    (b'{"model_type": "mamba2", "time_step_limit": [0.0, {"__float__": "NaN"}]}', "NaN is no number of JSON"),
    (b'{"model_type": "llama", "rms_norm_eps": -Infinity}', "'rms_norm_eps': no finite number"),
    (b'{"model_type": "mamba2", "time_step_limit": [-Infinity, 1.0]}', "'time_step_limit': no finite number"),
    (b'{"model_type": "llama", "rms_norm_eps": 1e999}', "'rms_norm_eps': no finite number"),
    (b'{"model_type": "llama", "model_type": "gpt2"}', "'model_type': given twice"),
    (b'{"model_type": "llama", "a": ' + b"9" * 5000 + b"}", "not JSON"),
    (b'{"model_type": "llama", "a": ' + b"9" * 4000 + b"}", "a number of 13288 bits"),
    (b"[" * 200_000, "nested too deep"),
    (b'{"a":' * 40 + b"1" + b"}" * 40, f"nested more than {DEEPEST} deep"),
    (json.dumps({**LLAMA, "a": [0] * (MOST_ENTRIES + 2)}).encode(), "more than 20,000 entries"),
    (json.dumps({**LLAMA, "a": "x" * 5000}).encode(), "a text of 5,000 characters"),
    (json.dumps({**LLAMA, "model_type": "lama"}).encode(), "the nearest is 'llama'"),
    (json.dumps({**LLAMA, "model_type": "evil", "auto_map": {"AutoConfig": "a.B"}}).encode(),
     "code, which is never run"),
    (json.dumps({**LLAMA, "num_experts": 16384}).encode(), "16,384 is more than the 8,192"),
    (b"null", "no JSON object but a null"),
    (json.dumps({**LLAMA, "num_hidden_layers": 1_000_000}).encode(), f"more than the {MOST_BLOCKS:,}"),
    (json.dumps({**TINY["gpt2"], "n_layer": 1_000_000}).encode(), f"more than the {MOST_BLOCKS:,}"),
    (json.dumps({**TINY["mixtral"], "num_local_experts": 8000, "num_hidden_layers": 900}).encode(),
     "900 blocks of 8,000"),
    (json.dumps({**LLAMA, "hidden_size": -32}).encode(), "-32 is negative"),
    (json.dumps({**LLAMA, "hidden_size": "32"}).encode(), "not a whole number"),
    (json.dumps({**LLAMA, "num_attention_heads": 5}).encode(), "'num_attention_heads'"),
])
def test_what_is_wrong_is_said(content, said):
    assert said in refused(content)


@pytest.mark.parametrize("endless", ["Infinity", '{"__float__": "Infinity"}'])
def test_the_endless_limit_that_a_class_has_by_default_is_read(endless):
    content = json.dumps(TINY["mamba2"])[:-1] + f', "time_step_limit": [0.0, {endless}]}}'
    assert config_from(content.encode(), "local/tiny", "tiny").record.config["time_step_limit"] == [0.0, math.inf]


def test_as_many_experts_as_a_class_has_by_default_are_read():
    record = recorded("SmallDoge/Doge-260M")
    assert record.config["num_experts"] > MOST_EXPERTS
    assert config_from(json.dumps(record.config).encode(), "local/doge", "doge").model_type == "doge"


@pytest.mark.parametrize("source", ["https://huggingface.co/openai-community/gpt2", "https://huggingface.co", " ", ""])
def test_an_address_or_nothing_is_no_place_of_a_config(source):
    with pytest.raises(UnreadableConfig, match="owner/name") as said:
        read_config(source)
    assert ("openai-community/gpt2" in str(said.value).partition("hub id")[2]) == ("gpt2" in source)


def test_what_is_said_of_a_whole_model_holds_for_its_text_part():
    part = {key: value for key, value in TINY["llama"].items() if key not in ("torch_dtype", "dtype")}
    whole = {"model_type": "llava", "torch_dtype": "float16", "tie_word_embeddings": True, "text_config": part}
    config = config_from(json.dumps(whole).encode(), "local/tiny", "tiny").record.config
    assert (config["dtype"], config["tie_word_embeddings"]) == ("float16", True)


def test_the_text_part_of_a_larger_model_is_its_config():
    part = {key: value for key, value in TINY["gemma2"].items() if key != "model_type"}
    content = json.dumps({"model_type": "gemma3", "text_config": {**part, "model_type": "gemma3_text"}})
    local = config_from(content.encode(), "local/tiny", "tiny/config.json")
    assert (local.model_type, local.part_of) == ("gemma3_text", "gemma3")


@pytest.mark.parametrize("make", [
    "missing", "empty folder", "loop", "broken link", "pipe", "unreadable", "large", "device"])
def test_a_file_that_cannot_be_read_is_one_line(make, tmp_path):
    path = tmp_path / "config.json"
    source = path
    match make:
        case "empty folder":
            source = tmp_path
        case "loop":
            path.symlink_to(path)
        case "broken link":
            path.symlink_to(tmp_path / "nowhere")
        case "pipe":
            os.mkfifo(path)
        case "unreadable":
            path.write_text("{}")
            path.chmod(0)
            if os.access(path, os.R_OK):
                path.unlink()
                path.mkdir()
                source = path / "config.json"
        case "large":
            with path.open("wb") as stream:
                stream.write(b'{"model_type": "llama"')
                stream.truncate(50_000_000)
        case "device":
            path.symlink_to("/dev/zero")
    with pytest.raises(UnreadableConfig) as caught:
        read_config(str(source))
    assert_one_line(str(caught.value), names="config.json")
    assert LARGEST_FILE < 50_000_000


@settings(FUZZ, max_examples=300)
@given(st.one_of(texts, st.sampled_from(HOSTILE)))
def test_a_source_that_is_no_path_is_one_line(source):
    if "/" in source and source.isascii() and source.replace("/", "").replace("-", "").replace(".", "").isalnum():
        return  # A hub would be asked.
    try:
        read_config(source)
    except UnreadableConfig as error:
        assert_one_line(str(error))
