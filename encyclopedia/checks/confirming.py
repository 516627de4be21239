"""Which derived values a run confirms: what a family without a module of its own serves, and what it leaves out."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn

from encyclopedia.checks.claims import BrokenClaim
from encyclopedia.checks.run import Checked, check_model
from encyclopedia.families import Family, has_module
from encyclopedia.model.hosts import Unconfirmed
from encyclopedia.structure.derive import structure_of
from encyclopedia.structure.parts import Structure
from encyclopedia.structure.stack import model_key
from encyclopedia.twin import PROMPTS, prompt_for, redrawn, twin_of_model, twinned
from encyclopedia.vocabulary import HOSTS, values_of

#: How many models' outcomes are kept.
KEPT = 64

_known: OrderedDict[tuple[type, str], Unconfirmed] = OrderedDict()


def unconfirmed_of(model: nn.Module, family: Family) -> Unconfirmed:
    """The values of a native model that a run did not confirm, with the reason, by native class and host.

    A family with a module of its own has people who answer for its values: there, a claim that does not hold is an
    error of the build, and nothing is left out in silence.

    Raises:
        BrokenClaim: where what does not hold is no single value.
    """
    if has_module(family.model_type):
        return {}
    key = twinned(model) or model_key(model)
    if key not in _known:
        build = partial(redrawn, model) if twinned(model) else partial(twin_of_model, model)
        _known[key] = confirm(build, family, None, writing=False)[1]
        while len(_known) > KEPT:
            _known.popitem(last=False)
    return _known[key]


def confirm(
    build: Callable[[], nn.Module], family: Family, default: Callable[[], nn.Module] | None, *, writing: bool = True,
    elsewhere: bool = False, lenient: bool = False,
) -> tuple[Checked, Unconfirmed]:
    """Check a twin, leaving out one derived value after another until all that is left holds.

    Args:
        build: builds the twin, a small random model; a checked one is wrapped and cannot be checked again.
        family: its family.
        default: builds the same model under the default load.
        writing: check writing too.
        elsewhere: check names elsewhere too.
        lenient: leave values out for a family with a module too.

    Raises:
        BrokenClaim: where the family has a module and nobody is lenient, or what does not hold is no single value.
    """
    lenient = lenient or not has_module(family.model_type)
    withheld: dict[tuple[str, str], dict[str, str]] = {}
    while True:
        twin = build()
        structure, input_ids = structure_of(twin), prompt_for(twin, batch=PROMPTS)
        try:
            return check_model(twin, family, input_ids, writing=writing, default=default, unconfirmed=withheld,
                               lenient=lenient, elsewhere=elsewhere), withheld
        except BrokenClaim as broken:
            places = _places(structure, twin, broken) if lenient else []
            new = [place for place in places if place[1] not in withheld.get(place[0], {})]
            if not new:
                raise
            for place, name in new:
                withheld.setdefault(place, {})[name] = f"no run confirmed it where it was derived to be: {broken.short}"


def _places(structure: Structure, twin: nn.Module, broken: BrokenClaim) -> list[tuple[tuple[str, str], str]]:
    """Native class, host and name of the value that a broken claim is about, on every host it may be meant on."""
    if broken.value is None or broken.sort == "identity":
        return []
    host, _, name = broken.value.rpartition(".")
    hosts = [host] if host else [known for known in HOSTS if name in values_of(known)]
    if broken.block is None:
        return [((type(twin).__name__, "model"), name)] if "model" in hosts else []
    kind = structure.kind_of(broken.block)
    classes: dict[str, Any] = {"layer": kind.block, **{found.host: found.module for found in kind.sublayers}}
    return [((type(classes[known]).__name__, known), name) for known in hosts if known in classes]
