"""The cache's bytes against caches that real forwards fill, and against what is known of well-known models."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, DynamicCache, PreTrainedModel

from encyclopedia.capture.costs.cache import bytes_of, laws, layers_of
from encyclopedia.capture.costs.products import Counted
from encyclopedia.capture.costs.running import Ran, run, whole
from encyclopedia.capture.costs.total import SHORT, measure_cache
from encyclopedia.checkpoints import recorded
from encyclopedia.facts import CacheCosts, CacheEntry, Costs
from encyclopedia.instantiate import build_without_weights
from encyclopedia.structure.derive import structure_of
from encyclopedia.twin import cut_model

#: Without windows, so that a twin's short texts do not leave one.
WITHOUT_WINDOWS = [
    "meta-llama/Llama-3.1-8B", "openai-community/gpt2", "EleutherAI/gpt-j-6b", "facebook/opt-125m",
    "tiiuae/falcon-7b", "bigscience/bloom-560m", "mistralai/Mixtral-8x7B-v0.1", "moonshotai/Moonlight-16B-A3B",
    "state-spaces/mamba-130m-hf", "AntonV/mamba2-130m-hf", "Qwen/Qwen3-Next-80B-A3B-Instruct", "ai21labs/Jamba-v0.1",
    "LiquidAI/LFM2-350M", "tiiuae/Falcon-H1-0.5B-Instruct", "SmallDoge/Doge-20M",
]


def kept(entries: list[CacheEntry], length: int) -> int:
    """The bytes of a cache after ``length`` tokens, by the law that its facts are told in."""
    return sum(entry.blocks * (entry.bytes_fixed + entry.bytes_per_token * (
        length if entry.window is None else min(length, entry.window))) for entry in entries)


def held(cache: DynamicCache) -> int:
    """The bytes of a cache, by the names that its layers have for what they keep."""
    total = 0
    for layer in cache.layers:
        tensors = [getattr(layer, "keys", None), getattr(layer, "values", None)]
        for name in ("conv_states", "recurrent_states"):
            tensors += getattr(layer, name, {}).values()
        total += sum(tensor.numel() * tensor.element_size() for tensor in tensors if tensor is not None)
    return total


def filled(model: PreTrainedModel, length: int) -> int:
    """The bytes that a real forward leaves in a cache it is given, and a step from it in the same cache."""
    cache = DynamicCache(config=model.config)
    ids = torch.randint(8, model.config.vocab_size, (1, length))
    with torch.no_grad():
        model.base_model(input_ids=ids[:, :-1], cache=cache, use_cache=True)
        model.base_model(input_ids=ids[:, -1:], cache=cache, use_cache=True)
    return held(cache)


@pytest.mark.parametrize("checkpoint", WITHOUT_WINDOWS)
def test_a_twin_fills_its_cache_as_measured(checkpoint: str, plain_twin: Callable[..., PreTrainedModel]) -> None:
    twin = plain_twin(checkpoint)
    structure = structure_of(twin)
    twin.to(torch.bfloat16)
    with torch.device("meta"):
        bare: Any = AutoModelForCausalLM.from_config(twin.config, attn_implementation="eager").eval()
    subject = whole(bare, structure)
    found, reason, _ = measure_cache(subject, structure, run(subject, SHORT))
    assert found is not None
    assert reason is None
    for length in (5, 21):
        assert filled(twin, length) == kept(found.kept, length)


def test_a_window_is_as_long_as_a_real_forward_makes_it(costs: Callable[[str], Costs]) -> None:
    """At full width, past Gemma 3's window of 512, which with the next token leaves 511 to keep."""
    full: Any = build_without_weights(recorded("google/gemma-3-270m"), attn_implementation="eager")
    found = cut_model(full)
    assert found is not None
    cut, places = found
    cut.to_empty(device="cpu")
    structure = structure_of(full)
    cache = cache_of(costs("google/gemma-3-270m"))
    stood_for = [entry.model_copy(update={"blocks": 1}) for entry in cache.kept]
    assert [kind.blocks[0] for kind in structure.kinds] == list(places)
    for length in (300, 700):
        assert filled(cut, length) == kept(stood_for, length)
    assert {(entry.window, entry.blocks) for entry in cache.kept} == {(511, 15), (None, 3)}


