"""Parameters by role add up to the model's own."""

from __future__ import annotations

from functools import cache

import pytest
from transformers import PreTrainedModel

from encyclopedia.capture.parameters import count_parameters, parameters_by_role
from encyclopedia.checkpoints import recorded
from encyclopedia.facts import RoleParameters
from encyclopedia.families import family
from encyclopedia.instantiate import build_without_weights
from encyclopedia.structure.derive import structure_of

CHECKPOINTS = [
    "meta-llama/Llama-3.1-8B", "HuggingFaceTB/SmolLM2-135M-Instruct", "openai-community/gpt2", "facebook/opt-350m",
    "EleutherAI/gpt-j-6b", "CohereLabs/c4ai-command-r-v01", "google/gemma-3-1b-pt", "mistralai/Mixtral-8x7B-v0.1",
    "Qwen/Qwen1.5-MoE-A2.7B-Chat", "deepseek-ai/DeepSeek-V3", "openai/gpt-oss-20b", "state-spaces/mamba-130m-hf",
    "Qwen/Qwen3-Next-80B-A3B-Instruct", "ai21labs/Jamba-v0.1", "Zyphra/Zamba2-7B", "SmallDoge/Doge-40M-MoE",
]


def by_role(roles: list[RoleParameters]) -> dict[str, int]:
    return {role.role: role.total for role in roles}


@cache
def built(checkpoint: str) -> PreTrainedModel:
    model = build_without_weights(recorded(checkpoint), attn_implementation="eager")
    assert isinstance(model, PreTrainedModel)
    return model


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
def test_the_roles_sum_to_the_parameters_of_the_model(checkpoint: str) -> None:
    """``parameters()`` gives a tensor once wherever it stands, so what is tied or shared must not count twice."""
    full = built(checkpoint)
    structure = structure_of(full)
    declared = family(full.config.model_type).on(full.config)
    counts = count_parameters(full, structure, declared)
    roles = [role for kind in structure.kinds for role in parameters_by_role(full, structure, kind, declared) * len(
        kind.blocks)]
    assert counts.total == sum(parameter.numel() for parameter in full.parameters())
    assert sum(role.total for role in [*roles, *counts.outside]) == counts.total
    assert sum(role.active for role in [*roles, *counts.outside]) == counts.active


def test_the_roles_of_a_dense_block_are_the_widths_multiplied() -> None:
    full = built("meta-llama/Llama-3.1-8B")
    structure = structure_of(full)
    roles = by_role(parameters_by_role(full, structure, structure.kinds[0], family("llama")))
    assert roles == {"attention": 4096 * 4096 * 2 + 4096 * 1024 * 2, "mlp": 3 * 4096 * 14336, "norm": 2 * 4096}
    outside = by_role(count_parameters(full, structure, family("llama")).outside)
    assert outside == {"embedding": 128256 * 4096, "norm": 4096, "head": 128256 * 4096}


def test_a_tied_head_counts_as_the_embedding() -> None:
    full = built("openai-community/gpt2")
    outside = by_role(count_parameters(full, structure_of(full), family("gpt2")).outside)
    assert outside == {"embedding": (50257 + 1024) * 768, "norm": 2 * 768}


def test_a_mixture_is_told_apart_into_router_experts_and_shared_expert() -> None:
    full = built("Qwen/Qwen1.5-MoE-A2.7B-Chat")
    structure = structure_of(full)
    roles = {role.role: role for role in parameters_by_role(full, structure, structure.kinds[0], family("qwen2_moe"))}
    assert roles["router"].total == 60 * 2048
    assert (roles["experts"].total, roles["experts"].active) == (60 * 3 * 2048 * 1408, 4 * 3 * 2048 * 1408)
    # The shared expert, and the gate of one number per token that weighs it.
    assert roles["shared"].total == 3 * 2048 * 5632 + 2048


def test_layers_that_stand_loose_in_a_block_are_its_mlp() -> None:
    full = built("facebook/opt-350m")
    structure = structure_of(full)
    roles = by_role(parameters_by_role(full, structure, structure.kinds[0], family("opt")))
    assert roles["mlp"] == 2 * 1024 * 4096 + 1024 + 4096


def test_what_blocks_share_stands_outside_of_them() -> None:
    full = built("Zyphra/Zamba2-7B")
    structure = structure_of(full)
    outside = by_role(count_parameters(full, structure, family("zamba2")).outside)
    assert outside["other"] > 0
    inside = sum(role.total * len(kind.blocks) for kind in structure.kinds
                 for role in parameters_by_role(full, structure, kind, family("zamba2")))
    # With what is shared counted in each block there would be more than the model has.
    assert inside + sum(outside.values()) < sum(
        len(kind.blocks) * sum(parameter.numel() for parameter in kind.block.parameters()) for kind in structure.kinds)
