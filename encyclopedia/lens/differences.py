"""How a hook's tensor differs from a value: every sentence is a hypothesis that a computation confirmed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import nn

from encyclopedia.checks.claims import MASKED, TOLERANCE
from encyclopedia.lens.arrangement import Arrangement, arrangements

#: How many arrangements of one tensor are tried; axes of one length would give many.
MOST_ARRANGEMENTS = 2

#: A number that more than one key of the config has.
SEVERAL = "a factor of the config"


@dataclass(frozen=True)
class Here:
    """A value and a hook's tensor on one block.

    Attributes:
        name: the value's name.
        dims: its axes' names.
        value: its tensor.
        found: the hook's tensor.
        others: the block's other standard values, by name.
        layers: the block's modules that have no children, by path from the block.
        factors: the numbers of the config that scale something, by key.
    """

    name: str
    dims: tuple[str, ...]
    value: torch.Tensor
    found: torch.Tensor
    others: Mapping[str, torch.Tensor]
    layers: Mapping[str, nn.Module]
    factors: Mapping[str, float]


def error_of(value: torch.Tensor, found: torch.Tensor) -> float:
    """The largest difference of two tensors of one shape, over the largest magnitude of ``value``.

    Entries that both hide from a softmax are alike, whatever number hides them.
    """
    if value.is_floating_point() != found.is_floating_point():
        return math.inf
    if not value.is_floating_point():
        return 0.0 if torch.equal(value, found.to(value.dtype)) else math.inf
    hidden = value <= MASKED
    if not torch.equal(hidden, found <= MASKED) or hidden.all():
        return math.inf
    seen, other = value[~hidden], found[~hidden]
    scale = seen.abs().max().item()
    difference = (seen - other).abs().max().item()
    if scale == 0.0:
        return 0.0 if difference == 0.0 else math.inf
    return math.inf if math.isnan(difference) else difference / scale


def alike(value: torch.Tensor, found: torch.Tensor) -> bool:
    """Whether two tensors of one shape are one to float32 precision."""
    return value.shape == found.shape and error_of(value, found) <= TOLERANCE


def match(value: torch.Tensor, found: torch.Tensor) -> tuple[Arrangement, float] | None:
    """The plainest arrangement in which ``found`` is ``value``, with the error; ``None`` where there is none."""
    for arrangement in arrangements(value.shape, found.shape):
        error = error_of(arrangement.apply(value), found)
        if error <= TOLERANCE:
            return arrangement, error
    return None


def explain(here: Here) -> str | None:
    """What the hook's tensor is, from the value's point of view; ``None`` where no hypothesis holds."""
    return next(_hypotheses(here), None)


def _hypotheses(here: Here) -> Iterator[str]:
    for name, other in here.others.items():
        if match(other, here.found) is not None:
            yield name
    yield from _gains(here)
    yield from _scaled(here)
    yield from _unfinished(here)
    yield from _later(here)
    yield from _sums(here)
    yield from _scattered(here)
    yield from _recut(here)
    yield from _parts(here)


def _laid_out(here: Here, tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """``tensor`` in the value's layout."""
    for count, arrangement in enumerate(arrangements(here.value.shape, tensor.shape)):
        if count < MOST_ARRANGEMENTS:
            yield arrangement.undo(tensor, here.value.shape)


def _scaled(here: Here) -> Iterator[str]:
    """A multiple of the value, the number by its name where the config or an axis gives it one."""
    for tensor in _laid_out(here, here.found):
        if here.value.is_floating_point() and tensor.is_floating_point():
            factor = _factor(tensor, here.value)
            if factor is not None:
                times, name = _named(here, factor)
                yield f"the value {'times' if times else 'divided by'} {name}"


def _named(here: Here, factor: float) -> tuple[bool, str]:
    """What a factor is called, and whether it is that (else its reciprocal)."""
    roots = {f"sqrt({dim})": math.sqrt(size) for dim, size in zip(here.dims, here.value.shape, strict=True)
             if dim.endswith(("dim", "size"))}
    for numbers in (here.factors, roots):
        for times, wanted in ((True, factor), (False, 1 / factor)):
            names = [name for name, number in numbers.items() if math.isclose(wanted, number, rel_tol=1e-4)]
            if names:
                return times, names[0] if len(names) == 1 else SEVERAL
    return True, f"{factor:.4g}"


