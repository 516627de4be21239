"""Deriving a model's structure by running its small twin under plain hooks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from transformers import PreTrainedModel

from encyclopedia.native import Call, NativeRun, record
from encyclopedia.structure.block import BlockRun, same
from encyclopedia.structure.contributions import find_sum
from encyclopedia.structure.kinds import attention_type, group_blocks, sliding_window, switches_of
from encyclopedia.structure.mixture import find_mixture
from encyclopedia.structure.parts import Kind, Structure, Sublayer, Sum
from encyclopedia.structure.recurrent import recurrent_values
from encyclopedia.structure.sizes import SizeSources, find_sources, stated_of_mixture
from encyclopedia.structure.stack import Stack, UnknownStructure, blocks_of, find_stack, is_norm, model_key
from encyclopedia.structure.sublayers import find_sublayers
from encyclopedia.twin import PROMPTS, cut_from, prompt_for, redrawn, twin_of_model, twinned

#: The draw of the twin that structure is read off; checks run on another.
SEED = 1

#: How many derivations are kept.
KEPT = 64


@dataclass(frozen=True)
class _Pattern:
    """One kind of block as found on the twin."""

    sublayers: tuple[Sublayer, ...]
    sum: Sum | None
    streams: int | None
    mid: str | None
    returns_tuple: bool
    sources: SizeSources


_derived: OrderedDict[tuple[type, str], tuple[str | None, tuple[_Pattern, ...]]] = OrderedDict()


def structure_of(model: PreTrainedModel) -> Structure:
    """The structure of a native causal model, with or without weights.

    A twin has that of the model it is one of, and a cut model that of the model it was cut from.

    Raises:
        UnknownStructure: naming the part that was not found, or the step that its twin failed in.
    """
    stack = find_stack(model)
    groups = group_blocks(model, stack)
    key = twinned(model) or cut_from(model) or model_key(model)
    if key not in _derived:
        _derived[key] = _derive(model, stack)
        while len(_derived) > KEPT:
            _derived.popitem(last=False)
    norm, patterns = _derived[key]
    if len(patterns) < len(groups):
        raise UnknownStructure(f"{type(model).__name__}: its small twin has {len(patterns)} kinds of blocks, the model "
                               f"has {len(groups)}")
    blocks = list(blocks_of(model, stack))
    common = _common([switches_of(blocks[indices[0]]) for indices in groups])
    kinds = []
    for indices, pattern in zip(groups, patterns, strict=False):
        block = blocks[indices[0]]
        sublayers = tuple(sublayer.on(block) for sublayer in pattern.sublayers)
        kinds.append(Kind(
            blocks=indices,
            block=block,
            attention_type=attention_type(indices[0], block, model.config),
            sublayers=sublayers,
            sum=pattern.sum,
            streams=pattern.streams,
            mid=pattern.mid,
            returns_tuple=pattern.returns_tuple,
            sizes=_sizes(block, sublayers, pattern, model.config),
            switches={name: value for name, value in switches_of(block).items() if name not in common},
        ))
    return Structure(replace(stack, norm=norm), tuple(kinds))


def _common(found: list[dict[str, bool | str]]) -> set[str]:
    """The switches that stand alike in every kind."""
    return {name for name, value in found[0].items() if all(name in each and each[name] == value for each in found)}


def _sizes(block: Any, sublayers: tuple[Sublayer, ...], pattern: _Pattern, config: Any) -> Mapping[str, int]:
    sizes = {"hidden_size": config.hidden_size, **pattern.sources.read(sublayers, config)}
    for sublayer in sublayers:
        if sublayer.host == "linear_attn":
            sizes = {**recurrent_values(sublayer.module).sizes, **sizes}
    if pattern.streams is not None:
        sizes["streams"] = pattern.streams
    if find_mixture(block) is not None:
        # Router and experts stand beside the sublayers, none of which has them to state.
        sizes = {**sizes, **stated_of_mixture(config)}
    window = sliding_window(block, config)
    if window is not None:
        sizes["sliding_window"] = window
    return sizes


def _derive(model: PreTrainedModel, stack: Stack) -> tuple[str | None, tuple[_Pattern, ...]]:
    """The final norm's path and the pattern of each kind, from one forward of the twin."""
    try:
        twin = redrawn(model, SEED) if twinned(model) else twin_of_model(model, seed=SEED)
        recording = record(twin, prompt_for(twin, batch=PROMPTS))
    except UnknownStructure:
        raise
    except Exception as error:
        said = " ".join(str(error).split()) or "no message"
        raise UnknownStructure(f"{type(model).__name__}: its small twin does not run on token ids alone: "
                               f"{type(error).__name__}: {said}") from error
    patterns = []
    for indices in group_blocks(twin, stack):
        path = f"{stack.layers}.{indices[0]}"
        if path not in recording.calls:
            raise UnknownStructure(f"{type(model).__name__}: its forward does not call block {path}")
        patterns.append(_pattern(twin, recording, path))
    return _final_norm(twin, stack, recording), tuple(patterns)


def _pattern(twin: PreTrainedModel, recording: NativeRun, path: str) -> _Pattern:
    run = BlockRun.of(twin, recording, path, twin.config.hidden_size)
    found = find_sum(run, twin.config)
    sublayers, found = find_sublayers(run, recording, found)
    return _Pattern(
        sublayers=sublayers,
        sum=found,
        streams=_streams(run),
        mid=_mid(run, sublayers),
        returns_tuple=isinstance(run.call.output, tuple | list),
        sources=find_sources(sublayers, path, recording, twin.config),
    )


def _streams(run: BlockRun) -> int | None:
    leaving = run.call.leaving
    batch, seq, width = run.shape
    if isinstance(leaving, torch.Tensor) and leaving.ndim == 4 and leaving.shape[:2] == (batch, seq) \
            and leaving.shape[-1] == width:
        return leaving.shape[2]
    return None


def _mid(run: BlockRun, sublayers: tuple[Sublayer, ...]) -> str | None:
    """Where the stream between two sublayers enters the second one, where they do not both read the block's input."""
    if len(sublayers) != 2 or run.stream is None:
        return None
    entry = sublayers[1].norm or sublayers[1].first
    entered = next(call for call in reversed(run.calls) if run.relative(call) == entry)
    entering = run.entering(entered)
    return None if entering is None or same(entering, run.stream) else f"{entry}.input"


def _final_norm(twin: PreTrainedModel, stack: Stack, recording: NativeRun) -> str | None:
    """The norm after every block whose output the head reads, else the last norm there."""
    blocks = [call for path, calls in recording.calls.items() if path.startswith(f"{stack.layers}.") for call in calls]
    last = max(call.ended for call in blocks)
    after: list[Call] = [call for path, calls in recording.calls.items() for call in calls
                         if call.began > last and is_norm(twin.get_submodule(path))]
    head = recording.calls.get(stack.lm_head, [])
    read = [call for call in after if head and same(call.leaving, head[-1].entering)]
    return max(read or after, key=lambda call: call.ended).path if after else None
