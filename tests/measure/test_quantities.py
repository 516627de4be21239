"""Each quantity on small twins, against what plain forward hooks and the native model give."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from encyclopedia import StandardizedTransformer
from encyclopedia.measure import quantities
from encyclopedia.twin import prompt_for

CHECKPOINTS = ("HuggingFaceTB/SmolLM2-135M-Instruct", "meta-llama/Llama-2-7b-hf", "SmallDoge/Doge-260M",
               "poolside/Laguna-XS-2.1")


@pytest.fixture(params=CHECKPOINTS)
def model(request: pytest.FixtureRequest, small: Callable[[str], StandardizedTransformer]) -> StandardizedTransformer:
    return small(request.param)


@pytest.fixture
def ids(model: StandardizedTransformer) -> torch.Tensor:
    return prompt_for(model._module)


def hooked(model: StandardizedTransformer, ids: torch.Tensor) -> tuple[list[torch.Tensor], torch.Tensor]:
    """What leaves each block ``[seq, hidden_size]``, and the logits ``[seq, vocab_size]``, from the native model."""
    leaving: list[torch.Tensor] = []
    native = model._module
    handles = [
        block.register_forward_hook(lambda module, inputs, output: leaving.append(output.clone()))
        for block in native.model.layers
    ]
    try:
        logits = native(ids).logits
    finally:
        for handle in handles:
            handle.remove()
    return [stream[0] for stream in leaving], logits[0]


def test_first_token_attention(model, ids):
    patterns = model._module(ids, output_attentions=True).attentions
    expected = [sum(pattern[0, head, query, 0].item() for head in range(pattern.shape[1])
                    for query in range(1, ids.shape[1])) / (pattern.shape[1] * (ids.shape[1] - 1))
                for pattern in patterns]
    assert quantities.first_token_attention(model, ids) == pytest.approx(expected, rel=1e-5)


def test_norms_of_the_stream(model, ids):
    leaving, _ = hooked(model, ids)
    norms = [[position.square().sum().sqrt().item() for position in stream] for stream in leaving]
    seq = ids.shape[1]
    assert quantities.residual_norm(model, ids) == pytest.approx([sum(row) / seq for row in norms], rel=1e-5)
    assert quantities.residual_norm_first(model, ids) == pytest.approx([row[0] for row in norms], rel=1e-5)
    assert quantities.residual_norm_rest(model, ids) == pytest.approx(
        [sum(row[1:]) / (seq - 1) for row in norms], rel=1e-5)


def test_largest_channel(model, ids):
    leaving, _ = hooked(model, ids)
    channels, positions = quantities.largest_channel(model, ids), quantities.largest_channel_position(model, ids)
    values, shares = quantities.largest_channel_value(model, ids), quantities.largest_channel_share(model, ids)
    for stream, channel, position, value, share in zip(leaving, channels, positions, values, shares, strict=True):
        assert abs(value) == pytest.approx(stream.abs().max().item(), rel=1e-6)
        assert stream[position, channel].item() == pytest.approx(value, rel=1e-6)
        assert share == pytest.approx(value**2 / sum(entry.item() ** 2 for entry in stream[position]), rel=1e-4)


def test_next_token_probability(model, ids):
    _, logits = hooked(model, ids)
    expected = (logits[-1].double().exp() / logits[-1].double().exp().sum()).max().item()
    assert quantities.next_token_probability(model, ids) == pytest.approx(expected, rel=1e-5)


def test_lens(model, ids):
    leaving, logits = hooked(model, ids)
    native = model._module
    read = [native.lm_head(native.model.norm(stream[-1])) for stream in leaving]
    torch.testing.assert_close(read[-1], logits[-1])
    probabilities = [readout.double().softmax(-1) for readout in read]
    assert quantities.lens_entropy(model, ids) == pytest.approx(
        [-(row * row.log()).sum().item() for row in probabilities], rel=1e-4)
    tops = [readout.argmax().item() for readout in read]
    settles = quantities.lens_settles(model, ids)
    assert set(tops[settles:]) == {tops[-1]}
    assert settles == 0 or tops[settles - 1] != tops[-1]


def test_identity_error(model, ids):
    errors = quantities.identity_error(model, ids)
    assert len(errors) == model.num_layers
    assert max(errors) <= 2e-6


def test_slugs_are_distinct_and_described():
    slugs = [quantity.slug for quantity in quantities.QUANTITIES]
    assert len(set(slugs)) == len(slugs)
    assert all(quantity.description and quantity.unit and quantity.prompt for quantity in quantities.QUANTITIES)
