"""Forwards of a model without weights, of which nothing but shapes comes: what they multiply and what they keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from encyclopedia.capture.costs.products import BLOCK, EXPERTS, RECURRENT, Counted, WithoutValues, counting
from encyclopedia.capture.stand_in import experts_stood_in_for
from encyclopedia.structure.mixture import find_mixture
from encyclopedia.structure.parts import Kind, Structure
from encyclopedia.structure.stack import blocks_of, find_stack
from encyclopedia.twin import cut_model, rebuilt

#: Bytes of an element in the precision of a run.
ELEMENT = 2


@dataclass(frozen=True)
class Subject:
    """The model that is run in place of the full one.

    Attributes:
        model: of full width, without weights, in 16 bits; with every block, or one of each kind at least.
        blocks: how many blocks it has.
        places: by the kind's position, its blocks and how many blocks of the full model each stands for.
        parts: where products are counted, by module.
        experts: the modules that hold experts.
    """

    model: PreTrainedModel
    blocks: int
    places: Mapping[int, Mapping[int, int]]
    parts: Mapping[nn.Module, tuple[int, str]]
    experts: tuple[nn.Module, ...]


@dataclass(frozen=True)
class Ran:
    """One forward: what was returned and what was multiplied."""

    length: int
    output: Any
    counted: Counted


def subject_of(full: PreTrainedModel, structure: Structure) -> Subject:
    """A model with one block of each kind, which stands for ``full``; one with all blocks where there is none."""
    cut = cut_model(full)
    if cut is None:
        return whole(full, structure)
    model, positions = cut
    return _subject(model, structure, positions, {
        number: {positions[kind.blocks[0]]: len(kind.blocks)} for number, kind in enumerate(structure.kinds)})


def whole(full: PreTrainedModel, structure: Structure) -> Subject:
    """A model with every block of ``full``, each standing for itself."""
    return _subject(full, structure, {index: index for index in range(structure.depth)}, {
        number: dict.fromkeys(kind.blocks, 1) for number, kind in enumerate(structure.kinds)})


def _subject(model: PreTrainedModel, structure: Structure, positions: Mapping[int, int],
             places: Mapping[int, Mapping[int, int]]) -> Subject:
    if model.dtype.itemsize > ELEMENT:
        # Only in 16 bits does it show what a cache keeps in more.
        model = rebuilt(model, dtype=torch.bfloat16)
    blocks = list(blocks_of(model, find_stack(model)))
    parts: dict[nn.Module, tuple[int, str]] = {}
    experts: list[nn.Module] = []
    for index, position in positions.items():
        kind, block = structure.kind_of(index), blocks[position]
        parts[block] = (position, BLOCK)
        for sublayer in kind.sublayers:
            if sublayer.host == "linear_attn":
                parts[block.get_submodule(sublayer.name)] = (position, RECURRENT)
        for path in experts_of(kind):
            parts[block.get_submodule(path)] = (position, EXPERTS)
            experts.append(block.get_submodule(path))
    return Subject(model, len(blocks), places, parts, tuple(experts))


def experts_of(kind: Kind) -> list[str]:
    """The paths, from a block, of the modules that hold experts."""
    found = [f"{sublayer.name}.{sublayer.mixture.experts}" for sublayer in kind.sublayers
             if sublayer.mixture is not None]
    beside = find_mixture(kind.block)
    return found if beside is None else [*found, beside.experts]


def run(subject: Subject, lengths: Sequence[int], *, count: bool = True) -> list[Ran]:
    """A forward of one text of each length that keeps a cache, with its products counted where ``count`` says so.

    Experts that pick their tokens by number, of which there are none without weights, return a tensor like their input.
    """
    try:
        return [_forward(subject, length, count) for length in lengths]
    except (NotImplementedError, RuntimeError):
        with experts_stood_in_for(subject.experts):
            return [_forward(subject, length, count) for length in lengths]


def _forward(subject: Subject, length: int, count: bool) -> Ran:
    ids = torch.zeros(1, length, dtype=torch.long, device="meta")
    with torch.no_grad():
        if count:
            with counting(subject.model, subject.parts) as counted:
                return Ran(length, subject.model(input_ids=ids, use_cache=True), counted)
        with WithoutValues():
            return Ran(length, subject.model(input_ids=ids, use_cache=True), Counted())
