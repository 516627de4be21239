"""The values of softmax attention."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch

from encyclopedia.checks.meaning.contribution import contribution, writing_layer
from encyclopedia.checks.meaning.here import Expected, Here, NotRead, Recomputation
from encyclopedia.native import Arithmetic, AttentionCall


def _call(here: Here) -> AttentionCall:
    assert here.sublayer is not None
    path = f"{here.path}.{here.sublayer.interior}" if here.sublayer.interior else here.path
    if path not in here.root.native.attention:
        raise NotRead(path)
    return here.root.native.attention[path]


def _taken(part: str, name: str) -> Recomputation:
    def recompute(here: Here) -> Iterator[Expected]:
        if not _has_call(here):
            yield from _operand(here, part, here.value("self_attn", name))
            return
        yield f"the {part} that the eager attention function is called with", getattr(_call(here), part)

    return recompute


def _has_call(here: Here) -> bool:
    try:
        _call(here)
    except NotRead:
        return False
    return True


def _own(here: Here) -> Arithmetic:
    """The softmax and products of an attention that does its own arithmetic."""
    inside = [found for path, found in here.root.native.arithmetic.items()
              if (path == here.path or path.startswith(f"{here.path}.")) and found.softmaxes]
    if not inside:
        raise NotRead("a softmax")
    return inside[0]


def _operand(here: Here, part: str, found: torch.Tensor) -> Iterator[Expected]:
    """What the products around the softmax were given, in the layout of ``found``; repeated heads once."""
    own = _own(here)
    if not (own.before and own.after):
        raise NotRead("the products around the softmax")
    given = {"query": own.before[-1].left, "key": own.before[-1].right.transpose(-1, -2),
             "value": own.after[0].right}[part]
    batch, heads = found.shape[0], found.shape[1]
    given = given.reshape(batch, -1, *given.shape[-2:])
    if given.shape[1] != heads:
        repeated = given.unflatten(1, (heads, -1))
        given = repeated[:, :, 0]
    text = {"query": "the left operand of the product ahead of the softmax",
            "key": "the right operand of the product ahead of the softmax",
            "value": "the right operand of the product behind the softmax"}[part]
    yield text, given


def _repeated(tensor: torch.Tensor, heads: int) -> torch.Tensor:
    return tensor.repeat_interleave(heads // tensor.shape[1], dim=1)


def _scores(here: Here) -> Iterator[Expected]:
    if not _has_call(here):
        yield "what enters the softmax", _own(here).softmaxes[-1][0].reshape(
            here.value("self_attn", "attention_scores").shape)
        return
    call = _call(here)
    if call.scaling is None:
        raise NotRead("the factor of the scores")
    product = call.query @ _repeated(call.key, call.query.shape[1]).transpose(-1, -2) * call.scaling
    softcap = call.others.get("softcap")
    capped = "" if not softcap else ", capped"
    product = product if not softcap else softcap * torch.tanh(product / softcap)
    masked = "" if call.mask is None else ", plus the mask"
    yield f"query · key, scaled{capped}{masked}", product if call.mask is None else product + call.mask


def _probabilities(here: Here) -> Iterator[Expected]:
    pattern = _call(here).pattern if _has_call(here) else None
    if not _has_call(here):
        yield "what leaves the softmax", _own(here).softmaxes[-1][1].reshape(
            here.value("self_attn", "attention_probabilities").shape)
    if pattern is not None:
        yield "the pattern that the eager attention function returns", pattern
    scores = here.value("self_attn", "attention_scores").float()
    sinks = _sinks(here)
    if sinks is None:
        yield "the softmax of attention_scores", scores.softmax(-1)
    else:
        beside = sinks.reshape(1, -1, 1, 1).expand(*scores.shape[:-1], 1)
        yield ("the softmax of attention_scores beside a column of sinks, which is dropped",
               torch.cat([scores, beside], dim=-1).softmax(-1)[..., :-1])


def _sinks(here: Here) -> torch.Tensor | None:
    """The heads' sinks, which take a share of the softmax, or ``None``."""
    given = _call(here).others.get("s_aux") if _has_call(here) else None
    own = here.module._parameters.get("sinks")
    return given if given is not None else own


def _head_outputs(here: Here) -> Iterator[Expected]:
    if _has_call(here):
        yield "what the eager attention function returns", _call(here).outputs
    elif _own(here).after:
        mixing = _own(here).after[0]
        batch, seq, heads, width = here.value("self_attn", "attention_head_outputs").shape
        product = (mixing.left @ mixing.right).reshape(batch, heads, seq, width)
        yield "the product behind the softmax", product.transpose(1, 2)
    pattern, values = (here.value("self_attn", f"attention_{name}") for name in ("probabilities", "values"))
    mixed = pattern.to(values.dtype) @ _repeated(values, pattern.shape[1])
    yield "attention_probabilities times attention_values, repeated to the query heads", mixed.transpose(1, 2)


def _premix(here: Here) -> Iterator[Expected]:
    name, call = writing_layer(here, "attention_premix")
    width = here.value("self_attn", "attention_premix").shape[-1]
    yield f"what a plain hook sees enter {name}", call.entering.unflatten(-1, (-1, width))


RECOMPUTED: Mapping[str, Recomputation] = {
    "attention_queries": _taken("query", "attention_queries"),
    "attention_keys": _taken("key", "attention_keys"),
    "attention_values": _taken("value", "attention_values"),
    "attention_scores": _scores,
    "attention_probabilities": _probabilities,
    "attention_head_outputs": _head_outputs,
    "attention_premix": _premix,
    "attention_output": contribution("attention_premix"),
}
