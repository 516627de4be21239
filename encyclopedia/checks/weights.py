"""The same checks on real weights."""

from __future__ import annotations

from typing import Any

import torch

from encyclopedia.checks.run import Checked, check_model
from encyclopedia.families import family
from encyclopedia.weights import WeightsError, load_weights

#: Two prompts of equal length are cut from this text, so that no batch axis can hide.
TEXT = (
    "A residual stream is what every block reads and what every block adds to. An attention moves what one position "
    "holds to another, and an MLP works on each position by itself; whatever they compute comes back as a sum."
)
PROMPT_LENGTH = 16


def check_weights(model_type: str, source: str) -> Checked:
    """Check everything a page of the family claims on the weights at ``source``.

    Args:
        model_type: the family they have to be of.
        source: as :func:`encyclopedia.weights.load_weights` takes it.

    Raises:
        WeightsError: where they cannot be loaded, or are of another family.
        BrokenClaim: for the first claim that does not hold on them.
    """
    module, tokenizer = load_weights(source, attn_implementation="eager", dtype=torch.float32)
    found = module.config.model_type
    if found != model_type:
        raise WeightsError(f"{source}: these weights are of the family {found!r}, not {model_type!r}")
    return check_model(module, family(model_type), two_prompts(tokenizer, module.config.vocab_size),
                       default=lambda: load_weights(source, dtype=torch.float32)[0])


def two_prompts(tokenizer: Any, vocab_size: int) -> torch.Tensor:
    """Token ids ``[2, PROMPT_LENGTH]``, of :data:`TEXT` where there is a tokenizer, else drawn with a fixed seed."""
    if tokenizer is None:
        return torch.randint(vocab_size, (2, PROMPT_LENGTH), generator=torch.Generator().manual_seed(0))
    return torch.tensor(tokenizer(TEXT)["input_ids"][: 2 * PROMPT_LENGTH]).view(2, PROMPT_LENGTH)
