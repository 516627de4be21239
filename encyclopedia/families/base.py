"""What a family declares: only what cannot be derived from the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Declared:
    """Declarations for one native module class.

    Attributes:
        like: ``mixture`` where the class has a mixture's values though it has no router and experts modules.
        locations: values read elsewhere than derived, by name, in the location grammar.
        withdrawn: values the class does not serve, with the reason.
        experts: children that hold one row or slice per expert, where there is no experts module.
        withdrawn_on: by attention type, what the class does not serve on blocks of that type, with the reason.
        instead: by a key of the config, what is declared in place of all this where that key is true; the first counts.
    """

    like: str | None = None
    locations: Mapping[str, str] = field(default_factory=dict)
    withdrawn: Mapping[str, str] = field(default_factory=dict)
    experts: tuple[str, ...] = ()
    withdrawn_on: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    instead: Mapping[str, Declared] = field(default_factory=dict)

    def on(self, config: Any) -> Declared:
        """What is declared for a model with ``config``."""
        found = (other for key, other in self.instead.items() if getattr(config, key, False))
        return next(found, replace(self, instead={}))


@dataclass(frozen=True)
class Family:
    """One family, as its module declares it.

    Attributes:
        model_type: the transformers ``model_type``.
        title: the page's headline.
        subtitle: one sentence on what differs from a plain pre-norm block.
        hue: the family mark's hue in degrees, from which the page's accent is made.
        classes: declarations by native class name.
        identity: the equation for ``layer_output`` where the plain sum does not hold; names in it are standard
            values and the block's own parameters.
        stream_gates: by host, the block's parameter that multiplies the stream before that sublayer's add.
        quirks: slugs of quirks that no measurement tells.
        arrows: labels for arrows between two values of a sublayer, ``(source, target): label``.
    """

    model_type: str
    title: str
    subtitle: str
    hue: int
    classes: Mapping[str, Declared] = field(default_factory=dict)
    identity: str | None = None
    stream_gates: Mapping[str, str] = field(default_factory=dict)
    quirks: tuple[str, ...] = ()
    arrows: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def on(self, config: Any) -> Family:
        """What the family declares for a model with ``config``, with every choice between declarations made."""
        return replace(self, classes={name: declared.on(config) for name, declared in self.classes.items()})
