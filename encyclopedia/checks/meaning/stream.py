"""The values of the block itself: the residual stream, and what its norms make of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from encyclopedia.checks.meaning.here import Expected, Here, Recomputation, hidden_states
from encyclopedia.structure.block import same
from encyclopedia.structure.parts import CONTRIBUTIONS


def _layer_input(here: Here) -> Iterator[Expected]:
    call = here.root.call(here.path)
    yield "what a plain hook sees enter the block", call.entering
    if here.layer and same(call.entering, here.root.call(f"{here.root.stack.layers}.{here.layer - 1}").leaving):
        yield "the block before's layer_output", here.root.value(here.layer - 1, "layer", "layer_output")


def _normed(host: str | None, stream: str, text: str) -> Recomputation:
    def recompute(here: Here) -> Iterator[Expected]:
        sublayer = here.other(host or here.normed_mixer)
        assert sublayer is not None
        assert sublayer.norm is not None
        call = here.root.call(f"{here.path}.{sublayer.first}")
        yield f"what a plain hook sees enter {sublayer.first}", hidden_states(call)
        normed = here.root.call(f"{here.path}.{sublayer.norm}")
        if stream == "layer_mid" or same(hidden_states(normed), here.root.call(here.path).entering):
            yield text, here.block.get_submodule(sublayer.norm)(here.value("layer", stream))

    return recompute


def _layer_mid(here: Here) -> Iterator[Expected]:
    *mixers, last = (sublayer.host for sublayer in here.kind.sublayers)
    stream = here.value("layer", "layer_input")
    for host in mixers:
        stream = here.gate(host) * stream + here.factor(host) * here.value(host, CONTRIBUTIONS[host])
    yield "the stream after the add in front of the last sublayer", stream
    found = here.kind.sum
    # With norms behind the adds there is neither a sum nor an identity, and nothing can be taken off the output.
    plain = here.family.identity is not None if found is None else (
        len(found.terms) == len(mixers) + 1 and found.common is None)
    if plain:
        leaving = here.value("layer", "layer_output") - here.factor(last) * here.value(last, CONTRIBUTIONS[last])
        yield "layer_output without the last sublayer's term", leaving / here.gate(last)


def _mlp_input(here: Here) -> Iterator[Expected]:
    sublayer = here.other("mlp")
    assert sublayer is not None
    yield "what a plain hook sees enter the MLP", hidden_states(here.root.call(f"{here.path}.{sublayer.first}"))


def _layer_output(here: Here) -> Iterator[Expected]:
    yield "what a plain hook sees leave the block", here.root.call(here.path).leaving


RECOMPUTED: Mapping[str, Recomputation] = {
    "layer_input": _layer_input,
    "attention_norm_output": _normed(None, "layer_input", "the norm of layer_input"),
    "layer_mid": _layer_mid,
    "mlp_norm_output": _normed("mlp", "layer_mid", "the norm of layer_mid"),
    "mlp_input": _mlp_input,
    "layer_output": _layer_output,
}
