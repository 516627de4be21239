"""The hosts: envoys that carry the standard values of one module.

The classes here list what each host serves, in the order it prints; a class built by :func:`serving` for one native
module class says where.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

import torch
from nnsight.intervention.envoy import Envoy
from nnsight.intervention.interleaver import Mediator

from encyclopedia.location import Location
from encyclopedia.model.availability import load_condition
from encyclopedia.model.errors import Unavailable
from encyclopedia.model.value import CallArgument, InputSize, NextTokenProbs, StandardValue
from encyclopedia.structure.held import to_held, to_layout
from encyclopedia.structure.recurrent import Recurrent, mixer_sizes
from encyclopedia.vocabulary import HEAD_OUTPUTS, HOSTS, Layout, Value, values_of

HostClass = TypeVar("HostClass", bound=type)

_SPECIAL: dict[str, type[StandardValue]] = {
    "next_token_probs": NextTokenProbs,
    "input_ids": CallArgument,
    "attention_mask": CallArgument,
    "input_size": InputSize,
}


def descriptors(host: str, *names: str, flavour: str | None = None) -> dict[str, StandardValue]:
    """Descriptors for the named values of ``host``, all of them where no name is given, in order."""
    table = values_of(host, flavour)
    return {name: _special(table[name]) for name in names or table}


def _special(value: Value) -> StandardValue:
    return _SPECIAL.get(value.name, StandardValue)(value)


def carries(host: str, *names: str) -> Callable[[HostClass], HostClass]:
    """Class decorator: give the class descriptors for the named values of ``host``, in that order."""

    def decorate(host_class: HostClass) -> HostClass:
        for name, descriptor in descriptors(host, *names).items():
            setattr(host_class, name, descriptor)
        return host_class

    return decorate


class StandardHost(Envoy):
    """An envoy that carries standard values.

    Attributes:
        host: key of :data:`encyclopedia.vocabulary.HOSTS`.
        locations: where each value is read, from this envoy.
        withdrawn: values this class never serves, with the reason.
        unconfirmed: values with a derived place that no run confirmed, with the reason.
        hidden: values whose names the native module has for children of its own, so that it cannot carry them.
    """

    host: ClassVar[str]
    hidden: ClassVar[frozenset[str]] = frozenset()
    locations: Mapping[str, Location] = {}
    withdrawn: Mapping[str, str] = {}
    unconfirmed: Mapping[str, str] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._instrument()

    def _update(self, module: torch.nn.Module) -> None:
        super()._update(module)
        self._instrument()

    def _instrument(self) -> None:
        # nnsight serves an operation only where the forward was instrumented before the call began.
        for location in self.locations.values():
            if "source" in location.steps:
                envoy: Any = self
                for step in location.modules:
                    envoy = envoy.parent if step == ".." else getattr(envoy, step)
                _ = envoy.source

    @classmethod
    def values(cls) -> dict[str, Value]:
        """The standard values this class carries, in printing order."""
        found: dict[str, Value] = {}
        for klass in cls.__mro__:
            for name, attribute in vars(klass).items():
                if isinstance(attribute, StandardValue) and name not in cls.hidden:
                    found.setdefault(name, attribute.value)
        return found

    @classmethod
    def layout_of(cls, name: str) -> Layout | None:
        """The layout of the value ``name`` here."""
        return getattr(cls, name).value.layout

    @property
    def config(self) -> Any:
        """The model's transformers config."""
        return self.root._module.config

    @property
    def later(self) -> tuple[str, ...]:
        """Values that a first call has not got, because they come from an earlier one."""
        return ()

    @property
    def calls(self) -> Mapping[str, str]:
        """By value, the calls that alone have it, as a condition in words."""
        return {}

    @property
    def axes(self) -> Mapping[str, int]:
        """Lengths of axes that are this host's own."""
        return {}

    @property
    def layer(self) -> int:
        """The index of the block this host belongs to."""
        return int(self.path.removeprefix(f"{self.root.path}.{self.root.structure.stack.layers}.").split(".")[0])

    def size(self, name: str) -> int:
        """A size of this host's block by its standard name.

        Raises:
            KeyError: where the block's modules state no such size.
        """
        return self.root.structure.kind_of(self.layer).sizes[name]

    def unavailable(self, name: str) -> str | None:
        """Why this load has not got the value ``name`` here; ``None`` where it has."""
        for left_out in (self.withdrawn, self.unconfirmed):
            if name in left_out:
                return left_out[name]
        location = self.locations.get(name)
        if location is None:
            return f"{type(self._module).__name__} has no place where {name} could be read"
        return load_condition(location, self._module, self.config)

    def require(self, name: str) -> None:
        """Raise :class:`Unavailable` where this load has not got the value ``name``."""
        reason = self.unavailable(name)
        if reason is not None:
            raise Unavailable(f"{self.path}.{name} is not available on this load: {reason}")

    def support(self) -> dict[str, str | None]:
        """For each value this host carries: ``None``, or why this load has not got it."""
        return {name: self.unavailable(name) for name in self.values()}

    def unfold(self, value: Value, tensor: Any) -> Any:
        """``tensor`` as the model holds it, in the layout of ``value``; one that lies flat over tokens is split."""
        layout, tokens = value.layout, self.root.tokens
        if layout is None or tokens is None or layout.dims[:2] != ("batch", "seq") \
                or tensor.ndim != len(layout.dims) - 1:
            return tensor
        batch, seq = tokens
        rows = self._rows(tensor)
        if rows is not None:
            tensor = tensor[rows]
        return tensor.unflatten(0, (-1, seq if tensor.shape[0] != batch * seq else tensor.shape[0] // batch))

    def fold(self, value: Value, tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        """``tensor`` in a value's layout, in the shape of ``like``, which the model holds."""
        rows = self._rows(like) if tensor.ndim != like.ndim else None
        if rows is not None:
            return torch.cat([like[: rows.start], tensor.flatten(0, 1), like[rows.stop:]])
        return tensor.reshape(like.shape) if tensor.shape != like.shape else tensor

    def _rows(self, flat: torch.Tensor) -> slice | None:
        """The rows of ``flat`` that belong to the running invoke, where nnsight has not narrowed it already.

        Several invokes share one forward; nnsight narrows tensors whose first axis is the batch, and these are flat.
        """
        mediator = Mediator.current("a value that lies flat over tokens")
        batcher = mediator.interleaver.batcher
        if batcher is None or not batcher.batching or mediator.batch_group is None or self.root.tokens is None:
            return None
        batch, seq = self.root.tokens
        if flat.shape[0] != batch * seq or flat.shape[0] == batcher.total:
            return None
        start, size = mediator.batch_group
        return slice(start * seq, (start + size) * seq)


@carries("layer")
class Block(StandardHost):
    """One block of the stack."""

    host = "layer"


@carries("self_attn")
class Attention(StandardHost):
    """A block's softmax attention, with its own sizes."""

    host = "self_attn"

    @property
    def num_heads(self) -> int:
        """Query heads of this block."""
        return self.size("num_heads")

    @property
    def num_kv_heads(self) -> int:
        """Key/value heads of this block."""
        return self.size("num_kv_heads")

    @property
    def head_dim(self) -> int:
        """Width of a value head."""
        return self.size("head_dim")

    @property
    def qk_head_dim(self) -> int:
        """Width of a query or key head."""
        return self.size("qk_head_dim")

    def unfold(self, value: Value, tensor: Any) -> Any:
        if value.layout is HEAD_OUTPUTS and tensor.ndim == 3:
            return tensor.unflatten(-1, (-1, self.head_dim))
        return super().unfold(value, tensor)


class RecurrentMixer(StandardHost):
    """A block's recurrent mixer, with the values and layouts of its flavour.

    Attributes:
        recurrent: what was derived for the native class.
    """

    host = "linear_attn"
    recurrent: ClassVar[Recurrent]

    @property
    def later(self) -> tuple[str, ...]:
        return self.recurrent.later

    @property
    def calls(self) -> Mapping[str, str]:
        return self.recurrent.conditions

    @property
    def axes(self) -> Mapping[str, int]:
        return mixer_sizes(self._module.get_submodule(self.recurrent.holder), self._module)

    def unfold(self, value: Value, tensor: Any) -> Any:
        if tensor is None:
            raise Unavailable(f"{self.path}.{value.name} is not available on this call: it is there "
                              f"{self.recurrent.conditions[value.name]}")
        if value.name in self.recurrent.later:
            # The cache overwrites it in place before the call is over.
            tensor = tensor.clone()
        pattern = self.recurrent.held.get(value.name)
        if pattern is None or value.layout is None:
            return tensor
        return to_layout(tensor, pattern, value.layout.dims, self.axes)

    def fold(self, value: Value, tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        pattern = self.recurrent.held.get(value.name)
        if pattern is None or value.layout is None:
            return tensor
        return to_held(tensor, pattern, value.layout.dims)


@carries("mlp", "mlp_activation", "mlp_neurons", "mlp_output")
class Mlp(StandardHost):
    """A block's dense MLP."""

    host = "mlp"


@carries("mlp", "mlp_output")
class PlacedMlp(Mlp):
    """An MLP class that also stands inside a mixture, where what the block adds is the mixture's output."""

    def unavailable(self, name: str) -> str | None:
        if name == "mlp_output" and isinstance(self.parent, Mixture):
            return "this is the mixture's shared expert; what the block adds is the mixture's own mlp_output"
        return super().unavailable(name)


@carries("mlp", "mlp_activation", "mlp_neurons", "router_logits", "expert_weights", "expert_indices", "expert_outputs",
         "routed_output", "shared_expert_output")
class Mixture(Mlp):
    """A mixture of experts in the MLP's place; it routes tokens flat over the batch."""

    host = "mlp"
    withdrawn: Mapping[str, str] = dict.fromkeys(
        ("mlp_activation", "mlp_neurons"),
        "a mixture has one set of neurons per expert; read them on the shared expert or inside the experts",
    )


def serving(
    base: type[StandardHost],
    native: type[torch.nn.Module],
    locations: Mapping[str, Location],
    withdrawn: Mapping[str, str],
    declared: tuple[str, ...] = (),
    layouts: Mapping[str, Layout] | None = None,
    unconfirmed: Mapping[str, str] | None = None,
    recurrent: Recurrent | None = None,
    children: Collection[str] = (),
) -> type[StandardHost]:
    """A host class for the native module class ``native``.

    Args:
        base: the host class that lists the values.
        native: the module class served; the result is named after it.
        locations: where each value is read.
        withdrawn: values not served, with the reason, beside those ``base`` withdraws itself.
        declared: names the family declared a place for; they print first, before what ``base`` lists.
        layouts: the layouts of values that have another one here than the vocabulary's.
        unconfirmed: values not served because no run confirmed them, with the reason.
        recurrent: what was derived for a recurrent mixer.
        children: names of the native module's children, which stay its own.
    """
    known = values_of(base.host)
    unknown = [name for name in (*locations, *withdrawn) if name not in known]
    if unknown:
        raise KeyError(f"{native.__name__}: {', '.join(unknown)} is not a value of {HOSTS[base.host]}")
    body: dict[str, Any] = descriptors(base.host, *declared) if declared else {}
    if recurrent is not None:
        body |= descriptors(base.host, flavour=recurrent.flavour)
        body["recurrent"] = recurrent
    body |= {name: _special(replace(known[name], layout=layout)) for name, layout in (layouts or {}).items()}
    kept = {name: reason for name, reason in base.withdrawn.items() if name not in locations}
    body |= {
        "locations": dict(locations),
        "withdrawn": {**kept, **withdrawn},
        "unconfirmed": dict(unconfirmed or {}),
        "hidden": frozenset(children) & known.keys(),
        "__doc__": f"{base.__name__} over {native.__name__}.",
        "__module__": base.__module__,
    }
    # A plain attribute in a value's place leaves the name to the module's own child.
    body |= dict.fromkeys(body["hidden"])
    return type(native.__name__, (base,), body)
