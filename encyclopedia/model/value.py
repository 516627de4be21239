"""The descriptor that serves a standard value inside a trace."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import torch
from nnsight.intervention.eproperty import eproperty
from nnsight.intervention.interleaver import Mediator
from nnsight.intervention.source import SourceEnvoy

from encyclopedia.location import Location
from encyclopedia.model.entering import enter
from encyclopedia.model.errors import Unavailable
from encyclopedia.model.selection import replace_selected, select
from encyclopedia.vocabulary import HEAD_OUTPUTS, Value

if TYPE_CHECKING:
    from encyclopedia.model.envoys import StandardHost


class StandardValue(eproperty):
    """A value of the vocabulary, read and written where the host's class says.

    What the model holds there may be packed (an element of a tuple, heads side by side, tokens flat over the batch);
    a read unpacks it into the value's layout, a write or an in-place edit packs it again.
    """

    def __init__(self, value: Value) -> None:
        super().__init__(key=value.name, description=value.description)
        self.value = value
        self.name = value.name
        self.__doc__ = value.description
        self._preprocess = self._unpack
        self._postprocess = self._pack
        if value.layout is HEAD_OUTPUTS or value.part is not None or value.host == "linear_attn":
            # A reshape may copy, and an edit to the copy has to reach the model.
            self._transform = self._write_back

    def __str__(self) -> str:
        typed = f" -> {self.value.layout}" if self.value.layout is not None else ""
        return f"({self.value.name}){typed}: {self.value.description}"

    def __get__(self, obj: StandardHost | None, owner: Any = None) -> Any:
        if obj is None:
            return self
        obj.require(self.value.name)
        try:
            return super().__get__(obj, owner)
        except AttributeError as error:
            # Python takes an AttributeError of a property for the lack of the property itself.
            raise Unavailable(f"{obj.path}.{self.value.name} is not available on this call: {error}") from error

    def __set__(self, obj: StandardHost, value: Any) -> None:
        obj.require(self.value.name)
        if not self.value.writable:
            raise TypeError(f"{self.value.name} is computed from other values and cannot be written")
        super().__set__(obj, value)

    def _location(self, obj: Any) -> str:
        location = self._at(obj)
        target = obj
        for step in location.steps:
            if step == "..":
                target = target.parent
            elif step == "source" and isinstance(target, SourceEnvoy):
                target = enter(target)
            else:
                target = getattr(target, step)
        return f"{target.path}.{'input' if location.handle == 'inputs' else location.handle}"

    def _at(self, obj: StandardHost) -> Location:
        return obj.locations[self.value.name]

    def _unpack(self, obj: StandardHost, raw: Any) -> Any:
        return obj.unfold(self.value, select(self._at(obj), raw))

    def _pack(self, obj: StandardHost, value: torch.Tensor) -> Any:
        return self._write_back(obj, value, Mediator.value(self._location(obj)))

    def _write_back(self, obj: StandardHost, value: torch.Tensor, raw: Any) -> Any:
        location = self._at(obj)
        held = select(location, raw)
        expected = obj.unfold(self.value, held).shape
        if getattr(value, "shape", None) != expected:
            found = f"shape {list(value.shape)}" if isinstance(value, torch.Tensor) else type(value).__name__
            raise ValueError(f"{self.value.name} takes {self.value.layout}, here {list(expected)}, and got {found}")
        return replace_selected(location, raw, obj.fold(self.value, value, held))


class NextTokenProbs(StandardValue):
    """``next_token_probs``: the softmax of the last position's logits."""

    def _at(self, obj: StandardHost) -> Location:
        return obj.locations["logits"]

    def _unpack(self, obj: StandardHost, raw: Any) -> torch.Tensor:
        return super()._unpack(obj, raw)[:, -1].softmax(dim=-1)


class CallArgument(StandardValue):
    """An argument of the model's own call, found by its name; ``None`` where the call did not pass it."""

    #: The argument's name in the model's forward.
    argument: str

    def __init__(self, value: Value, argument: str | None = None) -> None:
        super().__init__(value)
        self.argument = argument or value.name

    def _unpack(self, obj: StandardHost, raw: Any) -> Any:
        return select(self._argument_of(obj, raw), raw)

    def _write_back(self, obj: StandardHost, value: torch.Tensor, raw: Any) -> Any:
        return replace_selected(self._argument_of(obj, raw), raw, value)

    def _argument_of(self, obj: StandardHost, raw: Any) -> Location:
        arguments, keywords = raw
        names = list(inspect.signature(type(obj._module).forward).parameters)[1:]
        position = names.index(self.argument)
        index = position if self.argument not in keywords and position < len(arguments) else self.argument
        return Location((), "inputs", index)


class InputSize(CallArgument):
    """``input_size``: ``[batch, seq]`` of the call, as a ``torch.Size``."""

    def __init__(self, value: Value) -> None:
        super().__init__(value, argument="input_ids")
        self._embeds = CallArgument(value, argument="inputs_embeds")

    def _at(self, obj: StandardHost) -> Location:
        return obj.locations["input_ids"]

    def _unpack(self, obj: StandardHost, raw: Any) -> torch.Size:
        token_ids = super()._unpack(obj, raw)
        return (self._embeds._unpack(obj, raw) if token_ids is None else token_ids).shape[:2]
