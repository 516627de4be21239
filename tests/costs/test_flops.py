"""Operations against PyTorch's own counter, on the whole model at full size.

The costs come from a model cut to one block of each kind, with the routed experts' share computed. The counter here
watches every block, and experts that gather the weights of each token's own experts (``batched_mm``), so that it
counts the active ones and no others. In a forward over ``n`` tokens eager attention multiplies every query by every
key, masked or not, whence ``n * per_token + n * n * per_token_of_context``. Two things it counts are taken off: the
products that make rotary angles out of positions, and convolutions. What a recurrence does in chunks is the same for
all texts that fit into one chunk, and goes away in a difference.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from encyclopedia.checkpoints import recorded
from encyclopedia.facts import Costs
from encyclopedia.instantiate import build_without_weights

LENGTHS = (6, 12)

CHECKPOINTS = [
    "meta-llama/Llama-3.1-8B", "HuggingFaceTB/SmolLM2-135M-Instruct", "openai-community/gpt2", "facebook/opt-350m",
    "EleutherAI/gpt-j-6b", "tiiuae/falcon-7b", "bigscience/bloom-560m", "google/gemma-3-270m", "google/gemma-2-2b",
    "mistralai/Mixtral-8x7B-v0.1", "Qwen/Qwen1.5-MoE-A2.7B-Chat", "moonshotai/Moonlight-16B-A3B", "openai/gpt-oss-20b",
    "AntonV/mamba2-130m-hf", "Qwen/Qwen3.5-0.8B", "ibm-granite/granite-4.0-h-350m", "LiquidAI/LFM2-350M",
    "microsoft/phi-1_5", "SmallDoge/Doge-260M",
]


def counted(model: nn.Module, length: int) -> int:
    """What the counter counts in a forward over ``length`` tokens, without rotary angles and convolutions."""
    ids = torch.zeros(1, length, dtype=torch.long, device="meta")
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        model(input_ids=ids, use_cache=True)
    by_module = counter.get_flop_counts()
    convolutions = sum(number for operation, number in by_module["Global"].items() if "conv" in str(operation))
    rotary = sum(sum(by_module[name].values()) for name in by_module if name.rpartition(".")[2] == "rotary_emb")
    return counter.get_total_flops() - convolutions - rotary


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_the_operations_are_those_that_the_counter_sees(checkpoint: str, costs: Callable[[str], Costs]) -> None:
    found = costs(checkpoint)
    model = build_without_weights(recorded(checkpoint), attn_implementation="eager",
                                  experts_implementation="batched_mm")
    seen = [counted(model, length) for length in LENGTHS]
    linear, quadratic = found.flops_per_token.amount, found.flops_per_token_of_context.amount
    expected = [length * linear + length ** 2 * quadratic for length in LENGTHS]
    assert seen[1] - seen[0] == expected[1] - expected[0]
    if "recurrence" not in found.flops_per_token.formula:
        assert seen == expected


def test_a_scan_that_goes_token_by_token_is_left_out(costs: Callable[[str], Costs]) -> None:
    """Mamba's reference path multiplies each channel's state by the token's output vector, 2 * 1536 * 16 a block."""
    found = costs("state-spaces/mamba-130m-hf")
    model = build_without_weights(recorded("state-spaces/mamba-130m-hf"))
    first, second = (counted(model, length) for length in LENGTHS[:2])
    assert second - first == (LENGTHS[1] - LENGTHS[0]) * (found.flops_per_token.amount + 24 * 2 * 1536 * 16)
    assert "without the recurrence itself and convolutions over positions" in found.flops_per_token.formula


def test_the_operations_of_a_dense_model_are_its_matrices_twice(costs: Callable[[str], Costs]) -> None:
    found = costs("meta-llama/Llama-3.1-8B")
    block = 4096 * 4096 * 2 + 4096 * 1024 * 2 + 3 * 4096 * 14336
    assert found.flops_per_token.amount == 2 * (32 * block + 4096 * 128256)
    assert found.flops_per_token.formula == (
        "2 * (32 blocks * 218,103,808 + 525,336,576 in the head) multiply-adds of matrix products")
    assert found.flops_per_token_of_context.amount == 2 * 32 * 32 * (128 + 128)
    assert found.flops_per_token_of_context.formula == (
        "2 * (32 blocks * 32 heads * (128 + 128)), queries by keys and pattern by values")


def test_a_window_is_said_to_bound_what_is_attended_to(costs: Callable[[str], Costs]) -> None:
    formula = costs("google/gemma-3-270m").flops_per_token_of_context.formula
    assert formula.endswith("; blocks with a window attend to no more than its 512 tokens")


def test_a_model_that_asks_how_long_its_text_is_has_costs_too(costs: Callable[[str], Costs]) -> None:
    """Its rotary frequencies change beyond a length, which without values no tensor tells."""
    found = costs("SmallDoge/Doge-20M")
    assert found.flops_per_token_of_context.amount > 0
    assert found.cache is not None
