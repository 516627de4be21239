"""Reads and writes in one trace: in place, by assignment, late, through edits, caches and gradients."""

from __future__ import annotations

import copy
from typing import Any

import nnsight
import pytest
import torch

from encyclopedia import StandardizedTransformer
from encyclopedia.model.value import StandardValue

LAGUNA = "poolside/Laguna-XS-2.1"


def test_a_head_is_zeroed_in_place(laguna: StandardizedTransformer, prompt: torch.Tensor) -> None:
    attention = laguna.layers[1].self_attn
    with laguna.trace(prompt):
        attention.attention_premix[:, :, 1] = 0
        projected = attention.o_proj.input.save()
    heads = projected.unflatten(-1, (attention.num_heads, attention.head_dim))
    assert (heads[:, :, 1] == 0).all()
    assert (heads[:, :, [0, 2]] != 0).any()


def test_experts_are_zeroed_in_place(laguna: StandardizedTransformer, prompt: torch.Tensor) -> None:
    mixture = laguna.layers[1].mlp
    with laguna.trace(prompt):
        mixture.expert_outputs[...] = 0
        routed = mixture.routed_output.save()
        output = mixture.mlp_output.save()
    assert (routed == 0).all()
    assert (output != 0).any()


def test_an_expert_is_ablated_on_the_tokens_that_chose_it(
    laguna: StandardizedTransformer, prompt: torch.Tensor
) -> None:
    mixture, expert = laguna.layers[1].mlp, 3
    with laguna.trace(prompt):
        chosen = mixture.expert_indices.save()
        clean = mixture.mlp_output.save()
    with laguna.trace(prompt):
        mixture.expert_weights = mixture.expert_weights.masked_fill(mixture.expert_indices == expert, 0)
        ablated = mixture.mlp_output.save()
    assert torch.equal((ablated != clean).any(-1), (chosen == expert).any(-1))


def test_an_augmented_assignment_edits_once(laguna: StandardizedTransformer, prompt: torch.Tensor) -> None:
    mixture = laguna.layers[1].mlp
    with laguna.trace(prompt):
        clean = mixture.expert_weights.clone().save()
    with laguna.trace(prompt):
        mixture.expert_weights *= 2
        doubled = mixture.experts.inputs[0][2].save()
    torch.testing.assert_close(doubled.view_as(clean), clean * 2)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_edits_hold_without_gradients(laguna: StandardizedTransformer, prompt: torch.Tensor, mode: Any) -> None:
    with mode(), laguna.trace(prompt):
        laguna.layers[1].mlp.expert_weights[...] = 0
        routed = laguna.layers[1].mlp.routed_output.save()
    assert (routed == 0).all()


def test_a_wrong_layout_is_refused(laguna: StandardizedTransformer, prompt: torch.Tensor) -> None:
    """Heads and positions swapped have as many numbers, so a reshape would take them."""
    attention = laguna.layers[1].self_attn
    with pytest.raises(ValueError, match=(
        r"attention_premix takes HeadOutputs \[batch seq num_heads head_dim\], here \[2, 13, 16, 32\], "
        r"and got shape \[2, 16, 13, 32\]")), laguna.trace(prompt):
        attention.attention_premix = attention.attention_premix.transpose(1, 2)
    with pytest.raises(ValueError, match="and got int"), laguna.trace(prompt):
        attention.attention_premix = 0
    with pytest.raises(ValueError, match=r"router_logits takes .* and got shape \[26, 36\]"), laguna.trace(prompt):
        laguna.layers[1].mlp.router_logits = laguna.layers[1].mlp.router_logits.flatten(0, 1)
    with pytest.raises(ValueError, match="layer_output takes Residual"), laguna.trace(prompt):
        laguna.layers[0].layer_output = torch.zeros(48)


@pytest.mark.parametrize("name", ["next_token_probs", "input_size"])
def test_a_computed_value_cannot_be_written(laguna: StandardizedTransformer, prompt: torch.Tensor, name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} is computed from other values"):
        setattr(laguna, name, torch.zeros(2, 97))
    with pytest.raises(TypeError, match=f"{name} is computed from other values"), laguna.trace(prompt):
        setattr(laguna, name, torch.zeros(2, 97))


def test_the_whole_attention_is_read_in_forward_order(laguna: StandardizedTransformer, prompt: torch.Tensor) -> None:
    """Late reads: the forward has begun, and a sibling was read, before the first operation is asked for."""
    attention = laguna.layers[0].self_attn
    with laguna.trace(prompt):
        normed = laguna.layers[0].attention_norm_output.save()
        projected = attention.q_proj.output.save()
        queries = attention.attention_queries.save()
        keys = attention.attention_keys.save()
        scores = attention.attention_scores.save()
        probabilities = attention.attention_probabilities.save()
        heads = attention.attention_head_outputs.save()
        premix = attention.attention_premix.save()
        output = attention.attention_output.save()
    assert [tuple(value.shape) for value in (normed, projected, queries, keys, scores, probabilities, heads, premix,
                                             output)] == [
        (2, 13, 48), (2, 13, 384), (2, 12, 13, 32), (2, 2, 13, 32), (2, 12, 13, 13), (2, 12, 13, 13), (2, 13, 12, 32),
        (2, 13, 12, 32), (2, 13, 48)]


