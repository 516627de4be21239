"""Finding the standard values among the hooks of TransformerLens's bridge, on a family's small twin.

Both libraries run the same parameters on the same token ids. A hook has a value where its tensor is the value's, up to
the order of the axes, on every block that has both.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from encyclopedia.checks.claims import MASKED
from encyclopedia.coverage import reference_record
from encyclopedia.instantiate import build_without_weights
from encyclopedia.lens.arrangement import arrangements
from encyclopedia.lens.bridge import Tensors, bridged, edits, hook_name, installed, require_adapter, run_bridge
from encyclopedia.lens.differences import Here, error_of, explain, match
from encyclopedia.lens.expected import EXPECTED
from encyclopedia.lens.records import LensName, LensRecord
from encyclopedia.model.readings import read_all
from encyclopedia.model.transformer import StandardizedTransformer
from encyclopedia.structure.parts import Structure
from encyclopedia.twin import PROMPTS, prompt_for, twin_of_model
from encyclopedia.vocabulary import VOCABULARY, Layout

#: Digits kept of an error, so that another machine writes the same numbers as often as not.
DIGITS = 1

#: Keys of a config whose numbers scale something.
FACTORS = "multiplier|scal|factor"


@dataclass
class Read:
    """A standard value as it was read on the twin.

    Attributes:
        host: its host.
        name: its name.
        layout: its layout.
        tensors: its tensors by block.
    """

    host: str
    name: str
    layout: Layout
    tensors: Tensors = field(default_factory=dict)


@dataclass(frozen=True)
class Ran:
    """A twin run twice: with the standard names, and under the bridge.

    Attributes:
        model: an untouched copy of the twin.
        structure: what it is made of.
        values: the standard values.
        hooks: what the bridge's hooks saw, by name.
        input_ids: what it was run on, ``[batch, seq]``.
        bridge: the bridge.
    """

    model: PreTrainedModel
    structure: Structure
    values: list[Read]
    hooks: dict[str, Tensors]
    input_ids: torch.Tensor
    bridge: Any


def compare_family(model_type: str) -> LensRecord:
    """What TransformerLens calls a family's values, and how what it calls so differs.

    Raises:
        NoBridge: where TransformerLens is not installed, or its bridge does not take or run the family.
    """
    full = build_without_weights(reference_record(model_type))
    require_adapter(full)
    ran = run_both(full)
    names: list[LensName] = []
    places: dict[str, str] = {}
    for read in ran.values:
        for name in _names(read, ran):
            block = min(read.tensors.keys() & ran.hooks[name.hook].keys(), key=lambda block: block or 0)
            places.setdefault(name.hook, hook_name(name.hook, block))
            names.append(name)
    acts = edits(ran.bridge, ran.input_ids[:1], list(places.values()))
    names = [name.model_copy(update={"acts": acts[places[name.hook]]}) for name in names]
    return LensRecord(transformer_lens=str(installed()), transformers=version("transformers"),
                      eager_only=_eager_only(full, list(places)), names=names)


def _eager_only(full: PreTrainedModel, hooks: list[str]) -> list[str]:
    """Those of ``hooks`` that the bridge over a model with its default attention does not run."""
    default = full.config._attn_implementation
    if default == "eager":
        return []
    twin = twin_of_model(full, attn_implementation=default)
    seen = run_bridge(bridged(twin), prompt_for(twin, batch=PROMPTS))
    return [hook for hook in hooks if hook not in seen]


def run_both(full: PreTrainedModel) -> Ran:
    """Run the twin of a model without weights with the standard names and under the bridge, on the same token ids.

    Raises:
        NoBridge: as :func:`compare_family`.
    """
    twin = twin_of_model(full)
    untouched, other = copy.deepcopy(twin), copy.deepcopy(twin)
    input_ids = prompt_for(twin, batch=PROMPTS)
    bridge = bridged(other)
    hooks = run_bridge(bridge, input_ids)
    model = StandardizedTransformer(twin)
    values: dict[tuple[str, str], Read] = {}
    for reading in read_all(model, input_ids, _copied, fake=False):
        if reading.layout is not None:
            read = values.setdefault((reading.host, reading.name), Read(reading.host, reading.name, reading.layout))
            read.tensors[reading.layer] = reading.result
    order = {(value.host, value.name): place for place, value in enumerate(VOCABULARY)}

    return Ran(untouched, model.structure, sorted(values.values(), key=lambda read: order[read.host, read.name]),
               hooks, input_ids, bridge)


def _copied(value: object) -> object:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _names(read: Read, ran: Ran) -> Iterator[LensName]:
    """The hook that holds a value, and those that are taken for it and hold something else."""
    expected = [hook for hook in EXPECTED.get((read.host, read.name), ())
                if ran.hooks.get(hook, {}).keys() & read.tensors.keys()]
    held = {hook: found for hook, tensors in ran.hooks.items() if (found := _held(read, tensors)) is not None}
    if held:
        best = min(held, key=lambda hook: _preference(hook, expected, held[hook]))
        words = [*held[best].words, *_where(list(held[best].blocks), list(read.tensors), ran)]
        yield LensName(host=read.host, value=read.name, hook=best, same=True, error=_rounded(held[best].error),
                       difference=", ".join(words) or None)
    listed: list[str] = []
    for hook in expected:
        if hook not in held and not any(_one_tensor(ran.hooks[hook], ran.hooks[other]) for other in listed):
            listed.append(hook)
            error, difference = _apart(read, hook, ran)
            yield LensName(host=read.host, value=read.name, hook=hook, same=False, error=error, difference=difference)


@dataclass(frozen=True)
class _Held:
    """That a hook holds a value: what to know about it, the largest error, and the blocks."""

    words: tuple[str, ...]
    error: float
    blocks: tuple[int | None, ...]


def _held(read: Read, tensors: Tensors) -> _Held | None:
    """How a hook holds a value, or ``None``."""
    found: dict[int | None, tuple[str, ...]] = {}
    errors = []
    for block in read.tensors.keys() & tensors.keys():
        value = read.tensors[block]
        matched = match(value, tensors[block])
        # A constant would be any other one of its shape.
        if matched is None or (value == value.flatten()[0]).all():
            return None
        arrangement, error = matched
        axes = () if arrangement.plain else (f"axes {arrangement.named(read.layout.dims)}",)
        found[block] = (*axes, *_hidden(arrangement.apply(value), tensors[block]))
        errors.append(error)
    if not found:
        return None
    return _Held(next(iter(found.values())), max(errors), tuple(found))


def _hidden(value: torch.Tensor, found: torch.Tensor) -> Iterator[str]:
    """That other numbers hide what a softmax shall not see."""
    if value.is_floating_point() and not torch.equal(value[value <= MASKED], found[value <= MASKED]):
        yield f"{found.min().item():.2g} where the value has {value.min().item():.2g}"


def _where(blocks: list[int | None], among: list[int | None], ran: Ran) -> Iterator[str]:
    """On which of the blocks, where it is not all of them."""
    if len(blocks) == len(among):
        return
    types = {block: ran.structure.kind_of(block).attention_type for block in among if block is not None}
    chosen, rest = ({types[block] for block in types if (block in blocks) == inside} for inside in (True, False))
    yield "on some blocks" if chosen & rest else f"on {' and '.join(sorted(chosen))} blocks"


def _preference(hook: str, expected: Sequence[str], held: _Held) -> tuple:
    """Hooks on more blocks first, then the expected ones, then those nearest to the block."""
    place = expected.index(hook) if hook in expected else len(expected)
    return -len(held.blocks), place, hook.count("."), hook.endswith("hook_in"), len(hook), hook


def _one_tensor(tensors: Tensors, others: Tensors) -> bool:
    return tensors.keys() == others.keys() and all(torch.equal(tensors[block], others[block]) for block in tensors)


def _apart(read: Read, hook: str, ran: Ran) -> tuple[float | None, str]:
    """The largest error of a hook that is taken for a value, and how it differs."""
    tensors = ran.hooks[hook]
    errors: list[float] = []
    sentences: dict[str, list[int | None]] = {}
    shared = [block for block in read.tensors if block in tensors]
    for block in shared:
        value, found = read.tensors[block], tensors[block]
        if match(value, found) is not None:
            continue
        laid_out = next((arrangement.apply(value) for arrangement in arrangements(value.shape, found.shape)), None)
        error = math.inf if laid_out is None else error_of(laid_out, found)
        errors += [error] if math.isfinite(error) else []
        here = Here(read.name, read.layout.dims, value, found, _others(read, block, ran), _layers(ran, block),
                    _factors(ran.model.config.to_dict()))
        plain = "of another shape" if laid_out is None else "another tensor"
        sentences.setdefault(explain(here) or plain, []).append(block)
    differences = [" ".join([sentence, *_where(blocks, shared, ran)]) for sentence, blocks in sentences.items()]
    return _rounded(max(errors)) if errors else None, "; ".join(differences)


def _others(read: Read, block: int | None, ran: Ran) -> dict[str, torch.Tensor]:
    return {other.name: other.tensors[block] for other in ran.values
            if other.name != read.name and block in other.tensors}


def _layers(ran: Ran, block: int | None) -> dict[str, nn.Module]:
    """Modules without children: of a block, or of the model around the blocks."""
    blocks = ran.structure.stack.layers
    inside = ran.model if block is None else ran.model.get_submodule(f"{blocks}.{block}")
    return {path: module for path, module in inside.named_modules()
            if not any(module.children()) and not (block is None and path.startswith(blocks))}


def _factors(config: Mapping[str, Any]) -> dict[str, float]:
    """The config's numbers that scale something, by key."""
    found = {key: value for key, value in config.items()
             if isinstance(value, int | float) and value not in (0, 1) and re.search(FACTORS, key)}
    for value in config.values():
        found |= _factors(value) if isinstance(value, dict) else {}
    return found


def _rounded(error: float) -> float:
    return float(f"{error:.{DIGITS}g}")