def _unfinished(here: Here) -> Iterator[str]:
    """Steps that the hook's tensor has still to go through to become the value."""
    for words, raw in _raw(here):
        for steps, tensor in _passed(here, raw):
            for laid_out in _laid_out(here, tensor):
                for last in _last_steps(here, laid_out):
                    missing = [*steps, *last]
                    yield ", ".join([*([f"before {_listed(missing)}"] if missing else []), *words])
        yield from (", ".join([text, *words]) for text in _rotated_then_normed(here, raw))


def _raw(here: Here) -> Iterator[tuple[list[str], torch.Tensor]]:
    """The hook's tensor; one of each row of equal heads; the first half of one that is twice as large."""
    yield [], here.found
    if "num_kv_heads" in here.dims:
        for tensor in _unrepeated(here):
            yield ["repeated to the query heads"], tensor
    if here.found.numel() == 2 * here.value.numel() and here.dims[-2:] == ("seq", "qk_head_dim"):
        heads, width = here.value.shape[1], here.value.shape[3]
        flat = here.found.flatten(2)
        words = "with as many other numbers behind"
        yield [f"{words} each head's"], flat.unflatten(-1, (heads, 2, width))[..., 0, :]
        yield [f"{words} all heads'"], flat.chunk(2, dim=-1)[0].unflatten(-1, (heads, width))


def _unrepeated(here: Here) -> Iterator[torch.Tensor]:
    axis = here.dims.index("num_kv_heads")
    shape = list(here.value.shape)
    times, rest = divmod(here.found.numel(), here.value.numel())
    if rest or times < 2:
        return
    shape[axis] *= times
    for arrangement in arrangements(shape, here.found.shape):
        rows = arrangement.undo(here.found, shape).unflatten(axis, (-1, times))
        first = rows.select(axis + 1, 0)
        if torch.equal(rows, first.unsqueeze(axis + 1).expand_as(rows)):
            yield first


def _passed(here: Here, tensor: torch.Tensor) -> Iterator[tuple[list[str], torch.Tensor]]:
    """``tensor``, and what every layer makes of it, those first that are named like the value."""
    yield [], tensor
    initial = here.name.rpartition("_")[2][:1]
    for path, layer in sorted(here.layers.items(), key=lambda each: each[0].rpartition(".")[2][:1] != initial):
        for passed in _through(layer, tensor):
            yield [path], passed


