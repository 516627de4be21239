"""What is particular to Mistral: a window in the mask of every block, and heads narrower than the stream."""

from __future__ import annotations

import pytest
import torch

from encyclopedia.capture.parameters import count_parameters
from encyclopedia.checkpoints import read_family, recorded
from encyclopedia.families import Family, family
from encyclopedia.instantiate import build_without_weights
from encyclopedia.structure.derive import structure_of

SHOWN = [record.id for record in read_family("mistral")[0]]
WINDOWED, PLAIN, NEMO = SHOWN


def test_the_notes_run(run_notes):
    for snippet in run_notes("mistral"):
        assert snippet.ran_on or snippet.reason.startswith("it "), f"line {snippet.line}"


def test_nothing_is_declared():
    declared = family("mistral")
    assert declared == Family("mistral", declared.title, declared.subtitle, declared.hue)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_parameters_agree_with_the_published_count(checkpoint):
    record = recorded(checkpoint)
    full = build_without_weights(record)
    counted = count_parameters(full, structure_of(full), family("mistral"))
    assert counted.total == counted.active == record.published_parameters.total


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_every_block_has_the_same_window_or_none(small, prompt, checkpoint):
    model = small(checkpoint)
    ids = prompt(model)
    seq = ids.shape[1]
    window = model.config.sliding_window
    assert (window is not None) == (checkpoint == WINDOWED)
    age = torch.arange(seq)[:, None] - torch.arange(seq)
    seen = (age >= 0) & (age < (window or seq))
    for block in model.layers:
        with model.trace(ids):
            pattern = block.self_attn.attention_probabilities.save()
        assert torch.equal(pattern > 0, seen.expand_as(pattern))


def test_the_window_is_what_the_mask_says_to_a_plain_hook(small, prompt):
    module = small(WINDOWED)._module
    masks = []
    handles = [block.self_attn.register_forward_hook(
        lambda _, args, keywords, output: masks.append(keywords["attention_mask"]), with_kwargs=True)
        for block in module.model.layers]
    try:
        module(prompt(small(WINDOWED)))
    finally:
        for handle in handles:
            handle.remove()
    assert len(masks) == len(module.model.layers)
    assert all(torch.equal(mask, masks[0]) for mask in masks)
    assert int((masks[0][0, 0, -1] == 0).sum()) == module.config.sliding_window


def test_influence_reaches_one_window_less_one_further_with_each_block(small, prompt):
    model = small(WINDOWED)
    ids = prompt(model)
    changed = ids.clone()
    changed[0, 0] = changed[0, 0] + 1
    step = model.config.sliding_window - 1
    for depth, block in enumerate(model.layers, start=1):
        with model.trace(ids):
            before = block.layer_output.save()
        with model.trace(changed):
            after = block.layer_output.save()
        moved = (before != after).any(-1)[0]
        assert int(moved.nonzero().max()) == min(depth * step, ids.shape[1] - 1)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_heads_side_by_side_are_narrower_than_the_stream_on_nemo(checkpoint):
    full = build_without_weights(recorded(checkpoint))
    sizes = structure_of(full).kinds[0].sizes
    premix, stream = sizes["num_heads"] * sizes["head_dim"], sizes["hidden_size"]
    assert full.model.layers[0].self_attn.o_proj.weight.shape == (stream, premix)
    assert (premix < stream) == (checkpoint == NEMO)


def test_sdpa_computes_the_same_window(small, prompt):
    eager, default = small(WINDOWED), small(WINDOWED, attn_implementation="sdpa")
    ids = prompt(eager)
    torch.testing.assert_close(default._module(ids).logits, eager._module(ids).logits, rtol=1e-4, atol=1e-4)
    assert "eager" in default.layers[0].self_attn.unavailable("attention_scores")
