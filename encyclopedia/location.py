"""The location grammar: where a value is read, as a path from its host.

A location is parsed once and then resolved on a live envoy, printed as a path, or phrased in English. Steps are
separated by dots: a name is a child module or, after ``source``, an operation of the forward, and the last step is
``output``, ``input`` or ``inputs[k]``; a leading ``../`` climbs to the host's parent. ``output[k]`` selects an element
of a tuple, ``inputs[k]`` an argument by position or name, ``output.logits`` a field. ``derived`` stands for a value
computed from others.

>>> str(Location.parse("source.attention_interface_1.inputs[1]"))
'source.attention_interface_1.inputs[1]'
>>> Location.parse("experts.inputs[2]").phrase()
'element 2 of the arguments of the child module experts'
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NUMBER = r"(?:0|[1-9][0-9]*)"
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_STEP = rf"(?!(?:source|output|inputs?)\b)(?:{_NAME}|{_NUMBER})\."
_LOCATION = re.compile(
    rf"(?P<climbs>(?:\.\./)*)(?P<modules>(?:{_STEP})*)(?P<operations>(?:source\.{_STEP})*)"
    rf"(?:(?P<output>output)(?:\[(?P<element>{_NUMBER})\]|\.(?P<field>{_NAME}))?"
    rf"|(?P<inputs>inputs)\[(?:(?P<position>{_NUMBER})|(?P<keyword>{_NAME}))\]"
    rf"|(?P<input>input))",
    re.ASCII,
)


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
        match = _LOCATION.fullmatch(text)
        if match is None:
            raise LocationError(f"location {text!r} is not a path that ends in output, input or inputs[k]")
        climbs = ("..",) * match["climbs"].count("/")
        steps = (match["modules"] + match["operations"]).split(".")[:-1]
        number = match["element"] or match["position"]
        return cls(
            (*climbs, *steps),
            match["output"] or match["inputs"] or match["input"],
            match["keyword"] if number is None else int(number),
            match["field"],
        )

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
        module = f"the {sibling} {'.'.join(names)}" if names else "the parent module" if self.modules else ""
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