def test_both_spellings_of_the_stack_are_one_host(laguna: StandardizedTransformer, prompt: torch.Tensor) -> None:
    assert laguna.model.layers[1].self_attn is laguna.layers[1].self_attn
    with laguna.trace(prompt):
        one = laguna.model.layers[1].self_attn.attention_premix.save()
        other = laguna.layers[1].self_attn.attention_premix.save()
    assert torch.equal(one, other)


def test_arguments_are_found_by_name_however_they_were_passed(
    laguna: StandardizedTransformer, prompt: torch.Tensor
) -> None:
    mask = torch.ones_like(prompt)
    mask[0, :4] = 0
    native = laguna._module

    def positional(input_ids: torch.Tensor, attention_mask: torch.Tensor, **rest: Any) -> Any:
        return native(input_ids, attention_mask)

    def without_mask(input_ids: torch.Tensor, **rest: Any) -> Any:
        return native(input_ids)

    with laguna.trace(prompt, attention_mask=mask, fn=positional):
        size, ids, served = nnsight.save(laguna.input_size), laguna.input_ids.save(), laguna.attention_mask.save()
    assert size == (2, 13)
    assert torch.equal(ids, prompt)
    assert torch.equal(served, mask)
    with laguna.trace(prompt, fn=without_mask):
        served = nnsight.save(laguna.attention_mask)
    assert served is None


def test_padding_is_served_and_takes_effect(laguna: StandardizedTransformer, prompt: torch.Tensor) -> None:
    mask = torch.ones_like(prompt)
    mask[0, :4] = 0
    with laguna.trace(prompt, attention_mask=mask):
        served = laguna.attention_mask.save()
        probabilities = laguna.layers[0].self_attn.attention_probabilities.save()
        padded = laguna.logits.save()
    assert torch.equal(served, mask)
    assert (probabilities[0, :, 4:, :4] == 0).all()
    assert (probabilities[1, :, 4:, :4] != 0).any()
    with laguna.trace(prompt):
        laguna.attention_mask = mask
        written = laguna.logits.save()
    torch.testing.assert_close(written[:, 4:], padded[:, 4:], atol=1e-4, rtol=1e-4)


def test_embeddings_may_stand_in_for_token_ids(laguna: StandardizedTransformer, prompt: torch.Tensor) -> None:
    embeddings = laguna._module.get_input_embeddings()(prompt)
    with laguna.trace(inputs_embeds=embeddings):
        size = nnsight.save(laguna.input_size)
        ids = nnsight.save(laguna.input_ids)
    assert size == (2, 13)
    assert ids is None


def test_the_next_token_follows_written_logits(laguna: StandardizedTransformer, prompt: torch.Tensor) -> None:
    with laguna.trace(prompt):
        laguna.logits[:, -1, 5] = 1e4
        probabilities = laguna.next_token_probs.save()
        returned = laguna.output.logits.save()
    assert (probabilities[:, 5] == 1).all()
    assert (returned[:, -1, 5] == 1e4).all()


def test_a_written_output_keeps_its_other_fields(laguna: StandardizedTransformer, prompt: torch.Tensor) -> None:
    with laguna.trace(prompt, output_hidden_states=True, use_cache=True):
        laguna.logits = torch.zeros_like(laguna.logits)
        output = laguna.output.save()
    assert type(output).__name__ == "MoeCausalLMOutputWithPast"
    assert (output.logits == 0).all()
    assert (output["logits"] == 0).all()
    assert output.past_key_values is not None
    assert len(output.hidden_states) == laguna.num_layers + 1


def test_a_module_can_be_skipped(laguna: StandardizedTransformer, prompt: torch.Tensor) -> None:
    block = laguna.layers[1]
    with laguna.trace(prompt):
        before = block.layer_input.save()
        block.skip(before)
        after = laguna.layers[2].layer_input.save()
    assert torch.equal(before, after)


def test_an_edit_is_replayed_on_the_edited_copy_only(laguna: StandardizedTransformer, prompt: torch.Tensor) -> None:
    with laguna.edit() as (_, edited):
        edited.layers[1].self_attn.attention_premix[:, :, 1] = 0
        edited.layers[1].mlp.expert_outputs[..., 0, :] = 0
    with edited.trace(prompt):
        replayed = edited.logits.save()
    with laguna.trace(prompt):
        clean = laguna.logits.save()
    with laguna.trace(prompt):
        laguna.layers[1].self_attn.attention_premix[:, :, 1] = 0
        laguna.layers[1].mlp.expert_outputs[..., 0, :] = 0
        by_hand = laguna.logits.save()
    assert torch.equal(replayed, by_hand)
    assert not torch.equal(replayed, clean)


