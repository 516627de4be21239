"""What adds up to a block's output, found in a recorded forward and kept only when exact.

The terms are outputs of the block's modules. Channel by channel, the output is solved for as a sum of them and the
block's input, which also finds what multiplies each: nothing, a number that the block or the config states, or a
parameter of the block. Where the block's own children do not add up to it, plain sums over what is inside them are
searched: there, one module's output may be a sum of others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from encyclopedia.native import Call
from encyclopedia.structure.block import SAME, BlockRun, same
from encyclopedia.structure.parts import Sum, Term

#: Most candidates of a sum, and most sums of one length that are tried.
MOST_CANDIDATES = 24
MOST_SUMS = 3000

#: How close a solved factor has to be to the one it is named for.
CLOSE = 2e-3

#: A factor that is nowhere larger belongs to no term.
NOTHING = 1e-3


@dataclass(frozen=True)
class Factor:
    """Something that may multiply a term, by the expression that reads it."""

    expression: str
    value: torch.Tensor


#: No factor at all.
ONE = Factor("", torch.tensor(1.0, dtype=torch.float64))


def find_sum(run: BlockRun, config: Any) -> Sum | None:
    """The sum that a block's output is, or ``None`` where none is exact.

    Args:
        run: the block's part of a recorded forward of a small random model.
        config: the model's config, whose numbers may be factors.
    """
    stream, output = run.stream, run.output
    if stream is None or output is None:
        return None
    candidates, factors = _candidates(run, 1), list(_factors(run, config))
    # Norms of one stream are multiples of one another in each channel, so what only feeds other modules comes last.
    unread = [call for call in candidates if not _feeds(run, call)]
    found = _solved(run, stream, output, unread, factors) or _solved(run, stream, output, candidates, factors)
    return found or next(filter(None, (_plain(run, stream, output, _candidates(run, depth)) for depth in (2, 3))), None)


def _candidates(run: BlockRun, depth: int) -> list[Call]:
    """The calls down to ``depth`` whose outputs may be terms, each tensor once, by the first that returned it."""
    found: list[Call] = []
    for call in sorted(run.calls, key=lambda call: call.ended):
        leaving = run.leaving(call)
        if leaving is None or _depth(run, call) > depth:
            continue
        if same(leaving, run.stream) or same(leaving, run.output):
            continue
        if not any(same(leaving, run.leaving(other)) for other in found):
            found.append(call)
    return found[:MOST_CANDIDATES]


def _feeds(run: BlockRun, call: Call) -> bool:
    """Whether what a module returned is what entered another child of the block."""
    leaving = run.leaving(call)
    return any(same(run.entering(other), leaving) for other in run.children if other is not call)


def _depth(run: BlockRun, call: Call) -> int:
    """How deep in the block a module stands; a list around it does not count."""
    steps = run.relative(call).split(".")
    around = [".".join(steps[:length]) for length in range(1, len(steps))]
    return 1 + sum(not isinstance(run.block.get_submodule(path), nn.ModuleList) for path in around)


def _solved(
    run: BlockRun, stream: torch.Tensor, output: torch.Tensor, candidates: Sequence[Call], factors: Sequence[Factor]
) -> Sum | None:
    """The sum with its factors, solved for in every channel at once."""
    entries = [stream, *(run.leaving(call) for call in candidates)]
    columns = torch.stack([_by_channel(entry) for entry in entries], dim=-1)
    solution = torch.linalg.lstsq(columns, _by_channel(output)[..., None]).solution[..., 0]
    weights = solution.T
    named: list[tuple[int, Factor | None]] = []
    for position, weight in enumerate(weights):
        if weight.abs().max() <= NOTHING:
            continue
        if not weight.isfinite().all():
            return None
        near = [factor for factor in (ONE, *_products(factors)) if _close(weight, factor.value)]
        if not near:
            return None
        closest = min(near, key=lambda factor: (weight - factor.value).abs().max().item())
        named.append((position, None if closest is ONE else closest))
    rebuilt = torch.zeros_like(_double(output))
    for position, factor in named:
        rebuilt += _double(entries[position]) * (1.0 if factor is None else factor.value)
    if (rebuilt - _double(output)).abs().max() > SAME * output.abs().max():
        return None
    by_position = {position: "" if factor is None else factor.expression for position, factor in named}
    terms = tuple(_term(run, candidates[position - 1], expression or None)
                  for position, expression in by_position.items() if position)
    return Sum(by_position.get(0), terms) if terms else None


def _by_channel(tensor: torch.Tensor | None) -> torch.Tensor:
    """``[hidden_size, batch * seq]`` of ``[batch, seq, hidden_size]``."""
    return _double(tensor).flatten(0, 1).T


def _close(weight: torch.Tensor, value: torch.Tensor) -> bool:
    return bool(((weight - value).abs() <= CLOSE * value.abs().clamp(min=1.0)).all())


def _factors(run: BlockRun, config: Any) -> Iterator[Factor]:
    """What may multiply a term: numbers of the block and the config, and the block's own scalars and vectors."""
    for name, value in vars(run.block).items():
        if isinstance(value, float) and value not in (0.0, 1.0):
            yield Factor(f"layers[i].{name}", torch.tensor(value, dtype=torch.float64))
    tensors = [*run.block.named_parameters(), *run.block.named_buffers()]
    for path, tensor in tensors:
        if path.count(".") <= 1 and tensor.is_floating_point() and tensor.numel() in (1, run.shape[2]) \
                and not path.endswith((".weight", ".bias")):
            yield Factor(path, tensor.detach().double().flatten())
    for name, value in _numbers(config.to_dict()).items():
        yield Factor(f"config.{name}", torch.tensor(value, dtype=torch.float64))


def _numbers(config: Mapping[str, Any]) -> dict[str, float]:
    return {name: value for name, value in config.items() if isinstance(value, float) and value not in (0.0, 1.0)}


def _products(factors: Sequence[Factor]) -> Iterator[Factor]:
    yield from factors
    for one, other in itertools.combinations(factors, 2):
        yield Factor(f"{other.expression} * {one.expression}", one.value * other.value)


def _plain(run: BlockRun, stream: torch.Tensor, output: torch.Tensor, candidates: Sequence[Call]) -> Sum | None:
    """The shortest plain sum of candidates, in the order in which they run."""
    scale = output.abs().max().item()
    leaving = {id(call): _double(run.leaving(call)) for call in candidates}
    target = _double(output) - _double(stream)
    lengths = itertools.takewhile(lambda number: math.comb(len(candidates), number) <= MOST_SUMS,
                                  range(1, len(candidates) + 1))
    for number in lengths:
        for chosen in itertools.combinations(candidates, number):
            rest = target - sum(leaving[id(call)] for call in chosen)
            if rest.abs().max().item() <= SAME * scale:
                return Sum("", tuple(_term(run, call, None) for call in chosen))
    return None


def _term(run: BlockRun, call: Call, factor: str | None) -> Term:
    return Term(run.relative(call), run.output_location(call), factor)


def _double(tensor: torch.Tensor | None) -> torch.Tensor:
    assert tensor is not None
    return tensor.double()
