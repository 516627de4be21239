"""The location grammar: where a value is read, as a path from its host.

A location is parsed once and then resolved on a live envoy, printed as a path, or phrased in English. Steps are
separated by dots: ``..`` is the host's parent, a name is a child module (or, after ``source``, an operation), and the
last step is ``output``, ``input`` or ``inputs[k]``. ``[k]`` selects an element of a tuple or, after ``inputs``, an
argument by position or name; ``output.logits`` selects a field. ``derived`` stands for a value computed from others.

>>> str(Location.parse("source.attention_interface_1.inputs[1]"))
'source.attention_interface_1.inputs[1]'
>>> Location.parse("experts.inputs[2]").phrase()
"element 2 of the arguments of the child module experts"
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_HANDLE = re.compile(r"^(?P<handle>output|inputs?)(?:\[(?P<index>\w+)\])?$")
_STEP = re.compile(r"^[A-Za-z_]\w*$")


class LocationError(ValueError):
    """A location that the grammar does not allow."""


@dataclass(frozen=True)
class Location:
    """A parsed location.

    Attributes:
        steps: names walked from the host before the handle; ``..`` climbs, ``source`` enters a forward.
        handle: ``output``, ``input``, ``inputs`` or ``derived``.
        index: the tuple element, the argument's position, the argument's name, or ``None``.
        field: the field selected from an ``output`` that is an object, or ``None``.
    """

    steps: tuple[str, ...]
    handle: str
    index: int | str | None = None
    field: str | None = None

    @classmethod
    def parse(cls, text: str) -> Location:
        """The location that ``text`` spells.

        Raises:
            LocationError: where the text is not in the grammar, naming it and what was expected.
        """
        if text == "derived":
            return cls((), "derived")
        climbs = []
        while text.startswith("../"):
            climbs.append("..")
            text = text[3:]
        parts = text.split(".")
        for position, part in enumerate(parts):
            match = _HANDLE.match(part)
            if match is None:
                if not _STEP.match(part):
                    break
                continue
            rest = parts[position + 1:]
            if len(rest) > 1 or (rest and match["handle"] != "output"):
                break
            index = match["index"]
            return cls(
                (*climbs, *parts[:position]),
                match["handle"],
                int(index) if index is not None and index.isdigit() else index,
                rest[0] if rest else None,
            )
        raise LocationError(f"location {text!r} is not a path that ends in output, input or inputs[k]")

    @property
    def modules(self) -> tuple[str, ...]:
        """The steps up to the first ``source``: the module whose forward or handle is read."""
        return self.steps[: self.steps.index("source")] if "source" in self.steps else self.steps

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations entered after the module, outermost first."""
        return tuple(step for step in self.steps[len(self.modules):] if step != "source")

    def __str__(self) -> str:
        if self.handle == "derived":
            return "derived"
        index = "" if self.index is None else f"[{self.index}]"
        field = "" if self.field is None else f".{self.field}"
        climbs = sum(step == ".." for step in self.steps)
        return "../" * climbs + ".".join((*self.steps[climbs:], self.handle + index + field))

    def phrase(self) -> str:
        """The place in English, without a full stop."""
        if self.handle == "derived":
            return "computed from other values"
        names = [step for step in self.modules if step != ".."]
        sibling = "sibling module" if ".." in self.modules else "child module"
        module = f"the {sibling} {'.'.join(names)}" if names else ""
        operations = self.operations
        if not operations:
            holder = module or "the module itself"
            return self._handle_phrase(holder)
        inside = f"inside {module}'s forward" if module else "inside the forward"
        outer = [f"inside {operation}" for operation in reversed(operations[:-1])]
        return ", ".join([self._handle_phrase(operations[-1]), *outer, inside])

    def _handle_phrase(self, holder: str) -> str:
        if self.handle == "inputs":
            which = f"element {self.index}" if isinstance(self.index, int) else f"argument {self.index}"
            return f"{which} of the arguments of {holder}"
        if self.field is not None:
            return f"the field {self.field} of the output of {holder}"
        if self.index is not None:
            return f"element {self.index} of the {self.handle} of {holder}"
        return f"the {self.handle} of {holder}"
