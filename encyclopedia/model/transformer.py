"""The live model: nnsight's transformers model, carrying the standard names."""

from __future__ import annotations

from typing import Any

import torch
from nnsight.modeling.transformers import TransformersModel
from torch._guards import detect_fake_mode
from transformers import PreTrainedModel

from encyclopedia.checkpoints import recorded
from encyclopedia.families import family
from encyclopedia.model.build import build_without_weights
from encyclopedia.model.envoys import StandardHost, carries
from encyclopedia.model.errors import NoWeights
from encyclopedia.model.hosts import standardize
from encyclopedia.model.locations import parse_all, root_locations
from encyclopedia.model.rotary import settled_rotary
from encyclopedia.model.structure import Stack, find_stack, without_weights
from encyclopedia.vocabulary import HOSTS

#: Config attributes behind the root's sizes.
_SIZES = {
    "num_layers": "num_hidden_layers",
    "hidden_size": "hidden_size",
    "num_heads": "num_attention_heads",
    "num_kv_heads": "num_key_value_heads",
    "vocab_size": "vocab_size",
    "intermediate_size": "intermediate_size",
}


class Untokenized:
    """Stands where nnsight keeps a transformers pipeline, for a module without a tokenizer."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.model = model

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise TypeError("this model has no tokenizer: pass token ids [batch, seq], or tokenizer= when you wrap it")


@carries("model")
class StandardizedTransformer(TransformersModel, StandardHost):
    """A causal language model whose parts and values have standard names.

    ``model.layers[i].self_attn.attention_scores`` and every other value of the vocabulary reads inside
    ``with model.trace(prompt):``, and can be assigned where that makes sense. ``trace``, ``scan`` and ``generate``
    are nnsight's own.

    Args:
        source: a hub id, a local folder, or a loaded transformers module.
        tokenizer: for a loaded module; without one, ``trace`` and ``scan`` take token ids.
        **kwargs: passed on to nnsight and transformers, such as ``attn_implementation="eager"`` and ``dtype``.

    Raises:
        UnknownStructure: where a part that the standard names need is not found.
    """

    host = "model"

    def __init__(self, source: str | torch.nn.Module, *args: Any, tokenizer: Any = None, **kwargs: Any) -> None:
        kwargs.setdefault("task", "text-generation")
        self.locations = parse_all(root_locations())
        self._native_stack: Stack | None = None
        # nnsight takes both maps before it has the module; `_learn` fills them as soon as there is one.
        self._host_classes: dict = {}
        self._standard_names: dict = {}
        super().__init__(source, *args, tokenizer=tokenizer, envoys=self._host_classes, rename=self._standard_names,
                         **kwargs)

    @classmethod
    def from_recorded(cls, checkpoint: str, **kwargs: Any) -> StandardizedTransformer:
        """The model of a recorded checkpoint, at full size and without weights.

        Args:
            checkpoint: a recorded id, such as ``SmallDoge/Doge-260M``.
            **kwargs: ``attn_implementation``, ``experts_implementation`` or ``dtype``.

        Raises:
            KeyError: naming the id and the nearest recorded one.
            BrokenConfig: where the recorded config does not build.
        """
        return cls(build_without_weights(recorded(checkpoint), **kwargs))

    def _wrap(self, module: torch.nn.Module, *args: Any, **kwargs: Any) -> torch.nn.Module:
        if self.tokenizer is not None:
            module = super()._wrap(module, *args, **kwargs)
        else:
            self.pipeline = Untokenized(module)
        return self._learn(module)

    def _load(self, repo_id: str, *args: Any, **kwargs: Any) -> torch.nn.Module:
        return self._learn(super()._load(repo_id, *args, **kwargs))

    def _load_meta(self, repo_id: str, *args: Any, **kwargs: Any) -> torch.nn.Module:
        return self._learn(super()._load_meta(repo_id, *args, **kwargs))

    def _loaded_preprocessors(self) -> set[str]:
        # nnsight asks the pipeline's class, and transformers gives only that class's name until it was imported.
        return {"tokenizer"}

    def _learn(self, module: PreTrainedModel) -> PreTrainedModel:
        self._native_stack = find_stack(module, module.config)
        standard = standardize(module, self._native_stack, family(module.config.model_type))
        self._host_classes.update(standard.host_classes)
        self._standard_names.update(standard.aliases)
        return module

    def interleave(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        if detect_fake_mode() is not None:
            with settled_rotary(self._module):
                return super().interleave(fn, *args, **kwargs)
        if self.dispatched and without_weights(self._module):
            raise NoWeights(f"{type(self._module).__name__} was built without weights: use scan(), which reads shapes")
        return super().interleave(fn, *args, **kwargs)

    @property
    def stack(self) -> Stack:
        """Native paths of the embedding, blocks, final norm and head."""
        assert self._native_stack is not None
        return self._native_stack

    @property
    def head_dim(self) -> int:
        """Width of a value head, from the config."""
        config = self.config
        return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads

    @property
    def qk_head_dim(self) -> int:
        """Width of a query or key head."""
        return getattr(self.config, "qk_head_dim", None) or self.head_dim

    def __getattr__(self, name: str) -> Any:
        if name in _SIZES:
            return getattr(self.config, _SIZES[name])
        return super().__getattr__(name)

    def sizes(self) -> dict[str, int]:
        """The root's sizes by their standard names."""
        return {name: getattr(self, name) for name in (
            "num_layers", "hidden_size", "num_heads", "num_kv_heads", "head_dim", "qk_head_dim", "vocab_size",
            "intermediate_size")}

    def support(self, layer: int | None = None) -> dict[str, dict[str, str | None]]:  # type: ignore[override]
        """For each host and value: ``None``, or why this load has not got it.

        Args:
            layer: one block's table; without it, a value counts as missing where any block that carries it lacks
                it, with those blocks named.

        Returns:
            A table by host expression (``model.layers[i].self_attn``) and value name.
        """
        table: dict[str, dict[str, str | None]] = {HOSTS["model"]: super().support()}
        blocks = range(self.num_layers) if layer is None else [layer]
        lacking: dict[tuple[str, str], dict[str, list[int]]] = {}
        for index in blocks:
            for host in self.hosts(index):
                rows = table.setdefault(HOSTS[host.host], {})
                for name, reason in host.support().items():
                    rows.setdefault(name, None)
                    if reason is not None:
                        lacking.setdefault((HOSTS[host.host], name), {}).setdefault(reason, []).append(index)
        for (expression, name), reasons in lacking.items():
            table[expression][name] = "; ".join(
                _on_blocks(reason, found, len(blocks)) for reason, found in reasons.items())
        return table

    def hosts(self, layer: int) -> list[StandardHost]:
        """The hosts of one block: the block itself, then its sublayers in forward order."""
        block = self.layers[layer]
        sublayers = [getattr(block, name, None) for name in HOSTS if name not in ("model", "layer")]
        return [block, *(host for host in sublayers if isinstance(host, StandardHost))]

    def project_on_vocab(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """The logits that the final norm and the head make of a residual stream.

        Args:
            hidden_states: ``[..., hidden_size]``; inside a trace or out of one.

        Returns:
            ``[..., vocab_size]``.
        """
        return self.lm_head(self.norm(hidden_states))

    def __repr__(self) -> str:
        container = self.stack.container.partition(".")[0]
        named = [(name, child) for name, child in self._named_children() if name != container]
        mounted = [(alias, getattr(self, alias)) for alias, path in self._aliases.items() if "." in path]
        lines = [f"({name}): {_indented(repr(child))}" for name, child in (*named, *mounted)]
        lines += [str(getattr(type(self), name)) for name in self.values()]
        return "\n  ".join([f"{type(self._module).__name__}(", *lines]) + "\n)"


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


def _on_blocks(reason: str, found: list[int], total: int) -> str:
    if len(found) == total:
        return reason
    return f"{reason} (on {len(found)} of {total} blocks, the first is {found[0]})"
