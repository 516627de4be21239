"""View model of the page of a family about which nothing could be verified."""

from __future__ import annotations

from dataclasses import dataclass

from encyclopedia.facts import CheckpointFacts, FamilyFacts
from encyclopedia.page.api import ConfigView, config_view
from encyclopedia.page.module import ServedClass, served_classes

#: The steps from a config to a verified page, with what each does.
STEPS = {
    "config": "the config is read by its class",
    "build": "the native model is built, without weights",
    "structure": "what its blocks are made of is derived, by running a small random twin",
    "run": "the model runs with standard names, at full size without numbers",
    "check": "what the page would say is checked on another twin",
}


@dataclass(frozen=True)
class Step:
    """A step; ``held`` is ``None`` where it was not reached."""

    name: str
    does: str
    held: bool | None


@dataclass(frozen=True)
class ConfigCard:
    """What the config's template shows."""

    architecture: str | None
    config: ConfigView
    is_default: bool


@dataclass(frozen=True)
class FailedView:
    """The page for ``failed.html.jinja``."""

    step: str
    does: str
    reason: str
    steps: tuple[Step, ...]
    api: ConfigCard | None
    classes: tuple[ServedClass, ...]
    architectures: tuple[str, ...]


def failed_view(family: FamilyFacts) -> FailedView:
    """The page of a ``family`` that failed.

    Raises:
        ValueError: for a family that did not.
    """
    failure = family.failure
    if failure is None:
        raise ValueError(f"{family.model_type} has not failed; render its page instead")
    names = list(STEPS)
    at = names.index(failure.step) if failure.step in names else len(names)
    shown = _with_config(family)
    return FailedView(
        step=failure.step,
        does=STEPS.get(failure.step, failure.step),
        reason=failure.reason.strip(),
        steps=tuple(Step(name, STEPS[name], True if index < at else False if index == at else None)
                    for index, name in enumerate(names)),
        api=None if shown is None else ConfigCard(shown.architecture, config_view(shown), shown.is_default),
        classes=served_classes(family.checkpoints),
        architectures=tuple(dict.fromkeys(
            checkpoint.architecture for checkpoint in family.checkpoints if checkpoint.architecture)),
    )


def _with_config(family: FamilyFacts) -> CheckpointFacts | None:
    ranked = sorted(family.checkpoints, key=lambda checkpoint: checkpoint.id != family.reference)
    return next((checkpoint for checkpoint in ranked if checkpoint.config), None)