def test_a_cache_sees_the_edit(laguna: StandardizedTransformer, prompt: torch.Tensor) -> None:
    with laguna.trace(prompt) as tracer:
        cache = tracer.cache()
        laguna.layers[1].mlp.mlp_output[...] = 0
        output = laguna.layers[1].layer_output.save()
    assert (cache["model.layers.1.mlp"].output == 0).all()
    assert torch.equal(cache["model.layers.1"].output, output)


def test_values_flow_between_the_traces_of_a_session(laguna: StandardizedTransformer, prompt: torch.Tensor) -> None:
    with laguna.session():
        with laguna.trace(prompt):
            stream = laguna.layers[1].layer_output
        with laguna.trace(prompt.flip(dims=(1,))):
            laguna.layers[1].layer_output = stream
            patched = laguna.logits.save()
    with laguna.trace(prompt):
        clean = laguna.logits.save()
    torch.testing.assert_close(patched, clean)


@pytest.mark.parametrize(("host", "name"), [
    ("self_attn", "attention_queries"), ("self_attn", "attention_scores"), ("self_attn", "attention_probabilities"),
    ("self_attn", "attention_head_outputs"), ("self_attn", "attention_premix"), ("mlp", "router_logits"),
    ("mlp", "expert_weights"), ("mlp", "expert_outputs"), ("mlp", "routed_output"), ("mlp", "shared_expert_output"),
    ("mlp", "mlp_output"),
])
def test_gradients_reach_a_value(laguna: StandardizedTransformer, prompt: torch.Tensor, host: str, name: str) -> None:
    place = getattr(laguna.layers[1], host)
    with laguna.trace(prompt):
        value = getattr(place, name)
        shape = nnsight.save(value.shape)
        loss = laguna.logits.square().sum()
        with loss.backward():
            gradient = value.grad.save()
    assert gradient.shape == shape
    assert gradient.isfinite().all()
    assert (gradient != 0).any()


def test_a_gradient_is_the_slope(laguna: StandardizedTransformer, prompt: torch.Tensor) -> None:
    attention = laguna.layers[2].self_attn
    with laguna.trace(prompt):
        premix = attention.attention_premix
        loss = laguna.logits.sum()
        with loss.backward():
            gradient = premix.grad.save()
    step, found = 1e-2, []
    for sign in (1, -1):
        with laguna.trace(prompt):
            attention.attention_premix[0, 3, 1, 2] += sign * step
            total = laguna.logits.sum().save()
        found.append(total.item())
    assert gradient[0, 3, 1, 2].item() == pytest.approx((found[0] - found[1]) / (2 * step), rel=0.05, abs=0.05)


def test_the_values_of_a_class_are_its_descriptors(laguna: StandardizedTransformer) -> None:
    for host in (laguna, *laguna.hosts(1)):
        for name, value in type(host).values().items():
            descriptor = getattr(type(host), name)
            assert isinstance(descriptor, StandardValue)
            assert descriptor.value is value
            assert descriptor.__doc__ == value.description


def test_a_bfloat16_model_is_served_in_bfloat16(plain_twin: Any, prompt: torch.Tensor) -> None:
    model = StandardizedTransformer(copy.deepcopy(plain_twin(LAGUNA)).to(torch.bfloat16))
    with model.trace(prompt):
        heads = model.layers[1].self_attn.attention_head_outputs.save()
        outputs = model.layers[1].mlp.expert_outputs.save()
        clean = model.logits.save()
    assert heads.dtype == outputs.dtype == torch.bfloat16
    with model.trace(prompt):
        model.layers[1].mlp.expert_outputs = model.layers[1].mlp.expert_outputs.clone()
        written = model.logits.save()
    assert torch.equal(clean, written)


def test_a_written_layer_mid_is_what_the_mlp_reads_and_not_the_stream(
    laguna: StandardizedTransformer, prompt: torch.Tensor
) -> None:
    """The stream runs past the norm that ``layer_mid`` is read in front of; the tensor itself is shared with it."""
    block = laguna.layers[1]
    with laguna.trace(prompt):
        stream = block.layer_mid.clone().save()
    with laguna.trace(prompt):
        block.layer_mid = block.layer_mid * 2
        contribution = block.mlp.mlp_output.save()
        assigned = block.layer_output.save()
    torch.testing.assert_close(assigned, stream + contribution)
    with laguna.trace(prompt):
        block.layer_mid[...] *= 2
        contribution = block.mlp.mlp_output.save()
        in_place = block.layer_output.save()
    torch.testing.assert_close(in_place, 2 * stream + contribution)
