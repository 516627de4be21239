"""Shrinking a config: small sizes, few blocks, and factors that show."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from transformers import PreTrainedConfig

from encyclopedia.twin.axes import HEAD_DIM, HEADS, HIDDEN, small_sizes
from encyclopedia.twin.depth import cut, run_lengths
from encyclopedia.twin.prompt import SPECIAL_TOKENS

#: What a factor of one becomes: at one it would hide whether it was applied.
MOVED_FACTOR = 1.25

#: Keys whose number multiplies something in the block.
FACTORS = r"\w*(_scaling_factor|_multipliers?|_scaling|_scale|_alpha_factor|_beta_factor)"

#: Keys that look like factors and set a width or an initial value.
NO_FACTORS = r"\w*(dim|init|time_step)\w*"

#: Entries that say nothing of what a model is built from.
_UNBUILT = ("model_type", "transformers_version", "_name_or_path", "id2label", "label2id")


def shrink(config: PreTrainedConfig, blocks: Sequence[int], *, depth: int | None = None, tied: bool = False,
           first_index: int = 0, changed: Mapping[str, Any] | None = None,
           computed: Collection[str] | None = None) -> PreTrainedConfig:
    """``config`` made small, with one entry per kept block wherever it has one entry per block.

    Args:
        config: a full-size config.
        blocks: indices of the blocks kept, in order.
        depth: how many blocks ``config`` has; by default its ``num_hidden_layers``.
        tied: keep the stream as wide as its heads side by side, where it is so in ``config``.
        first_index: what the config calls the first block in its lists of blocks.
        changed: entries that replace the small config's own.
        computed: what :func:`computed_keys` finds, where it is known.
    """
    depth = depth or config.get_text_config().num_hidden_layers
    computed = computed_keys(config) if computed is None else computed
    own = {key: value for key, value in config.to_dict().items() if key not in computed}
    small = _Shrinking(blocks, depth, tied, first_index).config(own)
    return type(config)(**{**small, **(changed or {})})


def cut_config(config: PreTrainedConfig, blocks: Sequence[int], *, depth: int, first_index: int = 0,
               computed: Collection[str]) -> PreTrainedConfig:
    """``config`` with one entry per kept block wherever it has one entry per block, and every width as it is.

    Args:
        config: a full-size config.
        blocks: indices of the blocks kept, in order.
        depth: how many blocks ``config`` has.
        first_index: what the config calls the first block in its lists of blocks.
        computed: what :func:`computed_keys` finds.
    """
    own = {key: value for key, value in config.to_dict().items() if key not in computed}
    return type(config)(**_Cutting(blocks, depth, False, first_index).config(own))


def computed_keys(config: PreTrainedConfig) -> set[str]:
    """Keys whose value follows from the others, so that a small config has to compute it anew."""
    full = {key: value for key, value in config.to_dict().items() if key not in _UNBUILT}
    spelled = type(config).attribute_map
    stated = {spelled.get(field.name, field.name) for field in fields(type(config))}
    plain = type(config)(**{key: value for key, value in full.items() if key in stated}).to_dict()
    found = {key for key, value in full.items()
             if key not in stated and isinstance(value, int) and plain.get(key) == value}
    for key, value in full.items():
        if key in stated and re.search(r"size|dim", key) and isinstance(value, int) and value > 1:
            try:
                other = type(config)(**{**full, key: 2 * value}).to_dict()
            except Exception:
                # The class refuses the other value, so it does not compute this one.
                continue
            if other.get(key) == value:
                found.add(key)
    return found


class _Shrinking:
    """One walk over a config and its parts."""

    def __init__(self, blocks: Sequence[int], depth: int, tied: bool, first_index: int) -> None:
        self.blocks, self.depth, self.tied, self.first_index = blocks, depth, tied, first_index

    def config(self, full: dict[str, Any]) -> dict[str, Any]:
        """A config with a stream of its own."""
        own = {key: value for key, value in full.items() if key not in _UNBUILT}
        found: dict[str, set[int]] = {}
        for key, value in _numbers(own):
            found.setdefault(key, set()).add(value)
        sizes = small_sizes(found, sorted(set(_shares(own))), tied=self.tied)
        small = {**self.part(own, sizes), "dtype": "float32"}
        _resize_rotary_lists(own, small)
        return small

    def part(self, full: dict[str, Any], sizes: dict[tuple[str, int], int]) -> dict[str, Any]:
        """A part of a config, which shares its parent's sizes."""
        small: dict[str, Any] = {}
        runs = run_lengths(full, self.blocks, self.depth)
        for key, entry in full.items():
            if key in runs:
                small[key] = runs[key]
                continue
            if key in ("id2label", "label2id"):
                continue
            value = cut(key, entry, self.blocks, self.depth, self.first_index)
            if isinstance(value, dict) and _is_config(value):
                small[key] = self.config(value)
                small[key]["model_type"] = value.get("model_type")
            elif isinstance(value, dict):
                small[key] = value if key.startswith("rope_") else self.part(value, sizes)
            elif isinstance(value, list):
                small[key] = [self.small(key, element, sizes) for element in value]
            else:
                small[key] = self.small(key, value, sizes)
        return small

    def small(self, key: str, value: Any, sizes: dict[tuple[str, int], int]) -> Any:
        """One number of a config made small."""
        return _small(key, value, sizes)


