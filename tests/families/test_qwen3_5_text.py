"""What is particular to Qwen3.5's text part: the delta rule with its projections apart, and three rotary positions."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from encyclopedia.capture.parameters import count_parameters
from encyclopedia.checkpoints import read_family, recorded
from encyclopedia.checks.claims import BrokenClaim
from encyclopedia.checks.run import check_model
from encyclopedia.families import Declared, family
from encyclopedia.instantiate import build_without_weights
from encyclopedia.structure.derive import structure_of
from encyclopedia.twin import PROMPTS, prompt_for, twin_of

SHOWN = [record.id for record in read_family("qwen3_5_text")[0] if record.reason is None]
SMALLEST = "Qwen/Qwen3.5-0.8B"
LARGER = "Qwen/Qwen3.5-4B"
OWN_KEY_HEADS = {SMALLEST, "Qwen/Qwen3.5-2B"}


def test_the_notes_run(run_notes):
    for snippet in run_notes("qwen3_5_text"):
        assert snippet.ran_on or snippet.reason.startswith("it "), f"line {snippet.line}"


def test_only_words_on_arrows_are_declared():
    declared = family("qwen3_5_text")
    assert not declared.classes
    assert declared.identity is None
    assert declared.arrows


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_kinds_and_parameters_at_full_size(checkpoint):
    record = recorded(checkpoint)
    full = build_without_weights(record)
    structure = structure_of(full)
    delta, attention = structure.kinds
    depth = record.config["num_hidden_layers"]
    assert attention.blocks == tuple(range(3, depth, 4))
    assert len(delta.blocks) + len(attention.blocks) == depth
    counted = count_parameters(full, structure, family("qwen3_5_text"))
    assert counted.total == counted.active
    if record.published_parameters is not None:
        assert counted.total == record.published_parameters.total


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_queries_keys_and_values_follow_one_another_in_the_projection(small, prompt, checkpoint):
    model = small(checkpoint)
    native, seen = model._module.model.layers[0].linear_attn, {}
    hooks = [native.in_proj_qkv.register_forward_hook(lambda module, inputs, output: seen.update(mixed=output)),
             native.norm.register_forward_hook(lambda module, inputs, output: seen.update(heads=inputs[0]))]
    model._module(prompt(model))
    for hook in hooks:
        hook.remove()
    lin = model.layers[0].linear_attn
    with model.trace(prompt(model)):
        queries = lin.attention_queries.save()
        keys = lin.attention_keys.save()
        values = lin.attention_values.save()
        heads = lin.attention_head_outputs.save()
    assert queries.shape[2:] == keys.shape[2:] == (native.num_k_heads, native.head_k_dim)
    assert (queries.shape[2] == values.shape[2]) == (checkpoint in OWN_KEY_HEADS)
    convolved = torch.nn.functional.conv1d(seen["mixed"].mT, native.conv1d.weight, padding=native.conv_kernel_size - 1,
                                           groups=native.conv_dim)[..., : seen["mixed"].shape[1]].mT
    parts = torch.nn.functional.silu(convolved).split([native.key_dim, native.key_dim, native.value_dim], dim=-1)
    for part, value in zip(parts, (queries, keys, values), strict=True):
        torch.testing.assert_close(part, value.flatten(2))
    torch.testing.assert_close(heads.reshape(seen["heads"].shape), seen["heads"])


def test_the_size_of_a_head_is_taken_away_behind_the_recurrence(small, prompt):
    model = small(SMALLEST)
    lin, ids = model.layers[0].linear_attn, prompt(model)
    found = []
    for factor in (1e3, 1e5):  # both far above the norm's epsilon
        with model.trace(ids):
            lin.attention_values = lin.attention_values * factor
            heads = lin.attention_head_outputs.save()
            output = lin.attention_output.save()
        found.append((heads / factor, output))
    torch.testing.assert_close(found[0][0], found[1][0])
    torch.testing.assert_close(found[0][1], found[1][1], rtol=1e-3, atol=1e-3)


def test_a_text_has_one_position_where_an_image_has_three(small, prompt):
    native = small(SMALLEST)._module
    ids = prompt(small(SMALLEST))
    logits = native(ids).logits
    positions = torch.arange(ids.shape[1])[None]
    alike = torch.stack([positions] * 3)
    torch.testing.assert_close(native(ids, position_ids=alike).logits, logits)
    # The pairs that follow the height are slow ones on a twin, so it has to be high.
    taller = torch.stack([positions, 2000 * positions, positions])
    assert not torch.allclose(native(ids, position_ids=taller).logits, logits, atol=1e-2)


def test_without_a_whole_mask_a_second_call_sees_the_wrong_positions(small, prompt):
    model = small(SMALLEST)
    ids = prompt(model)
    with model.trace(ids):
        whole = model.logits.save()
    results = []
    for mask in ({"attention_mask": torch.ones_like(ids)}, {}):
        with model.trace(ids[:, :-2]):
            cache = model.output["cache"].save()
        with model.trace(ids[:, -2:], cache=cache, **mask):
            rest = model.logits.save()
        results.append(torch.allclose(rest, whole[:, -2:], rtol=1e-3, atol=1e-3))
    assert results == [True, False]


@pytest.mark.parametrize(("native", "value", "location"), [
    ("Qwen3_5GatedDeltaNet", "attention_queries", "source.torch_chunk_gated_delta_rule_0.inputs[1]"),
    ("Qwen3_5Attention", "attention_premix", "source.attention_interface_1.output[0]"),
])
def test_a_wrong_place_fails_its_check(monkeypatch, native, value, location):
    wrong = replace(family("qwen3_5_text"), classes={native: Declared(locations={value: location})})
    monkeypatch.setattr("encyclopedia.model.transformer.family", lambda model_type: wrong)
    twin = twin_of(recorded(LARGER))
    with pytest.raises(BrokenClaim, match=value):
        check_model(twin, wrong, prompt_for(twin, batch=PROMPTS), writing=False)
