"""Each quirk is found in a family that carries it and not in one that does not."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import torch
from transformers import CONFIG_MAPPING, AutoModelForCausalLM

from encyclopedia.capture.quirks import DETECTORS, Evidence, find_quirks
from encyclopedia.families import Family, family, model_types
from encyclopedia.native import record
from encyclopedia.quirks import QUIRKS
from encyclopedia.structure.derive import structure_of
from encyclopedia.twin import PROMPTS, prompt_for, twin_of_model


@dataclass(frozen=True)
class Model:
    """A family's default config with some entries changed."""

    model_type: str
    changed: tuple[tuple[str, Any], ...] = ()

    @property
    def entries(self) -> dict[str, Any]:
        """The changed entries, as a config takes them."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in self.changed}

    def __str__(self) -> str:
        return "-".join([self.model_type, *(key for key, _ in self.changed)])


def model(model_type: str, **changed: Any) -> Model:
    hashable = {key: tuple(value) if isinstance(value, list) else value for key, value in changed.items()}
    return Model(model_type, tuple(hashable.items()))


GRANITE = model("granite", residual_multiplier=0.22, embedding_multiplier=12.0, logits_scaling=8.0,
                attention_multiplier=0.0078125)

#: By quirk: who carries it, and who does not.
EXAMPLES: dict[str, tuple[list[Model], list[Model]]] = {
    "per-block-sizes": ([model("mimo_v2_flash")],
                        [model("llama"), model("gemma2"), model("bamba", attn_layer_indices=[2, 5])]),
    "gated-stream": ([model("doge"), model("gemma4_text")], [model("llama"), GRANITE]),
    "scaled-contributions": ([GRANITE, model("minicpm3")], [model("granite"), model("doge")]),
    "normalised-stream": ([model("openai-gpt"), model("minimax")], [model("gpt2"), model("falcon_h1")]),
    "parallel-streams": ([model("gemma3n_text"), model("deepseek_v4")], [model("gemma3_text")]),
    "parallel-sublayers": ([model("cohere"), model("falcon"), model("gpt_neox")],
                           [model("llama"), model("olmo2"), model("gpt_neox", use_parallel_residual=False)]),
    "single-sublayer": ([model("mamba"), model("nemotron_h")], [model("llama"), model("openai-gpt")]),
    "looped-blocks": ([model("inkling2_loop_text")], [model("llama")]),
    "uncalled-modules": ([model("whisper")], [model("opt"), model("llama")]),
    "post-norms": ([model("olmo2")], [model("olmo"), model("gemma2")]),
    "sandwich-norms": ([model("gemma2"), model("gemma3n_text")], [model("gemma"), model("olmo2"), model("bloom")]),
    "layer-norm": ([model("gpt2"), model("cohere"), model("olmo")], [model("llama"), model("gemma")]),
    "plus-one-gain": ([model("gemma"), model("qwen3_next")], [model("llama"), model("qwen3"), model("gpt2")]),
    "weightless-norms": ([model("olmo"), model("nanochat")], [model("olmo2"), model("gpt2")]),
    "inner-norms": ([model("bitnet")], [model("llama"), model("qwen3")]),
    "query-key-norms": ([model("qwen3"), model("olmo2"), model("llama4_text")],
                        [model("llama"), model("deepseek_v3"), model("bitnet")]),
    "output-gate": ([model("qwen3_next"), model("laguna")], [model("qwen3"), model("bitnet"), model("diffllama")]),
    "sliding-window": ([model("gemma2"), model("gpt_oss"), model("gpt_neo")],
                       [model("llama"), model("llama4_text"), model("mistral", sliding_window=None)]),
    "chunked-window": ([model("llama4_text")], [model("gemma2")]),
    "sparse-attention": ([model("deepseek_v32")], [model("deepseek_v3"), model("gemma2"), model("gemma4_text")]),
    "bidirectional": ([model("bert-generation")], [model("gpt2"), model("bert-generation", is_decoder=True)]),
    "attention-sinks": ([model("gpt_oss"), model("mimo_v2_flash")], [model("llama"), model("qwen3_next")]),
    "attention-softcap": ([model("gemma2")], [model("gemma"), model("gemma2", attn_logit_softcapping=None)]),
    "attention-scale": ([GRANITE, model("gemma2", query_pre_attn_scalar=144)], [model("gemma2"), model("llama")]),
    "partial-rotary": ([model("phi"), model("deepseek_v3"), model("qwen3_next")],
                       [model("llama"), model("gpt2"), model("apertus")]),
    "interleaved-rotary": ([model("gptj"), model("cohere"), model("glm")], [model("llama"), model("phi")]),
    "rotary-free-blocks": ([model("llama4_text"), model("smollm3"), model("cohere2")],
                           [model("llama"), model("gpt2"), model("gemma2")]),
    "no-rotary": ([model("gpt2"), model("bloom"), model("nemotron_h")], [model("llama"), model("llama4_text")]),
    "position-bias": ([model("bloom")], [model("gpt2"), model("llama"), model("gpt_neo")]),
    "position-embeddings": ([model("gpt2"), model("opt"), model("xglm"), model("bert-generation")],
                            [model("llama"), model("bloom"), model("gemma")]),
    "mixture-of-experts": ([model("mixtral"), model("deepseek_v3"), model("doge", is_moe=True)],
                           [model("mistral"), model("doge")]),
    "dense-first-blocks": ([model("deepseek_v3"), model("laguna")], [model("mixtral"), model("jamba"), model("llama")]),
    "interleaved-mixtures": ([model("jamba")], [model("deepseek_v3"), model("mixtral")]),
    "shared-expert": ([model("deepseek_v3"), model("qwen2_moe"), model("llama4_text")], [model("mixtral")]),
    "sigmoid-routing": ([model("deepseek_v3"), model("llama4_text"), model("inkling_text")],
                        [model("mixtral"), model("qwen2_moe")]),
    "selection-bias": ([model("deepseek_v3"), model("ernie4_5_moe")], [model("mixtral"), model("gpt_oss")]),
    "group-limited-routing": ([model("deepseek_v3")],
                              [model("deepseek_v3", n_group=1, topk_group=1), model("mixtral")]),
    "scaled-routing": ([model("deepseek_v3")], [model("mixtral"), model("qwen2_moe"), model("glm4_moe")]),
    "unnormalised-routing": ([model("olmoe"), model("qwen2_moe")],
                             [model("mixtral"), model("deepseek_v3"), model("qwen2_moe", norm_topk_prob=True)]),
    "multi-query-attention": ([model("falcon"), model("gpt_bigcode")], [model("llama"), model("mistral")]),
    "grouped-query-attention": ([model("mistral"), model("qwen3_next")], [model("llama"), model("falcon")]),
    "unequal-head-widths": ([model("deepseek_v3")], [model("llama"), model("mamba")]),
    "latent-attention": ([model("deepseek_v3"), model("minicpm3")], [model("llama"), model("mistral"), model("phi3")]),
    "shared-keys": ([model("gemma3n_text")], [model("gemma3_text")]),
    "hybrid": ([model("qwen3_next"), model("jamba"), model("recurrent_gemma"), model("zamba")],
               [model("mamba"), model("llama"), model("falcon_h1")]),
    "two-mixers": ([model("falcon_h1"), model("zamba")],
                   [model("jamba"), model("llama"), model("doge", is_moe=True)]),
    "attention-free": ([model("mamba"), model("rwkv"), model("xlstm")], [model("jamba"), model("llama"), GRANITE]),
    "delta-rule": ([model("qwen3_next"), model("kimi_linear")], [model("mamba2"), model("llama")]),
    "state-space": ([model("mamba"), model("mamba2"), model("jamba")], [model("qwen3_next"), model("rwkv")]),
    "short-convolution": ([model("mamba"), model("qwen3_next"), model("recurrent_gemma")],
                          [model("gpt2"), model("rwkv")]),
    "ungated-mlp": ([model("gpt2"), model("phi"), model("opt")], [model("llama"), model("gemma")]),
    "silent-neurons": ([model("opt"), model("bitnet")], [model("gpt2"), model("llama")]),
    "loose-mlp": ([model("opt"), model("xglm")], [model("gpt2"), model("llama")]),
    "biased-projections": ([model("gpt2"), model("qwen2"), model("gpt_oss"), model("llama", mlp_bias=True)],
                           [model("llama"), model("qwen3"), model("mamba")]),
    "fused-projections": ([model("gpt2"), model("phi3"), model("falcon"), model("qwen3_next"), model("glm")],
                          [model("llama"), model("mistral"), model("opt")]),
    "shared-blocks": ([model("zamba")], [model("jamba"), model("llama")]),
    "per-layer-embeddings": ([model("gemma3n_text")], [model("gemma3_text"), model("gpt2")]),
    "embedding-scale": ([model("gemma"), model("xglm"), GRANITE], [model("llama"), model("granite"), model("gpt2")]),
    "embedding-norm": ([model("bloom"), model("bert-generation")], [model("gpt2"), model("llama")]),
    "logit-scale": ([model("cohere"), GRANITE, model("minicpm3")], [model("llama"), model("granite"), model("gemma2")]),
    "logit-softcap": ([model("gemma2"), model("recurrent_gemma")], [model("gemma"), model("cohere"), model("llama")]),
    "tied-embeddings": ([model("gpt2"), model("gemma")], [model("llama"), model("gpt2", tie_word_embeddings=False)]),
}

CARRIERS = [(slug, one) for slug, (carriers, _) in EXAMPLES.items() for one in carriers]
OTHERS = [(slug, one) for slug, (_, others) in EXAMPLES.items() for one in others]
MODELS = sorted({one for _, one in (*CARRIERS, *OTHERS)}, key=str)

#: Pairs of quirks that no model has both of, and pairs of which the first needs the second.
EXCLUSIVE = (("no-rotary", "partial-rotary"), ("no-rotary", "rotary-free-blocks"), ("hybrid", "attention-free"),
             ("dense-first-blocks", "interleaved-mixtures"))
NEEDED = (("shared-expert", "mixture-of-experts"), ("sigmoid-routing", "mixture-of-experts"),
          ("group-limited-routing", "mixture-of-experts"), ("unnormalised-routing", "mixture-of-experts"),
          ("position-bias", "no-rotary"))

Carried = Callable[[Model], Evidence]


@pytest.fixture(scope="session")
def evidence() -> Carried:
    """The evidence for a model, derived once."""

    @cache
    def derive(chosen: Model) -> Evidence:
        with torch.device("meta"):
            full = AutoModelForCausalLM.from_config(
                CONFIG_MAPPING[chosen.model_type](**chosen.entries), attn_implementation="eager").eval()
        twin = twin_of_model(full)
        run = record(twin, prompt_for(twin, batch=PROMPTS))
        return Evidence(family(chosen.model_type), structure_of(full), full, twin, run)

    return derive


@pytest.mark.parametrize(("slug", "chosen"), CARRIERS, ids=str)
def test_a_family_that_carries_a_quirk_has_it(slug: str, chosen: Model, evidence: Carried) -> None:
    assert DETECTORS[slug](evidence(chosen))


@pytest.mark.parametrize(("slug", "chosen"), OTHERS, ids=str)
def test_a_family_without_a_quirk_does_not_have_it(slug: str, chosen: Model, evidence: Carried) -> None:
    assert not DETECTORS[slug](evidence(chosen))


def test_every_quirk_has_examples_or_is_declared() -> None:
    declared = {slug for name in model_types() for slug in family(name).quirks}
    assert set(EXAMPLES) == set(DETECTORS)
    # A family may declare one that a measurement misses on it.
    assert set(QUIRKS) == set(DETECTORS) | declared


def test_every_quirk_is_named_in_a_few_words_and_told_in_one_sentence() -> None:
    for quirk in QUIRKS.values():
        assert re.fullmatch(r"[a-z0-9-]+", quirk.slug)
        assert len(quirk.label) <= 24
        assert re.fullmatch(r"[A-Z][^.]*\.", quirk.sentence.replace("0.", "0")), quirk.sentence
    assert len({quirk.label for quirk in QUIRKS.values()}) == len(QUIRKS)


def _found(seen: Evidence) -> list[str]:
    return find_quirks(seen.family, seen.structure, seen.model, seen.twin, seen.run)


def test_a_plain_pre_norm_block_carries_none(evidence: Carried) -> None:
    assert _found(evidence(model("llama"))) == []


def test_quirks_come_in_the_order_of_the_list_with_the_declared_ones(evidence: Carried) -> None:
    found = _found(evidence(model("doge")))
    assert found == [slug for slug in QUIRKS if slug in found]
    assert set(family("doge").quirks) < set(found)


def test_what_is_declared_is_carried(evidence: Carried) -> None:
    seen = evidence(model("llama"))
    declared = Family("llama", title="", subtitle="", hue=0, quirks=("dynamic-mask",))
    assert find_quirks(declared, seen.structure, seen.model, seen.twin, seen.run) == ["dynamic-mask"]


@pytest.mark.parametrize("chosen", MODELS, ids=str)
def test_what_two_quirks_say_of_one_model_agrees(chosen: Model, evidence: Carried) -> None:
    found = set(_found(evidence(chosen)))
    assert not [pair for pair in EXCLUSIVE if set(pair) <= found]
    assert not [(quirk, needed) for quirk, needed in NEEDED if quirk in found and needed not in found]
