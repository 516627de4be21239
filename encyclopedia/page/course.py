"""The course of a block: which sublayers read the residual stream together, and what each adds to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from encyclopedia.facts import CheckpointFacts, KindFacts, SublayerFacts, ValueFacts

#: The block's input as an identity spells it.
STREAM = "layers[i].input"

#: A sum that is multiplied as a whole.
_SCALED = re.compile(r"(?P<scale>[^()]+) \* \((?P<sum>[^()]+)\)")

_OWN = re.compile(r"\b(?:layers\[i\]|config)\.")


@dataclass(frozen=True)
class Course:
    """How the parts of a block follow one another.

    Attributes:
        rows: the sublayers in forward order; those in one row read the same stream.
        mid: whether the stream between two rows is a value, ``layer_mid``.
        factors: by host, or by the term itself where it is loose, what multiplies it on its way to the add.
        loose: terms of the identity that are a native module's own output, such as ``shared_mlp.output``.
        scale: what multiplies the whole sum, behind the last add, or ``None``.
        stated: hosts whose contribution is a term of the identity.
        streams: how many parallel streams the block carries, or ``None`` for the usual one.
        carried: whether the block's input is a term of its output, as far as is known.
    """

    rows: tuple[tuple[SublayerFacts, ...], ...]
    mid: bool = False
    factors: Mapping[str, str] = field(default_factory=dict)
    loose: tuple[str, ...] = ()
    scale: str | None = None
    stated: frozenset[str] = frozenset()
    streams: int | None = None
    carried: bool = True

    @property
    def sublayers(self) -> tuple[SublayerFacts, ...]:
        """All of them, in forward order."""
        return tuple(sublayer for row in self.rows for sublayer in row)

    def name_of(self, sublayer: SublayerFacts) -> str:
        """A sublayer's contribution, with its host where another one gives a value of the same name."""
        alike = [other for other in self.sublayers if other.contribution == sublayer.contribution]
        return sublayer.contribution if len(alike) == 1 else _expression(sublayer)

    def sum_after(self, position: int) -> str | None:
        """The value that the add at ``position`` makes, or ``None`` where it has no name."""
        if position == len(self.sublayers) + len(self.loose) - 1:
            return "layer_output" if self.scale is None else None
        return "layer_mid" if self.mid and position == len(self.rows[0]) - 1 else None


def course_of(checkpoint: CheckpointFacts, index: int) -> Course:
    """The course of the kind at position ``index`` of ``checkpoint``."""
    kind = checkpoint.kinds[index]
    values = {value.name: value for host in checkpoint.hosts if host.name == "layer" for value in host.values}
    several = any(value.layout == "Streams" for value in values.values())
    mid = values.get("layer_mid")
    has_mid = mid is not None and _is_on(mid, index)
    unread = any((left.host, left.name) == ("layer", "layer_mid") for left in checkpoint.unconfirmed)
    return course(kind, mid=has_mid, parallel=not (has_mid or several or unread),
                  streams=kind.sizes.get("streams") if several else None)


def course(kind: KindFacts, *, mid: bool = False, parallel: bool = False, streams: int | None = None) -> Course:
    """The course of ``kind``.

    Args:
        kind: the facts of the blocks.
        mid: whether there is a stream between its two sublayers to read.
        parallel: whether two sublayers read the stream before anything is added to it. Of more, one reads it with the
            one before where they share a norm, or where it has none of its own, neither in front nor behind.
        streams: how many parallel streams there are, or ``None``.
    """
    rows: list[list[SublayerFacts]] = []
    together = parallel and len(kind.sublayers) == 2
    for sublayer in kind.sublayers:
        if rows and (together or (not mid and _reads_with(sublayer, rows[-1][0], len(kind.sublayers)))):
            rows[-1].append(sublayer)
        else:
            rows.append([sublayer])
    total = (kind.identity or "").partition(" == ")[0]
    scaled = _SCALED.fullmatch(total)
    factors, loose = _terms(scaled["sum"] if scaled else total, kind)
    stated = {sublayer.host for sublayer in kind.sublayers
              if kind.identity is not None and _expression(sublayer) in kind.identity}
    return Course(tuple(map(tuple, rows)), mid and len(rows) == 2, factors, loose, scaled and scaled["scale"],
                  frozenset(stated), streams, carried=kind.identity is None or STREAM in kind.identity)


def factor_in_short(factor: str) -> str:
    """A factor for the diagram: ``layers[i].residual_multiplier`` becomes ``× residual_multiplier``."""
    return "× " + _OWN.sub("", factor).replace(" * ", " · ")


def _reads_with(sublayer: SublayerFacts, first: SublayerFacts, count: int) -> bool:
    if sublayer.norm is not None:
        return sublayer.norm == first.norm
    return count > 2 and sublayer.post_norm is None and first.norm is not None


def _is_on(value: ValueFacts, index: int) -> bool:
    return index < len(value.shapes) and value.shapes[index] is not None


def _terms(total: str, kind: KindFacts) -> tuple[dict[str, str], tuple[str, ...]]:
    """What multiplies the terms of the sum ``total``, and those that are no contribution."""
    if not total or "(" in total:
        return {}, ()
    contributions = {_expression(sublayer): sublayer.host for sublayer in kind.sublayers}
    factors, loose, scaled = dict[str, str](), list[str](), False
    for term in total.split(" + "):
        factor, _, name = term.rpartition(" * ")
        if name == STREAM:
            scaled = bool(factor)
            continue
        if name not in contributions:
            loose.append(name)
        if factor:
            factors[contributions.get(name, name)] = factor
    # Where the stream is scaled too, a term's factor is not the one at its own add.
    return {} if scaled else factors, tuple(loose)


def _expression(sublayer: SublayerFacts) -> str:
    return f"{sublayer.host}.{sublayer.contribution}"
