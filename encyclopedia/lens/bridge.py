"""Running TransformerLens's bridge on a native model, offline and without weight processing."""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
from transformers import PreTrainedModel

#: A hook's tensors by the block's index, ``None`` for one that stands in no block.
Tensors = dict[int | None, torch.Tensor]

#: Least change of the logits, over their largest magnitude, that is no rounding.
CHANGED = 1e-4


class NoBridge(Exception):
    """A model that the bridge does not take, with the reason."""


def installed() -> str | None:
    """The installed release of TransformerLens, or ``None``."""
    try:
        return version("transformer-lens")
    except PackageNotFoundError:
        return None


def require_adapter(model: PreTrainedModel) -> None:
    """Check that the bridge knows the class of ``model``.

    Raises:
        NoBridge: where it does not, or TransformerLens is not installed.
    """
    if installed() is None:
        raise NoBridge("TransformerLens is not installed: pip install 'encyclopedia[lens]'")
    from transformer_lens.factories.architecture_adapter_factory import SUPPORTED_ARCHITECTURES

    if type(model).__name__ not in SUPPORTED_ARCHITECTURES:
        raise NoBridge(f"TransformerLens {installed()} has no adapter for {type(model).__name__}")


def bridged(model: PreTrainedModel) -> Any:
    """The bridge over ``model``, which it changes in place; no tokenizer, no weight processing.

    Raises:
        NoBridge: where TransformerLens is not installed, or does not take the model.
    """
    require_adapter(model)
    architecture = type(model).__name__
    from transformer_lens.model_bridge.sources import build_bridge_from_module

    try:
        return build_bridge_from_module(model, architecture, hf_config=model.config)
    except Exception as error:
        raise NoBridge(f"the bridge of TransformerLens {installed()} does not take {architecture}: "
                       f"{' '.join(str(error).split())}") from error


def run_bridge(bridge: Any, input_ids: torch.Tensor) -> dict[str, Tensors]:
    """What the bridge's hooks saw, by name, ``{i}`` standing for the block's index.

    Raises:
        NoBridge: where the bridge does not run.
    """
    try:
        with torch.no_grad():
            _, cache = bridge.run_with_cache(input_ids)
    except Exception as error:
        raise NoBridge(f"the bridge of TransformerLens {installed()} fails on {type(bridge.original_model).__name__}: "
                       f"{' '.join(str(error).split())}") from error
    found: dict[str, Tensors] = defaultdict(dict)
    for name, tensor in cache.items():
        if isinstance(tensor, torch.Tensor):
            template, block = split_name(name)
            found[template][block] = tensor
    return dict(found)


def edits(bridge: Any, input_ids: torch.Tensor, hooks: Sequence[str]) -> dict[str, bool | None]:
    """For each of ``hooks``, whether an edit there changes the logits; ``None`` where the bridge fails on one.

    One call tries them all: each hook edits a row of the batch of its own, and no row sees another. Where that fails,
    each is tried alone.

    Args:
        bridge: the bridge.
        input_ids: ``[1, seq]``.
        hooks: the hooks' full names.
    """
    rows = len(hooks) + 1

    def editing(row: int) -> Callable[..., torch.Tensor]:
        def edit(tensor: torch.Tensor, *, hook: Any) -> torch.Tensor:
            edited = tensor.clone().unflatten(0, (rows, -1))
            own = edited[row].clone()
            edited[row] = own + own.roll(1, -1) / 2 if own.is_floating_point() else own.flip(0 if len(own) > 1 else 1)
            return edited.flatten(0, 1)

        return edit

    with torch.no_grad(), warnings.catch_warnings():
        # Where an edit makes the bridge compute a norm itself, it says so.
        warnings.simplefilter("ignore")
        editors = [(hook, editing(row)) for row, hook in enumerate(hooks, start=1)]
        try:
            logits = bridge.run_with_hooks(input_ids.expand(rows, -1), fwd_hooks=editors)
        except Exception:
            alone = [edits(bridge, input_ids, [hook]) for hook in hooks] if len(hooks) > 1 else [{hooks[0]: None}]
            return {hook: acts for each in alone for hook, acts in each.items()}
    least = CHANGED * logits[0].abs().max()
    return {hook: bool((logits[row] - logits[0]).abs().max() > least) for row, hook in enumerate(hooks, start=1)}


def hook_name(template: str, block: int | None) -> str:
    """The name that :func:`split_name` splits."""
    return template if block is None else template.replace("{i}", str(block))


def split_name(name: str) -> tuple[str, int | None]:
    """A hook's name with ``{i}`` for the block's index, and that index."""
    inside = re.match(r"blocks\.(\d+)\.", name)
    if inside is None:
        return name, None
    return f"blocks.{{i}}.{name[inside.end():]}", int(inside[1])
