"""The values of a mixture of experts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from encyclopedia.checks.experts import one_slot_at_a_time, scored
from encyclopedia.checks.meaning.here import Expected, Here, Recomputation, child_named, hidden_states
from encyclopedia.structure.block import same

#: Children of a mixture that gate its shared expert.
SHARED_GATES = ("shared_expert_gate", "shared_gate")


def routed_and_shared(here: Here) -> Expected:
    """What a mixture returns, from its routed experts and its shared one."""
    routed = here.value("mlp", "routed_output")
    if not here.has("mlp", "shared_expert_output"):
        return "routed_output", routed
    shared = here.value("mlp", "shared_expert_output")
    gated = ", through its gate" if child_named(here.module, SHARED_GATES) is not None else ""
    return f"routed_output plus shared_expert_output{gated}", routed + _shared_gate(here) * shared


def _shared_gate(here: Here) -> torch.Tensor | float:
    """What multiplies the shared expert's output: the sigmoid of its gate where it has one, else one."""
    gate = child_named(here.module, SHARED_GATES)
    if gate is None:
        return 1.0
    return here.module.get_submodule(gate)(hidden_states(here.root.call(here.path))).sigmoid()


def _flat(here: Here) -> torch.Tensor:
    return here.value("layer", "mlp_input").flatten(0, 1)


def _router(here: Here) -> nn.Module:
    assert here.sublayer is not None
    assert here.sublayer.mixture is not None
    return here.module.get_submodule(here.sublayer.mixture.router)


def _router_logits(here: Here) -> Iterator[Expected]:
    router = _router(here)
    weight, bias = (router._parameters.get(name) for name in ("weight", "bias"))
    assert weight is not None
    flat = _flat(here)
    logits = F.linear(flat.to(weight.dtype), weight, bias)
    yield "the router's weight times mlp_input", logits.unflatten(0, here.value("layer", "mlp_input").shape[:2])


def _routed(name: str) -> Recomputation:
    def recompute(here: Here) -> Iterator[Expected]:
        found = here.value("mlp", name)
        assert here.sublayer is not None
        assert here.sublayer.mixture is not None
        returned = here.root.call(f"{here.path}.{here.sublayer.mixture.router}").output
        parts = [part for part in (returned if isinstance(returned, tuple) else (returned,))
                 if isinstance(part, torch.Tensor) and part.ndim == 2]
        alike = [part.unflatten(0, found.shape[:2]) for part in parts if isinstance(part, torch.Tensor)
                 and part.shape[-1] == found.shape[-1] and part.is_floating_point() == found.is_floating_point()]
        if alike:
            yield "what a plain hook sees leave the router", alike[-1]
        formula = scored(_router(here), here.value("mlp", "router_logits"), parts)
        if formula is not None:
            text, weights, indices = formula
            yield text, weights if name == "expert_weights" else indices

    return recompute


def _expert_outputs(here: Here) -> Iterator[Expected]:
    assert here.sublayer is not None
    assert here.sublayer.mixture is not None
    experts = here.module.get_submodule(here.sublayer.mixture.experts)
    weights, indices = here.value("mlp", "expert_weights"), here.value("mlp", "expert_indices")
    slots = one_slot_at_a_time(experts, _flat(here), indices.flatten(0, 1), weights.flatten(0, 1))
    yield "the experts' own loop, one routing slot at a time", slots.unflatten(0, weights.shape[:2])


def _routed_output(here: Here) -> Iterator[Expected]:
    assert here.sublayer is not None
    assert here.sublayer.mixture is not None
    parts = here.sublayer.mixture
    whole = here.root.call(here.path).leaving
    if parts.shared is None:
        yield "what a plain hook sees leave the mixture, which has no shared expert", whole
    else:
        shared = here.root.call(f"{here.path}.{parts.shared}").leaving.reshape(whole.shape) * _shared_gate(here)
        yield "what a plain hook sees leave the mixture, less the shared expert's part", whole - shared
    scale = getattr(here.module, "routed_scaling_factor", None)
    total = here.value("mlp", "expert_outputs").sum(dim=2)
    if scale is not None and same(total * scale, here.value("mlp", "routed_output")):
        yield "the sum of expert_outputs over the slots, times the routed scaling factor", total * scale
    else:
        yield "the sum of expert_outputs over the slots", total


def _shared_expert_output(here: Here) -> Iterator[Expected]:
    assert here.sublayer is not None
    assert here.sublayer.mixture is not None
    assert here.sublayer.mixture.shared is not None
    yield ("what a plain hook sees leave the shared expert",
           here.root.call(f"{here.path}.{here.sublayer.mixture.shared}").leaving)
    shared = here.module.get_submodule(here.sublayer.mixture.shared)
    yield "the shared expert called on mlp_input by itself", shared(here.value("layer", "mlp_input"))


RECOMPUTED: Mapping[str, Recomputation] = {
    "router_logits": _router_logits,
    "expert_weights": _routed("expert_weights"),
    "expert_indices": _routed("expert_indices"),
    "expert_outputs": _expert_outputs,
    "routed_output": _routed_output,
    "shared_expert_output": _shared_expert_output,
}
