"""Fewer blocks: one of each kind, and the config's entries for the blocks that are kept."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

#: Keys that count the blocks before a change of kind.
BEFORE = r"first_k_dense_replace|num_dense_layers|max_window_layers|\w*index_start|\w*start_index"

#: Keys that count the blocks of a run, one run after the other.
RUNS = r"n_(\w+)_layers"

#: Keys that name the last block of a run.
LAST = r"\w*end_index|\w*index_end"

#: Keys that count blocks from the end.
FROM_THE_END = r"num_kv_shared_layers"

#: Keys that choose a block's kind by its index's remainder.
REMAINDERS = r"\w*(_period|_interval|_step|_pattern|_every_n_layers|_offset)|n_layers_per_\w+"

_INDICES = r"\w*(idxs|ids|indices|layers)"


def chosen_blocks(kinds: Sequence[Sequence[int]], depth: int, starts: Iterable[int] = ()) -> list[int]:
    """The blocks a twin keeps: the first of each kind, and a second where there is one kind only.

    Args:
        kinds: indices of the blocks of each kind.
        depth: how many blocks there are.
        starts: first blocks of the runs that the config counts; each run keeps a block.
    """
    firsts = sorted(kind[0] for kind in kinds)
    kept = firsts if len(firsts) > 1 else sorted({*firsts, min(1, depth - 1)})
    runs = [*starts, depth]
    for start, end in itertools.pairwise(runs):
        if start < end and not any(start <= index < end for index in kept):
            kept.append(start)
    return sorted(kept)


def run_starts(config: Mapping[str, Any], depth: int) -> list[int]:
    """First blocks of the runs whose lengths the config states one after the other; empty where it states none."""
    lengths = _runs(config, depth)
    return [*itertools.accumulate(lengths.values(), initial=0)][:-1] if lengths else []


def run_lengths(config: Mapping[str, Any], blocks: Sequence[int], depth: int) -> dict[str, int]:
    """How many of ``blocks`` each run of :func:`run_starts` has, in the config's own unit."""
    lengths = _runs(config, depth)
    unit = sum(config[key] for key in lengths) // depth if lengths else 1
    starts = dict(zip(lengths, run_starts(config, depth), strict=True))
    return {key: unit * sum(starts[key] <= index < starts[key] + lengths[key] for index in blocks) for key in lengths}


def _runs(config: Mapping[str, Any], depth: int) -> dict[str, int]:
    """Lengths in blocks of the runs of blocks, where the config states several that make up all of them."""
    stated = {key: value for key, value in config.items() if re.fullmatch(RUNS, key) and isinstance(value, int)}
    total = sum(stated.values())
    if len(stated) < 2 or not total or total % depth:
        return {}
    return {key: value * depth // total for key, value in stated.items()}


def cut(key: str, value: Any, blocks: Sequence[int], depth: int, first_index: int = 0) -> Any:
    """A config's ``value`` for the kept ``blocks`` of ``depth``; itself where it says nothing of single blocks."""
    if isinstance(value, list):
        return _cut_list(key, value, blocks, depth, first_index)
    if isinstance(value, dict) and key == "per_layer_config":
        width = len(str(max(len(blocks) - 1, 1)))
        return {f"{blocks.index(int(index)):0{width}}": override
                for index, override in value.items() if int(index) in blocks}
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    if re.fullmatch(BEFORE, key):
        return sum(index < value for index in blocks)
    if re.fullmatch(LAST, key):
        return max((position for position, index in enumerate(blocks) if index <= value), default=0)
    if re.fullmatch(FROM_THE_END, key):
        return sum(index >= depth - value for index in blocks)
    if re.search(r"layers?$|depth|blocks$", key) and value > 1 and value % depth == 0:
        return value // depth * len(blocks)
    return value


def _cut_list(key: str, value: list[Any], blocks: Sequence[int], depth: int, first_index: int) -> list[Any]:
    numbers = [entry for entry in value if isinstance(entry, int) and not isinstance(entry, bool)]
    if (re.fullmatch(_INDICES, key) and len(numbers) == len(value) == len(set(numbers))
            and all(number < depth + first_index for number in numbers)):
        return [position + first_index for position, index in enumerate(blocks) if index + first_index in numbers]
    if value and len(value) % depth == 0:
        each = len(value) // depth
        return [value[index * each + step] for index in blocks for step in range(each)]
    if value and len(value) < depth and all(isinstance(entry, str) for entry in value) and "type" in key:
        return [value[index % len(value)] for index in blocks]
    if value and all(_is_run(entry) for entry in value):
        flat = [name for names, times in value for _ in range(times) for name in names]
        if len(flat) == depth:
            return [[[flat[index]], 1] for index in blocks]
    return value


def _is_run(entry: Any) -> bool:
    return isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], list) and isinstance(entry[1], int)


def other_remainders(config: Mapping[str, Any], count: int) -> Iterator[dict[str, int]]:
    """Values to try for the keys of :data:`REMAINDERS` in a stack of ``count`` blocks; each offset below its period."""
    keys = [key for key, value in config.items()
            if re.fullmatch(REMAINDERS, key) and isinstance(value, int) and not isinstance(value, bool)]
    tried = [range(0 if key.endswith("_offset") else 1, count + 1) for key in keys]
    for values in itertools.product(*tried) if keys else ():
        changed = dict(zip(keys, values, strict=True))
        if all(value < changed.get(key.replace("_offset", "_period"), count) or not key.endswith("_offset")
               for key, value in changed.items()):
            yield changed
