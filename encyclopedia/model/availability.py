"""When a load has a value: the conditions that follow from which implementation it runs.

transformers dispatches attention and experts through an interface. A location inside such a call names operations of
one implementation, so it exists only on a load that runs it.
"""

from __future__ import annotations

import torch
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

from encyclopedia.location import Location
from encyclopedia.structure.operations import calls_interface, only_without, operations_of, undecorated

#: Reason for a value of the attention interior under another implementation than eager.
NEEDS_EAGER = (
    'the attention interior is read in transformers\' eager attention, and this load runs {running}: '
    'load with attn_implementation="eager"'
)

NEEDS_OTHER_EXPERTS = (
    "the operation {operation} is not part of the {running} experts, which this load runs: "
    'load with experts_implementation="grouped_mm"'
)


def load_condition(location: Location, module: torch.nn.Module, config: object) -> str | None:
    """Why a load of ``module`` under ``config`` lacks what ``location`` names; ``None`` where it has it.

    Args:
        location: a location from the host that serves ``module``.
        module: the host's module.
        config: the model's transformers config, which says the implementations in use.
    """
    operations = location.operations
    if not operations:
        return None
    if calls_interface(operations[0], "attention_interface"):
        running = getattr(config, "_attn_implementation", None)
        return None if running == "eager" else NEEDS_EAGER.format(running=running)
    if calls_interface(operations[0], "experts_forward") and len(operations) > 1:
        return _experts_condition(operations[1], module.get_submodule(".".join(location.modules)), config)
    running = getattr(config, "_attn_implementation", None)
    # A standard name on the way is no native child; nothing that is read through one depends on the attention.
    holder = dict(module.named_modules()).get(".".join(location.modules))
    if holder is not None and running is not None and only_without(type(holder).forward, operations[0]) == running:
        return NEEDS_EAGER.format(running=running)
    return None


def _experts_condition(operation: str, experts: torch.nn.Module, config: object) -> str | None:
    running = getattr(config, "_experts_implementation", None)
    function = ALL_EXPERTS_FUNCTIONS.get_interface(running, undecorated(type(experts)))
    if operation in operations_of(function):
        return None
    return NEEDS_OTHER_EXPERTS.format(operation=operation, running=running)
