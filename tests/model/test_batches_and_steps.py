"""Several prompts in one trace, and the steps of a generation."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from nnsight.intervention.interleaver import OutOfOrderError

from encyclopedia import StandardizedTransformer

LAGUNA = "poolside/Laguna-XS-2.1"
MIXTURE_VALUES = ["router_logits", "expert_weights", "expert_indices", "expert_outputs", "routed_output",
                  "shared_expert_output", "mlp_output"]


@pytest.fixture(scope="module")
def endless(plain_twin: Any) -> StandardizedTransformer:
    """A twin that never ends a generation on its own."""
    module = plain_twin(LAGUNA)
    module.generation_config.eos_token_id = None
    return StandardizedTransformer(module)


@pytest.mark.parametrize("name", MIXTURE_VALUES)
def test_each_invoke_has_its_own_rows_of_a_flat_value(
    laguna: StandardizedTransformer, prompt: torch.Tensor, other_prompt: torch.Tensor, name: str
) -> None:
    mixture = laguna.layers[1].mlp
    with laguna.trace() as tracer:
        with tracer.invoke(prompt):
            first = getattr(mixture, name).save()
        with tracer.invoke(other_prompt):
            second = getattr(mixture, name).save()
        with tracer.invoke():
            both = getattr(mixture, name).save()
    assert first.shape[:2] == (2, 13)
    assert second.shape[:2] == (1, 13)
    assert torch.equal(torch.cat([first, second]), both)
    with laguna.trace(other_prompt):
        alone = getattr(mixture, name).save()
    torch.testing.assert_close(second, alone, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", ["attention_queries", "attention_scores", "attention_premix"])
def test_each_invoke_has_its_own_rows_of_the_attention(
    laguna: StandardizedTransformer, prompt: torch.Tensor, other_prompt: torch.Tensor, name: str
) -> None:
    attention = laguna.layers[2].self_attn
    with laguna.trace() as tracer:
        with tracer.invoke(prompt):
            first = getattr(attention, name).save()
        with tracer.invoke(other_prompt):
            second = getattr(attention, name).save()
        with tracer.invoke():
            both = getattr(attention, name).save()
    assert torch.equal(torch.cat([first, second]), both)


@pytest.mark.parametrize("assigned", [False, True])
@pytest.mark.parametrize(("host", "name"), [
    ("mlp", "expert_outputs"), ("mlp", "expert_weights"), ("mlp", "routed_output"), ("self_attn", "attention_premix"),
    ("self_attn", "attention_head_outputs"),
])
def test_an_edit_stays_in_its_own_rows(
    laguna: StandardizedTransformer, prompt: torch.Tensor, other_prompt: torch.Tensor, host: str, name: str,
    assigned: bool,
) -> None:
    block = laguna.layers[1]
    with laguna.trace() as tracer:
        with tracer.invoke(prompt):
            clean = block.layer_output.save()
        with tracer.invoke(other_prompt):
            untouched = block.layer_output.save()
    with laguna.trace() as tracer:
        with tracer.invoke(prompt):
            value = getattr(getattr(block, host), name)
            if assigned:
                setattr(getattr(block, host), name, torch.zeros_like(value))
            else:
                value[...] = 0
            edited = block.layer_output.save()
        with tracer.invoke(other_prompt):
            beside = block.layer_output.save()
    # Other tokens on an expert round its matrix product differently.
    torch.testing.assert_close(beside, untouched, atol=1e-5, rtol=1e-5)
    assert (edited - clean).abs().max() > 0.1
    with laguna.trace(prompt):
        setattr(getattr(block, host), name, torch.zeros_like(getattr(getattr(block, host), name)))
        alone = block.layer_output.save()
    torch.testing.assert_close(edited, alone, atol=1e-4, rtol=1e-4)


def test_two_invokes_edit_one_flat_value(
    laguna: StandardizedTransformer, prompt: torch.Tensor, other_prompt: torch.Tensor
) -> None:
    mixture = laguna.layers[1].mlp
    with laguna.trace() as tracer:
        with tracer.invoke(prompt):
            mixture.expert_outputs[...] = 0
            first = mixture.routed_output.save()
        with tracer.invoke(other_prompt):
            mixture.expert_outputs = torch.ones_like(mixture.expert_outputs)
            second = mixture.routed_output.save()
    scale = laguna._module.config.moe_routed_scaling_factor
    assert (first == 0).all()
    torch.testing.assert_close(second, torch.full_like(second, 3 * scale))


def test_single_tokens_keep_their_rows(laguna: StandardizedTransformer, prompt: torch.Tensor) -> None:
    """One position each: tokens flat over the batch are then as many as rows."""
    mixture = laguna.layers[1].mlp
    with laguna.trace() as tracer:
        with tracer.invoke(prompt[:, :1]):
            mixture.expert_outputs[...] = 0
            first = mixture.routed_output.save()
        with tracer.invoke(prompt[:1, 1:2]):
            second = mixture.routed_output.save()
    assert first.shape == (2, 1, 48)
    assert second.shape == (1, 1, 48)
    assert (first == 0).all()
    assert (second != 0).any()


def test_as_many_rows_as_positions_are_not_mistaken(laguna: StandardizedTransformer) -> None:
    token_ids = torch.arange(8, 8 + 144).remainder(90).view(12, 12)
    with laguna.trace() as tracer:
        with tracer.invoke(token_ids[:5]):
            first = laguna.layers[1].mlp.router_logits.save()
        with tracer.invoke(token_ids[5:]):
            second = laguna.layers[1].mlp.router_logits.save()
    with laguna.trace(token_ids):
        both = laguna.layers[1].mlp.router_logits.save()
    assert torch.equal(torch.cat([first, second]), both)


def test_prompts_of_different_length_are_padded_on_the_left(plain_twin: Any, tokenizer: Any) -> None:
    model = StandardizedTransformer(plain_twin(LAGUNA), tokenizer=tokenizer)
    with model.trace() as tracer:
        with tracer.invoke("the cat runs fast"):
            whole = model.attention_mask.save()
        with tracer.invoke("a dog"):
            mask = model.attention_mask.save()
            router_logits = model.layers[1].mlp.router_logits.save()
            probabilities = model.next_token_probs.save()
    with model.trace("a dog"):
        alone = model.layers[1].mlp.router_logits.save()
        expected = model.next_token_probs.save()
    assert whole.tolist() == [[1, 1, 1, 1]]
    assert mask.tolist() == [[0, 0, 1, 1]]
    torch.testing.assert_close(router_logits[:, -2:], alone, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(probabilities, expected, atol=1e-4, rtol=1e-4)


def test_gradients_of_one_invoke(
    laguna: StandardizedTransformer, prompt: torch.Tensor, other_prompt: torch.Tensor
) -> None:
    with laguna.trace(prompt):
        value = laguna.layers[1].mlp.expert_outputs
        loss = laguna.logits.sum()
        with loss.backward():
            alone = value.grad.save()
    with laguna.trace() as tracer:
        with tracer.invoke(prompt):
            value = laguna.layers[1].mlp.expert_outputs
            loss = laguna.logits.sum()
            with loss.backward():
                gradient = value.grad.save()
        with tracer.invoke(other_prompt):
            pass
    torch.testing.assert_close(gradient, alone, atol=1e-3, rtol=1e-3)


def test_every_step_of_a_generation_is_read(endless: StandardizedTransformer, other_prompt: torch.Tensor) -> None:
    block = endless.layers[2]
    with endless.generate(other_prompt, max_new_tokens=4, do_sample=False) as tracer:
        found = [].save()
        predicted = [].save()
        for _ in tracer.iter[:4]:
            found.append((
                tuple(endless.input_size),
                tuple(block.self_attn.attention_scores.shape),
                tuple(block.mlp.router_logits.shape),
                tuple(block.mlp.expert_outputs.shape),
            ))
            predicted.append(endless.next_token_probs.argmax(-1))
        result = tracer.result.save()
    assert found == [
        ((1, 13), (1, 12, 13, 13), (1, 13, 36), (1, 13, 3, 48)),
        ((1, 1), (1, 12, 1, 14), (1, 1, 36), (1, 1, 3, 48)),
        ((1, 1), (1, 12, 1, 15), (1, 1, 36), (1, 1, 3, 48)),
        ((1, 1), (1, 12, 1, 16), (1, 1, 36), (1, 1, 3, 48)),
    ]
    assert result[0, 13:].tolist() == torch.cat(predicted).tolist()


@pytest.mark.parametrize("first", [1, 2, 3])
def test_a_generation_may_be_read_from_a_later_step(
    endless: StandardizedTransformer, other_prompt: torch.Tensor, first: int
) -> None:
    """A function inside the forward is entered in step ``first``; each step is served its own scores."""
    attention = endless.layers[2].self_attn
    with endless.generate(other_prompt, max_new_tokens=5, do_sample=False) as tracer:
        keys = [].save()
        for _ in tracer.iter[first:5]:
            scores = attention.attention_scores
            probabilities = attention.attention_probabilities
            assert torch.allclose(scores.softmax(-1), probabilities)
            keys.append(scores.shape[-1])
    assert keys == [13 + step for step in range(first, 5)]


def test_another_invoke_may_enter_earlier(endless: StandardizedTransformer, other_prompt: torch.Tensor) -> None:
    attention = endless.layers[2].self_attn
    with endless.generate(max_new_tokens=4, do_sample=False) as tracer:
        with tracer.invoke(other_prompt):
            late = [].save()
            for _ in tracer.iter[2:4]:
                late.append(attention.attention_scores.shape[-1])
        with tracer.invoke(other_prompt):
            early = [].save()
            for _ in tracer.iter[:4]:
                early.append(attention.attention_scores.shape[-1])
    assert late == [15, 16]
    assert early == [13, 14, 15, 16]


@pytest.mark.parametrize("name", ["attention_queries", "attention_scores", "attention_premix"])
def test_asked_for_too_late_in_a_step_is_an_error(
    endless: StandardizedTransformer, other_prompt: torch.Tensor, name: str
) -> None:
    """And not the next step's value."""
    block = endless.layers[1]


    def read_backwards() -> None:
        with endless.generate(other_prompt, max_new_tokens=3, do_sample=False):
            block.mlp.router_logits.save()
            getattr(block.self_attn, name).save()

    with pytest.raises(OutOfOrderError):
        read_backwards()