def cache_of(costs: Costs) -> CacheCosts:
    assert costs.cache is not None
    return costs.cache


def test_the_cache_of_llama_is_128_kib_a_token(costs: Callable[[str], Costs]) -> None:
    found = cache_of(costs("meta-llama/Llama-3.1-8B"))
    assert found.per_token.amount == 128 * 1024
    assert found.per_token.formula == "32 blocks * (keys 8 * 128 * 2 bytes + values 8 * 128 * 2 bytes)"
    assert found.needed == found.kept
    assert found.saving is None


def test_the_cache_of_a_latent_attention_is_its_latent(costs: Callable[[str], Costs]) -> None:
    found = cache_of(costs("deepseek-ai/DeepSeek-V3"))
    assert kept(found.needed, 1) == 576 * 61 * 2
    assert found.needed == found.kept
    assert "from their latents again" in costs("deepseek-ai/DeepSeek-V3").flops_per_token_of_context.formula


def test_the_cache_of_mistral_stops_at_its_window(costs: Callable[[str], Costs]) -> None:
    found = cache_of(costs("mistralai/Mistral-7B-v0.1"))
    assert {entry.window for entry in found.kept} == {4095}
    assert kept(found.kept, 10_000) == 4095 * 128 * 1024


def test_the_states_of_mamba_2_do_not_grow(costs: Callable[[str], Costs]) -> None:
    found = cache_of(costs("AntonV/mamba2-130m-hf"))
    sizes = {entry.name: entry.bytes_fixed for entry in found.kept}
    assert sizes == {"conv_states": 2 * (1536 + 2 * 128) * 4, "recurrent_states": 4 * 24 * 64 * 128}
    assert {entry.name: entry.dtype for entry in found.kept} == {
        "conv_states": "bfloat16", "recurrent_states": "float32"}
    assert found.per_token.amount == 0


def test_one_block_in_six_of_gemma_3_keeps_everything(costs: Callable[[str], Costs]) -> None:
    found = cache_of(costs("google/gemma-3-12b-pt"))
    assert {(entry.blocks, entry.window) for entry in found.kept} == {(40, 1023), (8, None)}


def ran(length: int, **tokens: int) -> Ran:
    """A forward whose cache has one layer, which keeps so many rows of 4 elements under each name."""
    layer = SimpleNamespace(**{name: torch.empty(1, rows, 4, device="meta", dtype=torch.bfloat16)
                               for name, rows in tokens.items()})
    return Ran(length, SimpleNamespace(cache=SimpleNamespace(layers=[layer])), Counted())


def test_a_law_tells_windows_states_and_entries_for_several_tokens() -> None:
    """A window of 100 keeps 99; a buffer is drained every 64 tokens, each time into one entry."""
    runs = [ran(length, keys=min(length, 99), everything=length, state=3, buffer=length % 64, entries=length // 64)
            for length in (8, 16, 1023, 2047)]
    found = laws(runs[:2], runs[2:])[0]
    assert {name: (kept.per_token, kept.fixed, kept.window, kept.late) for name, kept in found.items()} == {
        "keys": (8, 0, 99, False), "everything": (8, 0, None, False), "state": (0, 24, None, False),
        "buffer": (8, 0, 63, False), "entries": (Fraction(8, 64), 0, None, True)}


def test_a_cache_that_is_kept_twice_counts_once() -> None:
    shared = torch.empty(1, 2, 5, 4, device="meta", dtype=torch.bfloat16)
    cache = SimpleNamespace(layers=[SimpleNamespace(keys=shared, values=shared, _window=shared)], linear=[[], shared])
    assert layers_of(cache) == {0: {"keys": shared}, 1: {}}
    assert bytes_of(shared) == 2 * 40
