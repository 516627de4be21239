"""A value without standard names: the hook that reads it on a transformers model, and nnsight's expression, as code.

Both are text, made in this one place out of facts, so that what a page shows is what a check has run. ``[i]`` in it
stands for the block (``{i}`` for its bare number), ``{head_dim}`` for the length of an axis; :func:`filled` puts them
in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from encyclopedia.facts import HookFacts
from encyclopedia.location import Location

#: How the model is called between registering a hook and removing it.
CALL = "model(input_ids=input_ids, attention_mask=attention_mask)"

_AXIS = re.compile(r"\{(\w+)\}")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
_TENSOR = re.compile(r"(?P<holder>output|args|kwargs)(?:\[(?P<key>\w+)\]|\.(?P<field>\w+))?")


@dataclass(frozen=True)
class HookSnippet:
    """Code that reads one value by a hook; it leaves the tensor in ``caught``, under the value's name.

    Attributes:
        register: from the empty ``caught`` to the registered hook.
        remove: what takes the hook away again.
    """

    register: str
    remove: str

    @property
    def text(self) -> str:
        """The whole snippet, with the call between."""
        return f"{self.register}\n{CALL}\n{self.remove}"


def hook_snippet(value: str, hook: HookFacts, dims: Sequence[str]) -> HookSnippet:
    """The code of a hook.

    Args:
        value: the standard name of the value it reads.
        hook: where.
        dims: the axes of the value's layout.
    """
    before = not hook.tensor.startswith("output")
    named = hook.tensor.startswith("kwargs")
    arguments = ["module", "args", *(["kwargs"] if named else []), *([] if before else ["output"])]
    register = "register_forward_pre_hook" if before else "register_forward_hook"
    options = ", with_kwargs=True" if named else ""
    held = _indexed(hook.tensor) + into_layout(hook.held, dims)
    return HookSnippet(
        register=(f"caught = {{}}\n\n"
                  f"def keep({', '.join(arguments)}):\n"
                  f'    caught["{value}"] = {held}.clone()\n\n'
                  f"handle = {hook.module}.{register}(keep{options})"),
        remove="handle.remove()",
    )


def nnsight_expression(module: str, location: str) -> str:
    """What reads a location of ``module`` inside a trace of an nnsight model without standard names.

    nnsight's ``inputs`` is the pair of arguments by position and by name.
    """
    place = Location.parse(location)
    path = ".".join([module, *place.steps])
    if place.handle == "inputs":
        by = f'[1]["{place.index}"]' if isinstance(place.index, str) else f"[0][{place.index}]"
        return f"{path}.inputs{by}"
    index = "" if place.index is None else f"[{place.index}]"
    field = "" if place.field is None else f".{place.field}"
    return f"{path}.{place.handle}{index}{field}"


def into_layout(held: str | None, dims: Sequence[str]) -> str:
    """The calls that bring a tensor held as ``held`` into the axes ``dims``; an empty string where it has them."""
    if held is None:
        return ""
    axes = [tuple(found.strip("()").split()) for found in re.findall(r"\([^)]*\)|\S+", held)]
    calls = []
    for position, inside in reversed(list(enumerate(axes))):
        if inside == ("batch", "seq"):
            calls.append(f".unflatten({position}, input_ids.shape)")
        elif len(inside) > 1:
            lengths = ", ".join(["-1", *(f"{{{axis}}}" for axis in inside[1:])])
            calls.append(f".unflatten({position}, ({lengths}))")
    order = [axis for inside in axes for axis in inside]
    for axis in dims:
        if axis not in order:
            calls.append(".unsqueeze(-1)")
            order.append(axis)
    turned = [order.index(axis) for axis in dims]
    if turned != sorted(turned):
        calls.append(_turning(turned))
    return "".join(calls)


def _turning(order: Sequence[int]) -> str:
    """The call that puts the axes in ``order``."""
    moved = [axis for axis, source in enumerate(order) if axis != source]
    if len(moved) == 2:
        return f".transpose({moved[0]}, {moved[1]})"
    return f".permute({', '.join(map(str, order))})"


def filled(text: str, block: int, sizes: Mapping[str, int]) -> str:
    """``text`` for one block, with the lengths of axes that it asks for.

    Raises:
        KeyError: for an axis that ``sizes`` lacks.
    """
    lengths = {**sizes, "i": block}
    return _AXIS.sub(lambda found: str(lengths[found[1]]), text.replace("[i]", f"[{block}]"))


def tensor_phrase(tensor: str) -> str:
    """``HookFacts.tensor`` in words: ``element 0 of its output``."""
    found = _TENSOR.fullmatch(tensor)
    assert found is not None, tensor
    if found["holder"] == "output":
        if found["field"] is not None:
            return f"the field {found['field']} of its output"
        return "its output" if found["key"] is None else f"element {found['key']} of its output"
    if found["holder"] == "kwargs":
        return f"its argument {found['key']}"
    position = int(found["key"])
    return f"its {_ORDINALS[position]} argument" if position < len(_ORDINALS) else f"its argument {position}"


def _indexed(tensor: str) -> str:
    """``HookFacts.tensor`` as Python."""
    return re.sub(r"^kwargs\[(\w+)\]$", r'kwargs["\1"]', tensor)
