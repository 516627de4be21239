"""The ways to get a standardized model: a loaded module, with a tokenizer, a folder, a recorded checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nnsight
import pytest
import torch
from transformers import AutoModel

from encyclopedia import NoWeights, StandardizedTransformer, Unavailable
from encyclopedia.structure.stack import UnknownStructure, without_weights

DOGE = "SmallDoge/Doge-260M"
LAGUNA = "poolside/Laguna-XS-2.1"


@pytest.fixture(scope="module")
def folder(plain_twin: Any, tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved")
    plain_twin(LAGUNA).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def test_a_loaded_module_takes_token_ids(laguna: StandardizedTransformer, prompt: torch.Tensor) -> None:
    with laguna.trace(prompt):
        logits = laguna.logits.save()
    assert torch.equal(logits, laguna._module(input_ids=prompt, attention_mask=torch.ones_like(prompt)).logits)


def test_text_without_a_tokenizer_says_what_to_pass(laguna: StandardizedTransformer) -> None:
    with pytest.raises(TypeError, match=r"no tokenizer: pass token ids .*or tokenizer="), laguna.trace("the cat"):
        pass


def test_a_loaded_module_with_a_tokenizer_takes_text(plain_twin: Any, tokenizer: Any) -> None:
    model = StandardizedTransformer(plain_twin(LAGUNA), tokenizer=tokenizer)
    with model.trace("the cat runs fast"):
        token_ids = model.input_ids.save()
        mask = model.attention_mask.save()
        queries = model.layers[1].self_attn.attention_queries.save()
    assert token_ids.tolist() == [tokenizer.convert_tokens_to_ids(["the", "cat", "runs", "fast"])]
    assert mask.tolist() == [[1, 1, 1, 1]]
    assert queries.shape == (1, model.layers[1].self_attn.num_heads, 4, model.layers[1].self_attn.head_dim)


@pytest.mark.parametrize("load", ["eager", "sdpa"])
def test_a_folder_is_dispatched_by_the_first_trace(folder: Path, plain_twin: Any, tokenizer: Any, load: str) -> None:
    model = StandardizedTransformer(str(folder), attn_implementation=load, dtype=torch.float32)
    assert not model.dispatched
    before, printed = model.support(), repr(model)
    sizes = [model.layers[layer].self_attn.num_heads for layer in range(model.num_layers)]
    attention, mixture = model.layers[1].self_attn, model.layers[1].mlp
    with model.trace("the cat runs fast"):
        premix = attention.attention_premix.save()
        router_logits = mixture.router_logits.save()
        expert_outputs = mixture.expert_outputs.save()
        logits = model.logits.save()
    assert model.dispatched
    assert model.support() == before
    assert repr(model) == printed
    assert [model.layers[layer].self_attn.num_heads for layer in range(model.num_layers)] == sizes
    assert premix.shape == (1, 4, attention.num_heads, attention.head_dim)
    assert router_logits.shape == (1, 4, 36)
    assert expert_outputs.shape == (1, 4, 3, 48)
    loaded = StandardizedTransformer(plain_twin(LAGUNA, attn_implementation=load), tokenizer=tokenizer)
    with loaded.trace("the cat runs fast"):
        expected = loaded.logits.save()
    assert torch.equal(logits, expected)


def test_the_first_trace_of_a_folder_serves_the_attention_interior(folder: Path) -> None:
    model = StandardizedTransformer(str(folder), attn_implementation="eager", dtype=torch.float32)
    with model.trace("the cat runs fast"):
        scores = model.layers[1].self_attn.attention_scores.save()
        probabilities = model.layers[1].self_attn.attention_probabilities.save()
        weights = model.layers[1].mlp.expert_weights.save()
    torch.testing.assert_close(scores.softmax(-1), probabilities)
    assert weights.shape == (1, 4, 3)


def test_a_folder_can_be_loaded_at_once(folder: Path) -> None:
    model = StandardizedTransformer(str(folder), dispatch=True, dtype=torch.float32)
    assert model.dispatched
    with model.trace("a dog"):
        assert nnsight.save(model.input_size) == (1, 2)


def test_a_module_without_a_head_is_refused(laguna: StandardizedTransformer) -> None:
    with pytest.raises(UnknownStructure, match="no head was found"):
        StandardizedTransformer(AutoModel.from_config(laguna._module.config))


@pytest.mark.parametrize("checkpoint", [DOGE, LAGUNA, "SmallDoge/Doge-20M", "SmallDoge/Doge-40M-MoE"])
def test_a_recorded_checkpoint_is_scanned_at_full_size(checkpoint: str) -> None:
    model = StandardizedTransformer.from_recorded(checkpoint, attn_implementation="eager")
    last = model.layers[model.num_layers - 1]
    kinds = [getattr(module, "rope_type", None) for module in model._module.modules()]
    with model.scan(torch.zeros(1, 8, dtype=torch.long)):
        scores = nnsight.save(last.self_attn.attention_scores.shape)
        stream = nnsight.save(last.layer_output.shape)
        logits = nnsight.save(model.logits.shape)
    assert scores == (1, last.self_attn.num_heads, 8, 8)
    assert stream == (1, 8, model.hidden_size)
    assert logits == (1, 8, model.vocab_size)
    assert [getattr(module, "rope_type", None) for module in model._module.modules()] == kinds


def test_a_recorded_checkpoint_has_no_weights_to_run() -> None:
    model = StandardizedTransformer.from_recorded("SmallDoge/Doge-20M")
    token_ids = torch.zeros(1, 8, dtype=torch.long)
    with pytest.raises(NoWeights, match=r"use scan\(\)"), model.trace(token_ids):
        model.logits.save()
    with pytest.raises(NoWeights, match=r"use scan\(\)"), model.generate(token_ids, max_new_tokens=2):
        model.logits.save()


@pytest.mark.parametrize(("asked", "nearest"), [
    ("SmallDoge/Doge-261M", DOGE),
    ("poolside/laguna-xs-2.1", LAGUNA),
    ("Doge-260M", DOGE),
])
def test_an_unknown_id_names_the_nearest(asked: str, nearest: str) -> None:
    with pytest.raises(KeyError) as error:
        StandardizedTransformer.from_recorded(asked)
    assert asked in str(error.value)
    assert nearest in str(error.value)


def test_an_eager_and_a_default_load_stand_side_by_side(twin: Any, prompt: torch.Tensor) -> None:
    eager, default = twin(LAGUNA), twin(LAGUNA, attn_implementation="sdpa")
    with eager.trace(prompt):
        scores = eager.layers[0].self_attn.attention_scores.save()
        eager_logits = eager.logits.save()
    with pytest.raises(Unavailable), default.trace(prompt):
        default.layers[0].self_attn.attention_scores.save()
    with default.trace(prompt):
        default_logits = default.logits.save()
    assert scores.shape == (2, 12, 13, 13)
    torch.testing.assert_close(eager_logits, default_logits, atol=1e-4, rtol=1e-4)


def test_the_load_is_the_one_that_runs_not_the_one_that_was_built(plain_twin: Any, prompt: torch.Tensor) -> None:
    model = StandardizedTransformer(plain_twin(LAGUNA, attn_implementation="sdpa"))
    assert model.layers[1].self_attn.unavailable("attention_scores") is not None
    model._module.set_attn_implementation("eager")
    assert model.layers[1].self_attn.unavailable("attention_scores") is None
    with model.trace(prompt):
        scores = model.layers[1].self_attn.attention_scores.save()
    assert scores.shape == (2, 16, 13, 13)


def test_one_module_can_be_wrapped_twice(plain_twin: Any, prompt: torch.Tensor) -> None:
    module = plain_twin(LAGUNA)
    first, second = StandardizedTransformer(module), StandardizedTransformer(module)
    found = []
    for model in (first, second, first):
        with model.trace(prompt):
            scores = model.layers[1].self_attn.attention_scores.save()
            weights = model.layers[1].mlp.expert_weights.save()
        found.append((scores, weights))
    for scores, weights in found[1:]:
        assert torch.equal(scores, found[0][0])
        assert torch.equal(weights, found[0][1])


@pytest.mark.parametrize("experts", ["eager", "grouped_mm", "batched_mm"])
def test_expert_outputs_are_there_where_the_experts_have_them(
    plain_twin: Any, prompt: torch.Tensor, experts: str
) -> None:
    model = StandardizedTransformer(plain_twin(LAGUNA, experts_implementation=experts))
    mixture = model.layers[1].mlp
    lacking = {name for name, reason in mixture.support().items() if reason is not None and "load with" in reason}
    assert lacking == ({"expert_outputs"} if experts == "eager" else set())
    if experts == "eager":
        with pytest.raises(Unavailable, match=r"the eager experts.*experts_implementation="):
            _ = mixture.expert_outputs
        return
    with model.trace(prompt):
        outputs = mixture.expert_outputs.save()
        routed = mixture.routed_output.save()
    scale = model._module.config.moe_routed_scaling_factor
    torch.testing.assert_close(outputs.sum(dim=2) * scale, routed, atol=1e-4, rtol=1e-4)


def test_the_models_of_one_class_keep_their_own_sizes(twin: Any) -> None:
    wide, narrow = twin(LAGUNA), twin("poolside/Laguna-M.1")
    assert [wide.layers[layer].self_attn.num_heads for layer in range(3)] == [12, 16, 12]
    assert {narrow.layers[layer].self_attn.num_heads for layer in range(2)} == {narrow.num_heads}


@pytest.mark.parametrize("checkpoint", [DOGE, LAGUNA])
def test_the_roots_sizes_are_the_configs(twin: Any, checkpoint: str) -> None:
    model = twin(checkpoint)
    config = model._module.config
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    assert model.sizes() == {
        "num_layers": config.num_hidden_layers,
        "hidden_size": config.hidden_size,
        "num_heads": config.num_attention_heads,
        "num_kv_heads": config.num_key_value_heads,
        "head_dim": head_dim,
        "qk_head_dim": head_dim,
        "vocab_size": config.vocab_size,
        "intermediate_size": config.intermediate_size,
    }
    assert model.num_layers == len(model.layers)


def test_a_name_that_does_not_exist_is_an_attribute_error(laguna: StandardizedTransformer) -> None:
    for host in (laguna, *laguna.hosts(1)):
        with pytest.raises(AttributeError, match="attention_pattern"):
            _ = host.attention_pattern


def test_a_model_with_some_weights_elsewhere_may_still_run(plain_twin: Any) -> None:
    module = plain_twin(LAGUNA)
    assert not without_weights(module)
    module.lm_head.to("meta")
    assert not without_weights(module)
    module.to("meta")
    assert without_weights(module)
