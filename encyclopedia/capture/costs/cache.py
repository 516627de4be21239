"""What a forward keeps for the next one: measured on the cache object that it fills."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import torch

from encyclopedia.capture.costs.running import Ran


@dataclass(frozen=True)
class Kept:
    """One tensor of a cache layer.

    Attributes:
        shape: at the longer of the two short texts.
        per_token: bytes that each token kept adds; a fraction where one entry stands for several tokens.
        fixed: bytes there are at any length.
        window: most tokens kept, or ``None`` where all are.
        late: whether it begins to grow in a text that is longer than the short ones.
        dtype: what its elements are; states may be kept in more than the precision of the run.
    """

    shape: tuple[int, ...]
    per_token: Fraction
    fixed: int
    window: int | None
    late: bool = False
    dtype: str = "bfloat16"


class NotMeasured(Exception):
    """A cache that was found and whose growth no law of this kind tells."""


#: By the cache layer's index: its tensors by name.
Layers = dict[int, dict[str, torch.Tensor]]


def cache_of(output: Any) -> Any:
    """The cache object that a forward returned, or ``None``."""
    return next((found for name in ("cache", "past_key_values", "cache_params")
                 if (found := getattr(output, name, None)) is not None), None)


def layers_of(cache: Any) -> Layers:
    """The tensors in a cache, by layer and name; one that stands there twice counts once."""
    found: Layers = {}
    for index, layer in enumerate(getattr(cache, "layers", ())):
        found.setdefault(index, {}).update(_tensors(vars(layer)))
    for name, held in vars(cache).items():
        entries = enumerate(held) if isinstance(held, list) else held.items() if isinstance(held, dict) else ()
        for index, each in entries:
            if isinstance(index, int) and name != "layers":
                found.setdefault(index, {}).update(_named(name, each))
    return _once(found)


def windows_of(cache: Any) -> list[int]:
    """The windows that a cache's layers state."""
    stated = (getattr(layer, "sliding_window", None) for layer in getattr(cache, "layers", ()))
    return [window for window in stated if isinstance(window, int)]


def _tensors(held: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    return {name: tensor for key, value in held.items() if not key.startswith("_")
            for name, tensor in _named(key, value)}


def _named(name: str, value: Any) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _named(name if len(value) == 1 and isinstance(key, int) else f"{name}.{key}", each)
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield from _named(name if len(value) == 1 else f"{name}.{index}", each)


def _once(layers: Layers) -> Layers:
    seen: set[int] = set()
    found: Layers = {}
    for index, tensors in layers.items():
        found[index] = {}
        for name, tensor in tensors.items():
            if id(tensor) not in seen:
                seen.add(id(tensor))
                found[index][name] = tensor
    return found


def bytes_of(tensor: torch.Tensor) -> int:
    """The bytes of a tensor of a cache."""
    return tensor.numel() * tensor.element_size()


def laws(short: Sequence[Ran], long: Sequence[Ran]) -> dict[int, dict[str, Kept]]:
    """How each tensor of the cache grows, by layer and name; those that stay empty are left out.

    Args:
        short: two texts shorter than any window, the shorter first.
        long: none, or two longer than every window.

    Raises:
        NotMeasured: where a layer keeps other tensors in a longer text.
    """
    runs = [(ran.length, layers_of(cache_of(ran.output))) for ran in (*short, *long)]
    found: dict[int, dict[str, Kept]] = {}
    for index, tensors in runs[1][1].items():
        for name, tensor in tensors.items():
            try:
                sizes = [(length, bytes_of(layers[index][name])) for length, layers in runs]
            except KeyError as error:
                raise NotMeasured(f"layer {index} of the cache does not keep {name} at every length") from error
            per_token, fixed, window = _law(sizes)
            late = bool(per_token) and sizes[0][1] == sizes[1][1]
            if per_token or fixed:
                found.setdefault(index, {})[name] = Kept(
                    tuple(tensor.shape), per_token, fixed, window, late, str(tensor.dtype).removeprefix("torch."))
    return found


def _law(sizes: Sequence[tuple[int, int]]) -> tuple[Fraction, int, int | None]:
    """Bytes per token, fixed bytes and window."""
    (first, least), (second, less) = sizes[:2]
    slope = Fraction(less - least, second - first)
    fixed = less - slope * second
    for length, number in sizes[2:3]:
        (longest, most), expected = sizes[3], fixed + slope * length
        if number == expected:
            continue
        later = Fraction(most - number, longest - length)
        if not later and slope:
            return slope, int(fixed), ceil((number - fixed) / slope)
        # An entry for several tokens appears when the last of them does.
        return later, max(0, int(number - later * length)), None
    return slope, max(0, int(fixed)), None
