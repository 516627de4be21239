"""Values that cannot be served: before, inside and outside a trace, each with its reason."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from nnsight.intervention.interleaver import OutOfOrderError

from encyclopedia import StandardizedTransformer, Unavailable

LAGUNA = "poolside/Laguna-XS-2.1"
NEEDS_EAGER = r'attention_scores is not available.*runs sdpa: load with attn_implementation="eager"'


@pytest.fixture
def default(twin: Any) -> StandardizedTransformer:
    return twin(LAGUNA, attn_implementation="sdpa")


def read_two(model: StandardizedTransformer, prompt: torch.Tensor) -> None:
    """Read a value that is there, then one that may not be."""
    with model.trace(prompt):
        model.layers[0].layer_output.save()
        model.layers[1].self_attn.attention_scores.save()


@pytest.fixture
def calls(default: StandardizedTransformer) -> Any:
    """How often each of the root's blocks was called."""
    counted: list[int] = []
    handles = [
        layer.register_forward_pre_hook(lambda module, arguments, index=index: counted.append(index))
        for index, layer in enumerate(default._module.get_submodule(default.stack.layers))
    ]
    yield counted
    for handle in handles:
        handle.remove()


def test_outside_a_trace_the_reason_comes_first(default: StandardizedTransformer) -> None:
    with pytest.raises(Unavailable, match=NEEDS_EAGER):
        _ = default.layers[0].self_attn.attention_scores
    with pytest.raises(Unavailable, match=NEEDS_EAGER):
        default.layers[0].self_attn.attention_scores = torch.zeros(1)


def test_as_the_first_access_nothing_runs(
    default: StandardizedTransformer, prompt: torch.Tensor, calls: list[int]
) -> None:
    with pytest.raises(Unavailable, match=NEEDS_EAGER), default.trace(prompt):
        default.layers[1].self_attn.attention_scores.save()
    assert calls == []


def test_as_a_later_access_the_model_stops_where_it_is(
    default: StandardizedTransformer, prompt: torch.Tensor, calls: list[int]
) -> None:
    with pytest.raises(Unavailable, match=NEEDS_EAGER):
        read_two(default, prompt)
    assert calls == [0]


def test_the_next_trace_is_unharmed(default: StandardizedTransformer, prompt: torch.Tensor) -> None:
    with pytest.raises(Unavailable):
        read_two(default, prompt)
    with default.trace(prompt):
        logits = default.logits.save()
    assert torch.equal(logits, default._module(prompt, attention_mask=torch.ones_like(prompt)).logits)


def test_a_write_is_refused_like_a_read(default: StandardizedTransformer, prompt: torch.Tensor) -> None:
    with pytest.raises(Unavailable, match=NEEDS_EAGER), default.trace(prompt):
        default.layers[0].self_attn.attention_scores = torch.zeros(2, 12, 13, 13)


def test_the_shared_expert_points_to_the_mixture(laguna: StandardizedTransformer, prompt: torch.Tensor) -> None:
    shared = laguna.layers[1].mlp.shared_experts
    assert "mixture's own mlp_output" in shared.support()["mlp_output"]
    with pytest.raises(Unavailable, match="mixture's own mlp_output"), laguna.trace(prompt):
        shared.mlp_output.save()
    with laguna.trace(prompt):
        neurons = shared.mlp_neurons.save()
        output = laguna.layers[1].mlp.shared_expert_output.save()
    torch.testing.assert_close(shared._module.down_proj(neurons).view_as(output), output)


def test_a_dense_mlp_of_the_same_class_has_its_output(laguna: StandardizedTransformer) -> None:
    assert type(laguna.layers[0].mlp._module) is type(laguna.layers[1].mlp.shared_experts._module)
    assert laguna.layers[0].mlp.support()["mlp_output"] is None


def test_a_mixture_has_no_neurons_of_its_own(laguna: StandardizedTransformer) -> None:
    for name in ("mlp_activation", "mlp_neurons"):
        with pytest.raises(Unavailable, match="one set of neurons per expert"):
            getattr(laguna.layers[1].mlp, name)


def test_product_keys_have_no_router(twin: Any) -> None:
    mixture = twin("SmallDoge/Doge-40M-MoE").layers[0].mlp
    assert {name for name, reason in mixture.support().items() if reason is None} == {
        "mlp_activation", "mlp_neurons", "mlp_output"}
    with pytest.raises(Unavailable, match="rows of two embedding tables"):
        _ = mixture.router_logits


def test_support_of_the_whole_names_the_blocks_that_lack_a_value(laguna: StandardizedTransformer) -> None:
    rows = laguna.support()["model.layers[i].mlp"]
    assert rows["mlp_output"] is None
    assert rows["mlp_neurons"].endswith("(on 2 of 3 blocks, the first is 1)")


def test_an_available_value_outside_a_trace_is_nnsights_error(laguna: StandardizedTransformer) -> None:
    with pytest.raises(ValueError, match="outside of interleaving"):
        _ = laguna.layers[0].layer_output


@pytest.mark.parametrize("name", ["attention_queries", "attention_scores", "attention_probabilities",
                                  "attention_premix"])
def test_reading_backwards_is_out_of_order(laguna: StandardizedTransformer, prompt: torch.Tensor, name: str) -> None:
    def read_backwards() -> None:
        with laguna.trace(prompt):
            laguna.layers[0].self_attn.attention_output.save()
            getattr(laguna.layers[0].self_attn, name).save()

    with pytest.raises(OutOfOrderError):
        read_backwards()


def test_a_call_that_returns_a_tuple_has_no_logits(laguna: StandardizedTransformer, prompt: torch.Tensor) -> None:
    with pytest.raises(Unavailable, match="logits is not available on this call"), laguna.trace(
            prompt, return_dict=False):
        laguna.logits.save()
    with laguna.trace(prompt, return_dict=False):
        head = laguna.lm_head_output.save()
    assert head.shape == (2, 13, 97)


def test_a_value_that_was_not_confirmed_is_refused_with_its_reason(plain_twin: Any, prompt: torch.Tensor) -> None:
    reason = "no run confirmed it"
    model = StandardizedTransformer(plain_twin(LAGUNA), unconfirmed={
        ("LagunaAttention", "self_attn"): {"attention_scores": reason},
        ("LagunaForCausalLM", "model"): {"final_norm_output": reason},
    })
    for layer in range(model.num_layers):
        assert model.support(layer=layer)["model.layers[i].self_attn"]["attention_scores"] == reason
        with pytest.raises(Unavailable, match=f"attention_scores is not available on this load: {reason}"):
            _ = model.layers[layer].self_attn.attention_scores
    assert model.unavailable("final_norm_output") == reason
    with pytest.raises(Unavailable, match=reason), model.trace(prompt):
        model.final_norm_output.save()
    with model.trace(prompt):
        probabilities = model.layers[0].self_attn.attention_probabilities.save()
    torch.testing.assert_close(probabilities.sum(-1), torch.ones(2, 12, 13))
