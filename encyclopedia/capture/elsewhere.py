"""Where a model without standard names has each value, by host and value, the kinds that agree together."""

from __future__ import annotations

from collections.abc import Sequence

from encyclopedia.checks.run import Checked
from encyclopedia.facts import NativePlace
from encyclopedia.model.places import native_path, place_of_later
from encyclopedia.model.transformer import StandardizedTransformer
from encyclopedia.structure.parts import Kind

Places = dict[tuple[str, str], list[NativePlace]]


def native_places_of(checked: Checked, model: StandardizedTransformer, kinds: Sequence[Kind]) -> Places:
    """The places that a run on the twin confirmed, for the checkpoint's own kinds.

    Args:
        checked: what checking the twin gave.
        model: the checkpoint's live model.
        kinds: its kinds, those of the twin in the same order.
    """
    kind_of = {kind.blocks[0]: index for index, kind in enumerate(checked.kinds)}
    found: Places = {}
    for placed in checked.elsewhere:
        layer = placed.reading.layer
        on = range(len(kinds)) if layer is None else [kind_of[layer]]
        _add(found, placed.reading.host, placed.reading.name, placed.place, on)
    for index, kind in enumerate(kinds):
        for host in model.hosts(kind.blocks[0]):
            for name in host.later:
                if host.unavailable(name) is None:
                    _add(found, host.host, name, place_of_later(model, host, name), [index])
    return found


def host_paths(model: StandardizedTransformer, host: str, kinds: Sequence[Kind]) -> list[str | None]:
    """Per kind, the path of ``host`` from a transformers model called ``model``, ``None`` where it is not there."""
    if host == "model":
        return ["model" for _ in kinds]
    found: list[str | None] = []
    for kind in kinds:
        there = next((each for each in model.hosts(kind.blocks[0]) if each.host == host), None)
        found.append(None if there is None else native_path(
            model, there.path.removeprefix(f"{model.path}."), kind.blocks[0]))
    return found


def _add(found: Places, host: str, name: str, place: NativePlace, kinds: Sequence[int]) -> None:
    entries = found.setdefault((host, name), [])
    for position, known in enumerate(entries):
        if known.model_copy(update={"kinds": []}) == place:
            entries[position] = known.model_copy(update={"kinds": [*known.kinds, *kinds]})
            return
    entries.append(place.model_copy(update={"kinds": list(kinds)}))
