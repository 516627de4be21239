"""What can be measured on a live model: one function per quantity, for any family.

A function takes the model and token ids ``[1, seq]`` and returns one number per block, ``None`` where a block has not
got the value, or a single number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from encyclopedia.checks.identity import BrokenIdentity, identity_of, measure_identity
from encyclopedia.families import family
from encyclopedia.model.readings import read_all
from encyclopedia.model.transformer import StandardizedTransformer

PerBlock = list[int | float | None]
Measurement = PerBlock | int | float | str

#: Long enough for averages over positions to mean something.
PROMPT = (
    "A tram leaves the harbour at dawn, crosses the old bridge, and climbs past the market to the hill where the "
    "observatory keeps its clocks."
)

#: One whose next token is easily judged.
QUESTION = "The capital of France is"


def first_token_attention(model: StandardizedTransformer, input_ids: torch.Tensor) -> PerBlock:
    """The share of the attention on the first token, mean over the heads and over the queries after the first."""
    patterns = _per_block(model, input_ids, "self_attn", "attention_probabilities")
    return [None if pattern is None else pattern[0, :, 1:, 0].mean().item() for pattern in patterns]


def residual_norm(model: StandardizedTransformer, input_ids: torch.Tensor) -> PerBlock:
    """The stream's norm as it leaves the block, mean over the positions."""
    return [stream.norm(dim=-1).mean().item() for stream in _streams(model, input_ids)]


def residual_norm_first(model: StandardizedTransformer, input_ids: torch.Tensor) -> PerBlock:
    """The stream's norm as it leaves the block, on the first token."""
    return [stream[0].norm().item() for stream in _streams(model, input_ids)]


def residual_norm_rest(model: StandardizedTransformer, input_ids: torch.Tensor) -> PerBlock:
    """The stream's norm as it leaves the block, mean over the positions after the first."""
    return [stream[1:].norm(dim=-1).mean().item() for stream in _streams(model, input_ids)]


def largest_channel(model: StandardizedTransformer, input_ids: torch.Tensor) -> PerBlock:
    """The channel that holds the largest magnitude of the stream as it leaves the block."""
    return [_largest(stream)[1] for stream in _streams(model, input_ids)]


def largest_channel_position(model: StandardizedTransformer, input_ids: torch.Tensor) -> PerBlock:
    """The position of that largest magnitude."""
    return [_largest(stream)[0] for stream in _streams(model, input_ids)]


def largest_channel_value(model: StandardizedTransformer, input_ids: torch.Tensor) -> PerBlock:
    """The entry with that largest magnitude."""
    return [stream[_largest(stream)].item() for stream in _streams(model, input_ids)]


def largest_channel_share(model: StandardizedTransformer, input_ids: torch.Tensor) -> PerBlock:
    """That entry's share of the squared norm at its position."""
    shares: PerBlock = []
    for stream in _streams(model, input_ids):
        position, channel = _largest(stream)
        shares.append((stream[position, channel] ** 2 / stream[position].square().sum()).item())
    return shares


def identity_error(model: StandardizedTransformer, input_ids: torch.Tensor) -> PerBlock:
    """The identity's largest error on the block, over the output's largest magnitude.

    Raises:
        BrokenIdentity: where it does not hold.
    """
    declared = family(model.config.model_type)
    identities = [identity_of(declared, model.structure.kind_of(index)) for index in range(model.num_layers)]
    if None in identities:
        raise BrokenIdentity("none is known for every block")
    return [measure_identity(model, input_ids, str(identity), index) for index, identity in enumerate(identities)]


def next_token(model: StandardizedTransformer, input_ids: torch.Tensor) -> str:
    """The most probable next token's text."""
    return str(model.tokenizer.decode([int(_next_probabilities(model, input_ids).argmax())]))


def next_token_probability(model: StandardizedTransformer, input_ids: torch.Tensor) -> float:
    """The probability of the most probable next token."""
    return _next_probabilities(model, input_ids).max().item()


def lens_settles(model: StandardizedTransformer, input_ids: torch.Tensor) -> int:
    """The first block from which on the lens's top token at the last position is the final one."""
    tops = [int(logits.argmax()) for logits in _lens(model, input_ids)]
    differing = [index for index, top in enumerate(tops) if top != tops[-1]]
    return differing[-1] + 1 if differing else 0


