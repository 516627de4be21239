"""The stack: the container, embedding, blocks, final norm and head of a causal model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn
from transformers import PreTrainedModel


class UnknownStructure(Exception):
    """A part of the model that the standard names need was not found."""


@dataclass(frozen=True)
class Stack:
    """Where the model's standard parts are, as native paths from the causal model.

    Attributes:
        container: the module around the blocks.
        embed_tokens: the embedding table.
        layers: the list of blocks.
        norm: the final norm, which a run shows; ``None`` where there is none.
        lm_head: the head.
    """

    container: str
    embed_tokens: str
    layers: str
    norm: str | None
    lm_head: str


def find_stack(model: PreTrainedModel) -> Stack:
    """The model's container, embedding, blocks and head; the final norm is left to a run.

    Raises:
        UnknownStructure: naming the part that was not found.
    """
    paths = {id(module): path for path, module in model.named_modules()}

    def path_of(part: str, module: nn.Module | None) -> str:
        if module is None or id(module) not in paths:
            raise UnknownStructure(
                f"{type(model).__name__}: no {part} was found, so the standard names have nothing to stand on")
        return paths[id(module)]

    embed_tokens = path_of("embedding", model.get_input_embeddings())
    stacks = [path for path, module in model.named_modules() if isinstance(module, nn.ModuleList) and _is_stack(module)]
    outermost = [path for path in stacks if not any(path.startswith(f"{other}.") for other in stacks)]
    beside = [path for path in outermost if path.rpartition(".")[0] == embed_tokens.rpartition(".")[0]]
    if len(outermost) > 1 and len(beside) == 1:
        outermost = beside
    if len(outermost) != 1:
        found = f"several lists of blocks ({', '.join(outermost)})" if outermost else "no list of blocks"
        raise UnknownStructure(f"{type(model).__name__}: {found}; the standard names stand on one")
    return Stack(
        container=outermost[0].rpartition(".")[0],
        embed_tokens=embed_tokens,
        layers=outermost[0],
        norm=None,
        lm_head=path_of("head", model.get_output_embeddings()),
    )


def model_key(model: PreTrainedModel) -> tuple[type, str]:
    """What a model's structure follows from: its class and its config."""
    return type(model), json.dumps(model.config.to_dict(), sort_keys=True, default=str)


def _is_stack(blocks: nn.ModuleList) -> bool:
    """Whether a list holds blocks: modules with children that are no list of plain layers."""
    return len(blocks) > 0 and all(
        len(list(block.children())) > 1 and not isinstance(block, nn.ModuleList | nn.Sequential) for block in blocks)


def is_norm(module: nn.Module) -> bool:
    """Whether ``module`` is a normalisation layer, by its class's name."""
    return "norm" in type(module).__name__.lower()


def blocks_of(model: nn.Module, stack: Stack) -> Iterator[nn.Module]:
    """The blocks of ``model`` in order."""
    yield from model.get_submodule(stack.layers).children()


def without_weights(module: nn.Module) -> bool:
    """Whether every parameter of ``module`` is on the meta device, so that it cannot compute.

    A model that keeps part of its weights elsewhere until they are needed has some of them there too, and computes.
    """
    return all(parameter.device == torch.device("meta") for parameter in module.parameters())
