"""Building the twin of a model: a small config whose blocks are those it keeps, then parameters of its own."""

from __future__ import annotations

import copy
import itertools
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn
from transformers import AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel

from encyclopedia.checkpoints import RecordedCheckpoint
from encyclopedia.instantiate import build_without_weights
from encyclopedia.structure.kinds import group_blocks, switches_of
from encyclopedia.structure.stack import blocks_of, find_stack, model_key
from encyclopedia.twin.config import computed_keys, cut_config, shrink
from encyclopedia.twin.depth import chosen_blocks, other_remainders, run_starts
from encyclopedia.twin.parameters import randomize
from encyclopedia.twin.prompt import prompt_for

#: Most proposals for the keys that choose a block's kind by its index.
PROPOSALS = 400


#: How many plans are kept, and the attributes that say which model another is a twin of, or was cut from.
PLANS_KEPT = 64
_TWIN_OF = "_twin_of"
_CUT_FROM = "_cut_from"

_plans: OrderedDict[tuple[type, str], Plan] = OrderedDict()


class NoTwin(Exception):
    """No small config was found whose blocks are those of the full model."""


@dataclass(frozen=True)
class Plan:
    """What a twin is built from.

    Attributes:
        blocks: indices of the full model's blocks that it keeps, in order.
        depth: how many blocks the full model has.
        computed: keys that the config's class computes.
        tied: whether the stream stays as wide as its heads side by side.
        first_index: what the config calls the first block in its lists of blocks.
        changed: entries of the config that choose a block's kind by its index.
        exact: whether lists of modules inside a block are as long as the full model's.
    """

    blocks: tuple[int, ...]
    depth: int
    computed: frozenset[str]
    tied: bool = False
    first_index: int = 0
    changed: Mapping[str, int] = field(default_factory=dict)
    exact: bool = True

    def shrink(self, config: PreTrainedConfig, *, tied: bool | None = None) -> PreTrainedConfig:
        """The small config for a full one."""
        return shrink(config, self.blocks, depth=self.depth, tied=self.tied if tied is None else tied,
                      first_index=self.first_index, changed=self.changed, computed=self.computed)


def twin_of(record: RecordedCheckpoint, *, seed: int = 0, **kwargs: Any) -> PreTrainedModel:
    """The small twin of a recorded checkpoint; the same seed gives the same model.

    Args:
        record: the checkpoint.
        seed: of the parameters' draw.
        **kwargs: ``attn_implementation`` or ``experts_implementation`` for the load, eager attention by default.

    Returns:
        A float32 causal model in evaluation mode.
    """
    return twin_of_model(build_without_weights(record), seed=seed, **kwargs)


def twin_of_model(full: PreTrainedModel, *, seed: int = 0, **kwargs: Any) -> PreTrainedModel:
    """The small twin of a model built without weights; see :func:`twin_of`.

    Raises:
        NoTwin: where no small config has the full model's kinds of blocks and runs.
    """
    plan, proposed = _planned(full)
    experts = kwargs.pop("experts_implementation", None)
    kwargs.setdefault("attn_implementation", "eager")
    reason: Exception | None = None
    for tied in dict.fromkeys((plan.tied, True)):
        small = proposed if tied == plan.tied else plan.shrink(full.config, tied=True)
        if experts is not None:
            small._experts_implementation = experts
        try:
            twin = _runs(_built(small, seed, **kwargs))
            vars(twin)[_TWIN_OF] = model_key(full)
            return twin
        except Exception as error:
            reason = reason or error
    raise NoTwin(f"{type(full).__name__}: its small config builds and does not run ({reason})") from reason


def twinned(model: nn.Module) -> tuple[type, str] | None:
    """The key of the model that ``model`` is a twin of, or ``None`` where it is none."""
    return vars(model).get(_TWIN_OF)


def cut_from(model: nn.Module) -> tuple[type, str] | None:
    """The key of the model that ``model`` was cut from, or ``None`` where it was not."""
    return vars(model).get(_CUT_FROM)


def redrawn(twin: PreTrainedModel, seed: int = 0) -> PreTrainedModel:
    """Another draw of a twin, with eager attention, in which a softmax is seen."""
    again = _built(copy.deepcopy(twin.config), seed, attn_implementation="eager")
    vars(again)[_TWIN_OF] = twinned(twin)
    return again


def _planned(full: PreTrainedModel) -> tuple[Plan, PreTrainedConfig]:
    """The plan for ``full``, found once, and a config of its own to build from."""
    key = model_key(full)
    if key not in _plans:
        _plans[key] = plan_of(full)[0]
        while len(_plans) > PLANS_KEPT:
            _plans.popitem(last=False)
    return _plans[key], _plans[key].shrink(full.config)


def _built(config: PreTrainedConfig, seed: int, **kwargs: Any) -> PreTrainedModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, **kwargs).eval()
    randomize(model, seed)
    return model


def _runs(model: PreTrainedModel) -> PreTrainedModel:
    """``model``, which a short prompt ran through."""
    prompt = prompt_for(model)
    with torch.no_grad():
        model(input_ids=prompt, attention_mask=torch.ones_like(prompt), use_cache=False)
    return model


def blocks_kept(full: PreTrainedModel) -> list[int]:
    """The blocks of ``full`` that its twin keeps, in order."""
    return list(_planned(full)[0].blocks)


