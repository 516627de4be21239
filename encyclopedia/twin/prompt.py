"""The prompt a twin is run on."""

from __future__ import annotations

import torch
from transformers import PreTrainedModel

#: Length of the prompt a twin is checked on: longer than its windows, and a prime, so that no head count equals it.
PROMPT_LENGTH = 13

#: Prompts in a call that checks a twin; no other axis is as long.
PROMPTS = 5

#: Token ids below this are kept for special tokens.
SPECIAL_TOKENS = 8


def prompt_for(model: PreTrainedModel, *, seed: int = 0, batch: int = 1) -> torch.Tensor:
    """Token ids ``[batch, PROMPT_LENGTH]`` for a twin, clear of its special tokens."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(SPECIAL_TOKENS, model.config.get_text_config().vocab_size, (batch, PROMPT_LENGTH),
                         generator=generator)