def test_one_step_of_a_generation_is_edited(endless: StandardizedTransformer, other_prompt: torch.Tensor) -> None:
    block = endless.layers[1]
    with endless.generate(other_prompt, max_new_tokens=4, do_sample=False) as tracer:
        outputs = [].save()
        for step in tracer.iter[:4]:
            if step == 2:
                block.self_attn.attention_premix[...] = 0
                block.mlp.expert_outputs[...] = 0
            output = block.mlp.routed_output if step == 2 else block.self_attn.attention_output
            outputs.append(output.abs().max().item())
    assert [value == 0 for value in outputs] == [False, False, True, False]


def test_rows_are_kept_apart_in_a_generation(
    endless: StandardizedTransformer, prompt: torch.Tensor, other_prompt: torch.Tensor
) -> None:
    mixture = endless.layers[1].mlp
    with endless.generate(max_new_tokens=3, do_sample=False) as tracer:
        with tracer.invoke(prompt):
            first = [].save()
            for _ in tracer.iter[:3]:
                mixture.expert_weights[...] = 0
                first.append(mixture.routed_output)
        with tracer.invoke(other_prompt):
            second = [].save()
            for _ in tracer.iter[:3]:
                second.append(mixture.routed_output)
    assert [tuple(value.shape[:2]) for value in first] == [(2, 13), (2, 1), (2, 1)]
    assert [tuple(value.shape[:2]) for value in second] == [(1, 13), (1, 1), (1, 1)]
    assert all((value == 0).all() for value in first)
    assert all((value != 0).any() for value in second)


def test_input_ids_of_a_step_are_the_new_token(endless: StandardizedTransformer, other_prompt: torch.Tensor) -> None:
    with endless.generate(other_prompt, max_new_tokens=3, do_sample=False) as tracer:
        read = [].save()
        for _ in tracer.iter[:3]:
            read.append(endless.input_ids.clone())
        result = tracer.result.save()
    assert torch.equal(read[0], other_prompt)
    assert torch.cat(read, dim=1).tolist() == result[:, :-1].tolist()