def cut_model(full: PreTrainedModel) -> tuple[PreTrainedModel, dict[int, int]] | None:
    """A model of full width, without weights, that keeps only the blocks a twin keeps, in the precision of ``full``.

    Returns:
        The model, and its block for each one of ``full`` that it keeps; ``None`` where no such model is like ``full``
        in every parameter of those blocks.
    """
    plan = _planned(full)[0]
    try:
        config = cut_config(full.config, plan.blocks, depth=plan.depth, first_index=plan.first_index,
                            computed=plan.computed)
        for key, value in plan.changed.items():
            setattr(config, key, value)
        with torch.device("meta"):
            cut = AutoModelForCausalLM.from_config(
                config, attn_implementation=full.config._attn_implementation, dtype=full.dtype).eval()
        large, kept = list(blocks_of(full, find_stack(full))), list(blocks_of(cut, find_stack(cut)))
        alike = not difference([large[index] for index in plan.blocks], len(group_blocks(full, find_stack(full))), cut)
    except Exception:
        return None
    vars(cut)[_CUT_FROM] = model_key(full)
    pairs = [(large[index], block) for index, block in zip(plan.blocks, kept, strict=False)]
    if not alike or any(_parameters(one) != _parameters(other) for one, other in pairs):
        return None
    return cut, {index: position for position, index in enumerate(plan.blocks)}


def rebuilt(model: PreTrainedModel, *, dtype: torch.dtype | None = None) -> PreTrainedModel:
    """``model``, which has no weights, built once more, in ``dtype`` or its own; what it was cut from is remembered."""
    with torch.device("meta"):
        again = AutoModelForCausalLM.from_config(
            model.config, attn_implementation=model.config._attn_implementation, dtype=dtype or model.dtype).eval()
    vars(again)[_CUT_FROM] = cut_from(model)
    return again


def _parameters(block: nn.Module) -> list[tuple[str, torch.Size, torch.dtype]]:
    return [(name, parameter.shape, parameter.dtype) for name, parameter in block.named_parameters()]


def plan_of(full: PreTrainedModel) -> tuple[Plan, PreTrainedConfig]:
    """The blocks to keep and the small config that makes them.

    Raises:
        NoTwin: where no proposal has the full model's kinds of blocks.
    """
    stack = find_stack(full)
    blocks = list(blocks_of(full, stack))
    kinds = group_blocks(full, stack)
    reason: Exception | str = "no proposal was made"
    for plan in itertools.islice(_proposals(full.config, kinds, len(blocks)), PROPOSALS):
        try:
            config = plan.shrink(full.config)
            with torch.device("meta"):
                small = AutoModelForCausalLM.from_config(config)
            reason = difference([blocks[index] for index in plan.blocks], len(kinds), small, exact=plan.exact)
        except Exception as error:
            reason = error
            continue
        if not reason:
            return plan, config
    raise NoTwin(f"{type(full).__name__}: no small config keeps its kinds of blocks ({reason})") from (
        reason if isinstance(reason, Exception) else None)


def difference(blocks: list[nn.Module], kinds: int, small: PreTrainedModel, *, exact: bool = True) -> str:
    """What keeps the blocks of ``small`` from standing for ``blocks``; empty where nothing does.

    Args:
        blocks: full-size blocks.
        kinds: how many kinds of blocks the full model has.
        small: a model with a block for each of ``blocks``.
        exact: whether lists of modules inside a block have to be as long.
    """
    stack = find_stack(small)
    found = list(blocks_of(small, stack))
    if len(found) != len(blocks):
        return f"{len(found)} blocks instead of {len(blocks)}"
    for index, (large, little) in enumerate(zip(blocks, found, strict=True)):
        if modules_of(large, exact=exact) != modules_of(little, exact=exact):
            return f"block {index} has other modules"
        changed = set(switches_of(large).items()) ^ set(switches_of(little).items())
        if changed and exact:
            return f"block {index} has other switches: {', '.join(sorted({key for key, _ in changed}))}"
    count = len(group_blocks(small, stack))
    return "" if count == kinds or not exact else f"{count} kinds of blocks instead of {kinds}"


def modules_of(block: nn.Module, *, exact: bool = True) -> list[tuple[str, str]]:
    """Paths and classes of a block's modules, each once where lists need not be as long."""
    found = [(path, type(module).__name__) for path, module in block.named_modules()]
    return found if exact else list(dict.fromkeys((re.sub(r"\d+", "*", path), name) for path, name in found))


def _proposals(config: PreTrainedConfig, kinds: list[tuple[int, ...]], depth: int) -> Iterator[Plan]:
    """Plans to try, plainest first."""
    full = config.to_dict()
    once = chosen_blocks(kinds, depth, run_starts(full, depth))
    twice = sorted({index for kind in kinds for index in kind[:2]})
    computed = frozenset(computed_keys(config))
    for exact, blocks, tied in itertools.product((True, False), (once, twice), (False, True)):
        plan = Plan(tuple(blocks), depth, computed, tied=tied, exact=exact)
        yield plan
        yield replace(plan, first_index=1)
        if exact:
            for changed in other_remainders(full, len(blocks)):
                yield replace(plan, changed=changed)
