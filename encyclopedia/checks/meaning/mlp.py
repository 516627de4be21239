"""The values of an MLP, those of a mixture among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from encyclopedia.checks.meaning.contribution import contribution, module_at, writing_layer
from encyclopedia.checks.meaning.here import Expected, Here, Recomputation, child_named
from encyclopedia.checks.meaning.mixture import RECOMPUTED as MIXTURE
from encyclopedia.checks.meaning.mixture import routed_and_shared
from encyclopedia.structure.block import same


def _activation(here: Here) -> Iterator[Expected]:
    mlp = here.module
    gate = child_named(mlp, ("gate_proj", "w1"))
    act = child_named(mlp, ("act_fn", "activation_fn", "act"))
    if gate is not None and act is not None:
        call = here.root.call(f"{here.path}.{act}")
        yield f"{act} of what a plain hook sees enter it", mlp.get_submodule(act)(call.entering)
        if same(call.entering, here.root.call(f"{here.path}.{gate}").output):
            entering = here.value("layer", "mlp_input")
            yield f"{act} of {gate} of mlp_input", mlp.get_submodule(act)(mlp.get_submodule(gate)(entering))
    else:
        assert here.sublayer is not None
        assert here.sublayer.activation is not None
        path = module_at(here.path, here.sublayer.activation)
        yield f"what a plain hook sees leave {path.rpartition('.')[2]}", here.root.call(path).output


def _neurons(here: Here) -> Iterator[Expected]:
    name, call = writing_layer(here, "mlp_neurons")
    yield f"what a plain hook sees enter {name}", call.entering
    gate, up = child_named(here.module, ("gate_proj", "w1")), child_named(here.module, ("up_proj", "w3"))
    if gate is not None and up is not None and here.has("mlp", "mlp_activation"):
        times = here.module.get_submodule(up)(here.value("layer", "mlp_input"))
        yield f"mlp_activation times {up} of mlp_input", here.value("mlp", "mlp_activation") * times


def _mlp_output(here: Here) -> Iterator[Expected]:
    yield from contribution("mlp_neurons")(here)
    if here.has("mlp", "routed_output"):
        yield routed_and_shared(here)


RECOMPUTED: Mapping[str, Recomputation] = {
    "mlp_activation": _activation,
    "mlp_neurons": _neurons,
    "mlp_output": _mlp_output,
    **MIXTURE,
}
