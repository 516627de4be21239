"""The parts of a mixture of experts, by what its children are and by what they are called with."""

from __future__ import annotations

from torch import nn

from encyclopedia.structure.parts import Mixture


def find_mixture(module: nn.Module) -> Mixture | None:
    """The parts of ``module`` where it is a mixture of experts with a router and an experts module, else ``None``."""
    router = experts = shared = None
    for name, child in module.named_children():
        kind = type(child).__name__.lower()
        if "shared" in name and not name.endswith("gate"):
            shared = name
        elif "experts" in kind or name == "experts":
            experts = name
        elif "router" in kind or name in ("gate", "router"):
            router = name
    return Mixture(router, experts, shared) if router and experts else None