def lens_entropy(model: StandardizedTransformer, input_ids: torch.Tensor) -> PerBlock:
    """The entropy of the lens's distribution at the last position."""
    return [torch.distributions.Categorical(logits=logits).entropy().item() for logits in _lens(model, input_ids)]


@dataclass(frozen=True)
class Quantity:
    """A quantity that can be measured.

    Attributes:
        slug: its name in the data.
        description: what it is, in words that a note's footnote carries.
        unit: unit of its numbers.
        prompt: the text it is measured on.
        measure: the function.
    """

    slug: str
    description: str
    unit: str
    prompt: str
    measure: Callable[[StandardizedTransformer, torch.Tensor], Measurement]


QUANTITIES: tuple[Quantity, ...] = (
    Quantity("first-token-attention",
             "share of the attention on the first token, mean over heads and over the queries after the first",
             "share", PROMPT, first_token_attention),
    Quantity("residual-norm", "norm of the stream leaving the block, mean over positions",
             "norm", PROMPT, residual_norm),
    Quantity("residual-norm-first", "norm of the stream leaving the block, first position",
             "norm", PROMPT, residual_norm_first),
    Quantity("residual-norm-rest", "norm of the stream leaving the block, mean over the positions after the first",
             "norm", PROMPT, residual_norm_rest),
    Quantity("largest-channel", "channel with the largest magnitude of the stream leaving the block",
             "channel", PROMPT, largest_channel),
    Quantity("largest-channel-position", "position of the largest magnitude of the stream leaving the block",
             "position", PROMPT, largest_channel_position),
    Quantity("largest-channel-value", "entry with the largest magnitude of the stream leaving the block",
             "activation", PROMPT, largest_channel_value),
    Quantity("largest-channel-share", "share of the largest entry in the squared norm of the stream at its position",
             "share", PROMPT, largest_channel_share),
    Quantity("identity-error", "largest error of the block's identity, over the output's largest magnitude",
             "relative error", PROMPT, identity_error),
    Quantity("next-token", "most probable next token", "token", QUESTION, next_token),
    Quantity("next-token-probability", "probability of the most probable next token",
             "probability", QUESTION, next_token_probability),
    Quantity("lens-settles", "first block from which on the lens's top token is the final one",
             "block", QUESTION, lens_settles),
    Quantity("lens-entropy", "entropy of the lens's distribution over the next token, after the block",
             "nats", QUESTION, lens_entropy),
)


def _per_block(
    model: StandardizedTransformer, input_ids: torch.Tensor, host: str, name: str
) -> list[torch.Tensor | None]:
    readings = read_all(model, input_ids, _copied, fake=False, names={name})
    found = {reading.layer: reading.result for reading in readings if reading.host == host}
    return [found.get(index) for index in range(model.num_layers)]


def _copied(value: torch.Tensor) -> torch.Tensor:
    return value.detach().clone()


def _streams(model: StandardizedTransformer, input_ids: torch.Tensor) -> list[torch.Tensor]:
    """``[seq, hidden_size]`` per block."""
    return [stream[0] for stream in _per_block(model, input_ids, "layer", "layer_output") if stream is not None]


def _largest(stream: torch.Tensor) -> tuple[int, int]:
    """Position and channel of the largest magnitude in ``stream`` ``[seq, hidden_size]``."""
    position, channel = divmod(int(stream.abs().argmax()), stream.shape[-1])
    return position, channel


def _lens(model: StandardizedTransformer, input_ids: torch.Tensor) -> list[torch.Tensor]:
    """The lens's logits ``[vocab_size]`` at the last position, per block."""
    with torch.no_grad():
        return [model.project_on_vocab(stream[-1]) for stream in _streams(model, input_ids)]


def _next_probabilities(model: StandardizedTransformer, input_ids: torch.Tensor) -> torch.Tensor:
    readings = read_all(model, input_ids, _copied, fake=False, layers=[], names={"next_token_probs"})
    probabilities: Any = readings[0].result
    return probabilities[0]