class _Cutting(_Shrinking):
    """The same walk, which leaves every number that is no count of blocks as it is."""

    def config(self, full: dict[str, Any]) -> dict[str, Any]:
        return self.part({key: value for key, value in full.items() if key not in _UNBUILT}, {})

    def small(self, key: str, value: Any, sizes: dict[tuple[str, int], int]) -> Any:
        return value


def _small(key: str, value: Any, sizes: dict[tuple[str, int], int]) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if key.endswith(("_token_id", "_token_ids")):
        return int(value) % SPECIAL_TOKENS
    if value == 1 and re.fullmatch(FACTORS, key) and not re.fullmatch(NO_FACTORS, key):
        return MOVED_FACTOR if isinstance(value, float) else 2
    return sizes.get((key, value), value) if isinstance(value, int) else value


def _is_config(value: dict[str, Any]) -> bool:
    """Whether ``value`` is a config with a stream of its own, not a part of its parent's."""
    return "vocab_size" in value and any(re.fullmatch(HIDDEN, key) for key in value)


def _numbers(config: dict[str, Any]) -> Iterator[tuple[str, int]]:
    for key, value in config.items():
        if isinstance(value, dict):
            if key not in _UNBUILT and not key.startswith("rope_") and not _is_config(value):
                yield from _numbers(value)
        else:
            for entry in value if isinstance(value, list) else [value]:
                if isinstance(entry, int) and not isinstance(entry, bool):
                    yield key, entry


def _shares(config: dict[str, Any]) -> Iterator[float]:
    """The shares of a head that the config rotates."""
    for key, value in config.items():
        if isinstance(value, dict):
            if not _is_config(value) and key not in _UNBUILT:
                yield from _shares(value)
        elif re.fullmatch(r"partial_rotary_factor|rotary_pct", key) and isinstance(value, float):
            yield value


def _resize_rotary_lists(full: dict[str, Any], small: dict[str, Any]) -> None:
    """Lists with one entry per rotated pair get the small head's pairs, spread over the full one's."""
    before, after = _head_dim(full), _head_dim(small)
    for key in [key for key in small if key.startswith("rope_") and isinstance(small[key], dict)]:
        small[key] = {name: _spread(value, len(value) * after // before) if _per_pair(value, before) else value
                      for name, value in small[key].items()}


def _per_pair(value: Any, head_dim: int) -> bool:
    return isinstance(value, list) and 8 <= len(value) <= head_dim // 2 and isinstance(value[0], int | float)


def _spread(value: list[float], count: int) -> list[float]:
    return [value[index * len(value) // count] for index in range(count)]


def _head_dim(config: dict[str, Any]) -> int:
    def first(pattern: str) -> int:
        return next((value for key, value in config.items() if re.fullmatch(pattern, key) and value), 0)

    return first(HEAD_DIM) or first(HIDDEN) // (first(HEADS) or 1) or 1
