"""Fixtures shared by all tests: small twins of the recorded checkpoints, made once per process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

# A build server tries the same examples every time; a person's machine looks for new ones.
settings.register_profile("same examples", derandomize=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("same examples")

# Several test processes share the machine; a twin is too small to gain from threads.
os.environ.setdefault("OMP_NUM_THREADS", "1")

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from encyclopedia import StandardizedTransformer

DOGE = "SmallDoge/Doge-260M"
LAGUNA = "poolside/Laguna-XS-2.1"

WORDS = ["[PAD]", "[UNK]", "the", "a", "cat", "dog", "tree", "house", "runs", "sees", "finds", "very", "slow", "fast"]


@pytest.fixture(scope="session")
def plain_twin() -> Callable[..., PreTrainedModel]:
    """``plain_twin(id, **load)``: a native twin that nothing has wrapped, a new one per call."""
    from encyclopedia.checkpoints import recorded
    from encyclopedia.twin import twin_of

    def make(checkpoint: str, **load: Any) -> PreTrainedModel:
        return twin_of(recorded(checkpoint), **load)

    return make


@pytest.fixture(scope="session")
def twin(plain_twin: Callable[..., PreTrainedModel]) -> Iterator[Callable[..., StandardizedTransformer]]:
    """``twin(id, **load)``: the standardized twin of a checkpoint, one per id and load."""
    from encyclopedia import StandardizedTransformer

    made: dict[Any, StandardizedTransformer] = {}

    def get(checkpoint: str, **load: Any) -> StandardizedTransformer:
        key = (checkpoint, *sorted(load.items()))
        if key not in made:
            made[key] = StandardizedTransformer(plain_twin(checkpoint, **load))
        return made[key]

    yield get
    made.clear()


@pytest.fixture(scope="session")
def laguna(twin: Callable[..., StandardizedTransformer]) -> StandardizedTransformer:
    """The twin of Laguna-XS-2.1, eager: one dense block and two mixtures, of which the first slides."""
    return twin(LAGUNA)


@pytest.fixture(scope="session")
def doge(twin: Callable[..., StandardizedTransformer]) -> StandardizedTransformer:
    """The twin of Doge-260M, eager."""
    return twin(DOGE)


@pytest.fixture(scope="session")
def prompt(laguna: StandardizedTransformer) -> torch.Tensor:
    """Token ids ``[2, 13]``."""
    from encyclopedia.twin import prompt_for

    return prompt_for(laguna._module, batch=2)


@pytest.fixture(scope="session")
def other_prompt(laguna: StandardizedTransformer) -> torch.Tensor:
    """Token ids ``[1, 13]``, not those of ``prompt``."""
    from encyclopedia.twin import prompt_for

    return prompt_for(laguna._module, batch=1, seed=7)


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer of whole words, with a padding token."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({word: index for index, word in enumerate(WORDS)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]")