def _through(layer: nn.Module, tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """``tensor`` through a layer, head by head and with all heads side by side, in its own shape."""
    for entering in (tensor, tensor.flatten(-2)) if tensor.ndim > 3 else (tensor,):
        try:
            with torch.no_grad():
                leaving = layer(entering.clone())
        except Exception:
            # No layer for a tensor of this shape.
            continue
        if isinstance(leaving, torch.Tensor) and leaving.numel() == tensor.numel():
            yield leaving.reshape(tensor.shape)


def _last_steps(here: Here, tensor: torch.Tensor) -> Iterator[list[str]]:
    """Steps in the value's own layout that make ``tensor`` the value: none, a factor, a rotation, the mask."""
    value = here.value
    if not value.is_floating_point() or not tensor.is_floating_point():
        return
    if alike(value, tensor):
        yield []
        return
    if here.name in ("attention_queries", "attention_keys") and here.dims[-2] == "seq":
        yield from _rotated(here, value, tensor)
    hidden = value <= MASKED
    if hidden.any() and not hidden.all() and not (tensor <= MASKED).any():
        seen, other = value[~hidden], tensor[~hidden]
        if alike(seen, other):
            yield ["the mask"]
        factor = _factor(seen, other)
        if factor is not None:
            yield [_as_factor(here, factor), "the mask"]


def _rotated(here: Here, value: torch.Tensor, tensor: torch.Tensor) -> Iterator[list[str]]:
    """A rotation leaves the first position and every length as they are, and moves the rest.

    Some rotate with a gain, on all of a head or on the part they turn.
    """
    first, start = value[..., 0, :], tensor[..., 0, :]
    flat, others = first.flatten(0, -2), start.flatten(0, -2)
    gains = (flat * others).sum(0) / (others * others).sum(0)
    if not alike(first, gains * start) or not alike(value.norm(dim=-1), (gains * tensor).norm(dim=-1)):
        return
    plain = (gains - 1).abs() <= 1e-4
    if plain.all():
        yield ["the rotary embedding"]
        return
    factor = gains[~plain][0]
    if ((gains[~plain] - factor).abs() <= 1e-4).all():
        part = " on the part that is rotated" if plain.any() else ""
        yield ["the rotary embedding", f"{_as_factor(here, factor.item())}{part}"]


def _rotated_then_normed(here: Here, tensor: torch.Tensor) -> Iterator[str]:
    """A norm behind the rotation: lengths and weights aside, it undoes nothing of it."""
    if here.name not in ("attention_queries", "attention_keys") or here.dims[-2] != "seq":
        return
    for path, layer in here.layers.items():
        weight = getattr(layer, "weight", None)
        if not isinstance(weight, torch.Tensor) or weight.shape != here.value.shape[-1:]:
            continue
        for passed in _through(layer, tensor):
            for laid_out in _laid_out(here, passed):
                for steps in _rotated(here, (here.value / weight).detach(), (laid_out / weight).detach()):
                    yield f"before {_listed([*steps, path])}"


def _factor(value: torch.Tensor, tensor: torch.Tensor) -> float | None:
    """The number other than one that makes ``tensor`` the ``value``."""
    length = (tensor * tensor).sum().item()
    if length == 0.0 or not math.isfinite(length):
        return None
    factor = (value * tensor).sum().item() / length
    return factor if abs(factor) > TOLERANCE and alike(value, factor * tensor) else None


def _as_factor(here: Here, factor: float) -> str:
    times, name = _named(here, factor)
    return name if name == SEVERAL else f"the factor {name if times else f'1 / {name}'}"


def _gains(here: Here) -> Iterator[str]:
    """A gain and a bias per channel that are a layer's parameters."""
    for tensor in _laid_out(here, here.found):
        if not tensor.is_floating_point():
            continue
        for path, layer in here.layers.items():
            weight, bias = getattr(layer, "weight", None), getattr(layer, "bias", None)
            if not isinstance(weight, torch.Tensor) or weight.shape != tensor.shape[-1:]:
                continue
            added = bias if isinstance(bias, torch.Tensor) else torch.zeros_like(weight)
            words = "the weight and bias" if isinstance(bias, torch.Tensor) else "the weight"
            for gain in (weight, 1 + weight):
                if alike(here.value, (tensor * gain + added).detach()):
                    yield f"before {words} of {path}"


def _later(here: Here) -> Iterator[str]:
    """Steps that the hook's tensor has behind it and the value has not."""
    for path, layer in here.layers.items():
        for passed in _through(layer, here.value):
            if match(passed, here.found) is not None:
                yield f"after {path}"
    if here.value.is_floating_point():
        for words, passed in (("a softmax", here.value.softmax(-1)), ("a sigmoid", here.value.sigmoid())):
            if match(passed, here.found) is not None:
                yield f"after {words}"


def _sums(here: Here) -> Iterator[str]:
    """Another of the block's values, in the one tensor and not in the other."""
    for name, other in here.others.items():
        if other.shape != here.value.shape or not other.is_floating_point() or not here.value.is_floating_point():
            continue
        if match(here.value - other, here.found) is not None:
            yield f"the value without {name}"
        if match(here.value + other, here.found) is not None:
            yield f"the value with {name} added"


def _scattered(here: Here) -> Iterator[str]:
    """A column for every expert, in place of one for every slot."""
    indices = here.others.get("expert_indices")
    if here.name != "expert_weights" or indices is None:
        return
    flat = here.found.reshape(-1, here.found.shape[-1])
    chosen = indices.flatten(0, -2).long()
    if len(flat) != len(chosen) or int(chosen.max()) >= flat.shape[-1]:
        return
    if alike(here.value.flatten(0, -2), flat.gather(-1, chosen)):
        words = "a column for every expert in place of every slot"
        yield words if flat.scatter(-1, chosen, 0.0).any() else f"{words}, zero where it is not chosen"


def _recut(here: Here) -> Iterator[str]:
    """The same numbers in the same order, with the last two axes of other lengths."""
    value, found = here.value, here.found
    if value.ndim == found.ndim == 4 and value.shape[:2] == found.shape[:2] and value.numel() == found.numel() \
            and value.shape != found.shape and alike(value.flatten(2), found.flatten(2)):
        yield f"the same numbers, but its last two axes are not {here.dims[-2]} and {here.dims[-1]}"


def _parts(here: Here) -> Iterator[str]:
    """Some of each head's numbers, for every head or once where all heads share them."""
    width = here.found.shape[-1]
    if not here.value.is_floating_point() or here.value.ndim != 4 or not 0 < width < here.value.shape[-1]:
        return
    for words, part in (("first", here.value[..., :width]), ("last", here.value[..., -width:])):
        if match(part, here.found) is not None:
            yield f"only the {words} part of each head"
        elif part.shape[1] > 1 and alike(part, part[:, :1].expand_as(part)) and match(part[:, :1], here.found):
            yield f"only the {words} part of each head, once for all heads"


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
