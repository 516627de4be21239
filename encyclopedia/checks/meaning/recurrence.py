"""The values of a recurrent mixer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from encyclopedia.checks import recurrent
from encyclopedia.checks.meaning.contribution import contribution, module_at
from encyclopedia.checks.meaning.here import Expected, Here, Recomputation
from encyclopedia.checks.recurrent import MixerRun
from encyclopedia.structure.recurrent import recurrent_values


def _recurrent(name: str) -> Recomputation:
    def recompute(here: Here) -> Iterator[Expected]:
        run = MixerRun(here.module, recurrent_values(here.module), here.path, here.root.native.calls,
                       here.root.kernels.get(here.path, []), partial(here.value, "linear_attn"))
        yield from recurrent.recomputed(run, name)

    return recompute


def _mixed(here: Here) -> Iterator[Expected]:
    """What a recurrent mixer adds: where that is its own output, rebuilt from what enters its last projection."""
    assert here.sublayer is not None
    own = here.sublayer.post_norm is None and module_at(here.path, here.sublayer.contribution) == here.path
    yield from _recurrent("attention_output")(here) if own else contribution("attention_premix")(here)


RECOMPUTED: Mapping[str, Recomputation] = {
    **{name: _recurrent(name) for name in recurrent.RECOMPUTED},
    "attention_output": _mixed,
}
