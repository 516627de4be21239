"""The live model: nnsight's transformers model, carrying the standard names."""

from __future__ import annotations

from typing import Any

import torch
from nnsight.modeling.mixins.meta import MetaDevice
from nnsight.modeling.transformers import TransformersModel
from torch._guards import detect_fake_mode
from transformers import PreTrainedModel

from encyclopedia.checkpoints import recorded
from encyclopedia.families import family
from encyclopedia.instantiate import build_without_weights
from encyclopedia.model.envoys import StandardHost, carries
from encyclopedia.model.errors import NoWeights
from encyclopedia.model.hosts import Unconfirmed, root_names, standardize
from encyclopedia.model.locations import parse_all, root_locations
from encyclopedia.model.rotary import settled_rotary
from encyclopedia.structure.derive import structure_of
from encyclopedia.structure.parts import Kind, Structure
from encyclopedia.structure.sizes import stated
from encyclopedia.structure.stack import Stack, without_weights
from encyclopedia.vocabulary import HOSTS

#: Config attributes behind the root's sizes.
_SIZES = {
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
        unconfirmed: values not to serve because a run did not confirm them. Left out, a model whose family has no
            module of its own is checked on its small twin first.
        **kwargs: passed on to nnsight and transformers, such as ``attn_implementation="eager"`` and ``dtype``.

    Raises:
        UnknownStructure: where a part that the standard names need is not found.
    """

    host = "model"

    def __init__(self, source: str | torch.nn.Module, *args: Any, tokenizer: Any = None,
                 unconfirmed: Unconfirmed | None = None, **kwargs: Any) -> None:
        kwargs.setdefault("task", "text-generation")
        self.locations = {}
        self._structure: Structure | None = None
        self._unconfirmed = unconfirmed
        #: Batch size and sequence length of the running call.
        self.tokens: tuple[int, int] | None = None
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
        # nnsight builds a model that is not loaded yet under a mode that puts all tensors on meta; a twin computes.
        with MetaDevice.real():
            return self._learned(module)

    def _learned(self, module: PreTrainedModel) -> PreTrainedModel:
        self._structure = structure_of(module)
        declared = family(module.config.model_type).on(module.config)
        if self._unconfirmed is None:
            # What confirms values wraps models itself.
            from encyclopedia.checks.confirming import unconfirmed_of

            self._unconfirmed = unconfirmed_of(module, declared)
        standard = standardize(module, self._structure, declared, self._unconfirmed)
        stack = self._structure.stack
        places = root_locations(stack, root_names(module, stack))
        width = getattr(module.get_submodule(stack.embed_tokens), "embedding_dim", None)
        if width is not None and width != stated(module.config, "hidden_size"):
            # A row that is projected before it enters the stream is no vector of it.
            del places["token_embeddings"]
        self.locations = parse_all(places)
        self.unconfirmed = self._unconfirmed.get((type(module).__name__, "model"), {})
        module.register_forward_pre_hook(self._remember_tokens, with_kwargs=True)
        self._host_classes.update(standard.host_classes)
        self._standard_names.update(standard.aliases)
        return module

    def _remember_tokens(self, module: torch.nn.Module, arguments: tuple, keywords: dict) -> None:
        ids = arguments[0] if arguments else keywords.get("input_ids")
        given = keywords.get("inputs_embeds") if ids is None else ids
        self.tokens = None if given is None else tuple(given.shape[:2])

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
        return self.structure.stack

    @property
    def structure(self) -> Structure:
        """What the native model is made of."""
        assert self._structure is not None
        return self._structure

    @property
    def left_out(self) -> Unconfirmed:
        """The values that are not served because no run confirmed them, by native class and host."""
        return self._unconfirmed or {}

    @property
    def num_layers(self) -> int:
        """How many blocks the stack has."""
        return self.structure.depth

    @property
    def head_dim(self) -> int:
        """Width of a value head, from the first kind of block that has one."""
        return self._size_of_blocks("head_dim")

    @property
    def qk_head_dim(self) -> int:
        """Width of a query or key head."""
        return self._size_of_blocks("qk_head_dim")

    def _attention_first(self) -> list[Kind]:
        """The kinds of blocks, those with a softmax attention first: their heads are the ones that the root means."""
        return sorted(self.structure.kinds, key=lambda kind: kind.sublayer("self_attn") is None)

    def _size_of_blocks(self, name: str) -> int:
        """A size that the config does not spell, from the first kind of block that has it."""
        for kind in self._attention_first():
            if name in kind.sizes:
                return kind.sizes[name]
        raise AttributeError(f"no block of {type(self._module).__name__} states its {name}")

    def __getattr__(self, name: str) -> Any:
        if name in _SIZES:
            return stated(self.config, _SIZES[name])
        return super().__getattr__(name)

    def sizes(self) -> dict[str, int]:
        """The root's sizes by their standard names."""
        names = ("num_layers", "hidden_size", "num_heads", "num_kv_heads", "head_dim", "qk_head_dim", "vocab_size",
                 "intermediate_size")
        blocks = {name: number for kind in reversed(self._attention_first()) for name, number in kind.sizes.items()}
        found = {name: getattr(self, name, None) for name in names}
        stated = {name: number if isinstance(number, int) else blocks.get(name) for name, number in found.items()}
        return {name: number for name, number in stated.items() if number is not None}

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
        sublayers = [(name, getattr(block, name, None)) for name in HOSTS if name not in ("model", "layer")]
        return [block, *(host for name, host in sublayers if isinstance(host, StandardHost) and host.host == name)]

    def host_at(self, layer: int, name: str) -> StandardHost:
        """The host of block ``layer`` that is called ``name``."""
        return next(host for host in self.hosts(layer) if host.host == name)

    def project_on_vocab(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """The logits that the final norm and the head make of a residual stream.

        Args:
            hidden_states: ``[..., hidden_size]``; inside a trace or out of one.

        Returns:
            ``[..., vocab_size]``.
        """
        head, norm = self.get(self.stack.lm_head), self.stack.norm
        return head(hidden_states if norm is None else self.get(norm)(hidden_states))

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
