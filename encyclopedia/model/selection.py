"""Picking a location's tensor out of what nnsight serves there, and putting one back.

nnsight serves a module's ``output`` as returned and its ``input`` as the pair ``(args, kwargs)``.
"""

from __future__ import annotations

from copy import copy
from typing import Any

from encyclopedia.location import Location


def select(location: Location, raw: Any) -> Any:
    """The element of ``raw`` that ``location`` names; ``None`` for an argument the call did not pass."""
    if location.handle == "output":
        if location.field is not None:
            return getattr(raw, location.field)
        return raw if location.index is None else raw[location.index]
    arguments, keywords = raw
    key = _argument(location, arguments, keywords)
    return arguments[key] if isinstance(key, int) else keywords.get(key)


def replace_selected(location: Location, raw: Any, value: Any) -> Any:
    """``raw`` with the element that ``location`` names replaced by ``value``; ``raw`` itself is left alone."""
    if location.handle == "output":
        if location.field is not None:
            changed = copy(raw)
            setattr(changed, location.field, value)
            return changed
        if location.index is None:
            return value
        return type(raw)(value if k == location.index else element for k, element in enumerate(raw))
    arguments, keywords = raw
    key = _argument(location, arguments, keywords)
    if isinstance(key, int):
        return (*arguments[:key], value, *arguments[key + 1:]), keywords
    return arguments, {**keywords, key: value}


def _argument(location: Location, arguments: tuple, keywords: dict) -> int | str:
    if location.index is not None:
        return location.index
    return 0 if arguments else next(iter(keywords))
