"""The module tree of a checkpoint, read off its printout."""

from __future__ import annotations

import re
from collections.abc import Sequence

_LINE = re.compile(r"^(?P<indent> *)\((?P<name>[^)]+)\): (?:\d+ x )?(?P<class>\w+)\(")
_SPAN = re.compile(r"^(\d+)(?:-(\d+))?$")


def class_at(printout: Sequence[str], path: Sequence[str | int]) -> str | None:
    """The class of the module at ``path``, such as ``("layers", 3, "input_layernorm")``; ``None`` where there is none.

    A line's name may be a span of indices (``0-23``) or carry a standard name before the native one
    (``router/gate``); either spelling finds it.
    """
    sought, depth = list(path), 0
    for line in printout[1:]:
        match = _LINE.match(line)
        if match is None:
            continue
        level = len(match["indent"]) // 2 - 1
        if level < depth:
            return None
        if level == depth and _named(match["name"], sought[depth]):
            if depth == len(sought) - 1:
                return match["class"]
            depth += 1
    return None


def _named(name: str, wanted: str | int) -> bool:
    if isinstance(wanted, str):
        return wanted in name.split("/")
    span = _SPAN.match(name)
    return span is not None and int(span[1]) <= wanted <= int(span[2] or span[1])
