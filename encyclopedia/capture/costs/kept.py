"""The cache's costs: what each kind of block keeps, and where less would do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil, prod

from torch import nn

from encyclopedia.capture.costs.cache import Kept, NotMeasured
from encyclopedia.capture.costs.flops import blocks_in_words
from encyclopedia.capture.costs.running import ELEMENT, Subject
from encyclopedia.facts import CacheCosts, CacheEntry, Cost
from encyclopedia.structure.parts import Kind, Structure

#: The tensors of a cache layer that softmax attention reads.
_KEYS_AND_VALUES = ("keys", "values")


def cache_costs(structure: Structure, subject: Subject, laws: Mapping[int, Mapping[str, Kept]]) -> CacheCosts | None:
    """The cache of the full model, from the laws of the model that was run; ``None`` where it stays empty.

    Raises:
        NotMeasured: where the cache has layers that stand for no block.
    """
    if not laws:
        return None
    entries: list[CacheEntry] = []
    terms: Counter[str] = Counter()
    for (number, layer), blocks in _by_kind(subject, laws).items():
        entries += [CacheEntry(kind=number, blocks=blocks, name=name, bytes_per_token=ceil(kept.per_token),
                               bytes_fixed=kept.fixed, window=kept.window, dtype=kept.dtype) for name, kept in layer]
        growing = [_term(name, kept) for name, kept in layer if kept.per_token]
        if growing:
            terms[" + ".join(growing)] += blocks
    entries.sort(key=lambda entry: entry.kind)
    needed, saving = _needed(structure.kinds, entries)
    amount = sum(entry.blocks * entry.bytes_per_token for entry in entries)
    formula = " + ".join(f"{blocks_in_words(blocks)} * ({term})" for term, blocks in terms.items())
    per_token = Cost(amount=amount, formula=formula or "nothing grows with the text")
    return CacheCosts(kept=entries, needed=needed, saving=saving, per_token=per_token)


def left_out_of_context(structure: Structure, cache: CacheCosts, laws: Mapping[int, Mapping[str, Kept]]) -> str:
    """What attending to an earlier token takes beside products in a forward over a text; empty for nothing."""
    notes = []
    if any(kept.late for layer in laws.values() for kept in layer.values()):
        notes.append("; entries for more tokens than the short texts measured have are left out")
    for number, kind in enumerate(structure.kinds):
        latent = _latent(kind)
        kept = sum(entry.bytes_per_token for entry in cache.kept
                   if entry.kind == number and entry.name in _KEYS_AND_VALUES)
        if latent is not None and kept == sum(latent) * ELEMENT:
            notes.append("; a step from the cache makes earlier keys and values from their latents again, which is "
                         "left out")
    return "".join(dict.fromkeys(notes))


def _by_kind(subject: Subject, laws: Mapping[int, Mapping[str, Kept]]) -> Counter[tuple[int, tuple]]:
    """How many layers of the cache there are by kind of block and what they keep, by name.

    A layer beyond the blocks is another round's of a block that keeps the same.
    """
    found: Counter[tuple[int, tuple]] = Counter()
    for number, places in subject.places.items():
        for place, blocks in places.items():
            if place in laws:
                found[number, tuple(laws[place].items())] += blocks
    for layer in (tuple(laws[index].items()) for index in laws if index >= subject.blocks):
        alike = next((key for key in found if key[1] == layer), None)
        if alike is None:
            raise NotMeasured("the cache has a layer beyond the blocks that is like none of theirs")
        found[alike] += 1
    return found


def _term(name: str, kept: Kept) -> str:
    # [batch, heads, seq, width], or without heads.
    heads = kept.shape[1] if len(kept.shape) == 4 else 1
    width = kept.shape[-1] if kept.shape else 1
    if kept.per_token == heads * width * ELEMENT:
        return f"{name} {heads} * {width} * {ELEMENT} bytes" if heads > 1 else f"{name} {width} * {ELEMENT} bytes"
    return f"{name} {ceil(kept.per_token):,} bytes"


def _needed(kinds: Sequence[Kind], kept: Sequence[CacheEntry]) -> tuple[list[CacheEntry], str | None]:
    needed: list[CacheEntry] = []
    reasons: list[str] = []
    for number, kind in enumerate(kinds):
        entries = [entry for entry in kept if entry.kind == number]
        latent = _latent(kind)
        growing = [entry for entry in entries if entry.name in _KEYS_AND_VALUES]
        if latent is not None and growing and sum(entry.bytes_per_token for entry in growing) > sum(latent) * ELEMENT:
            entries = [growing[0].model_copy(update={"name": "latent", "bytes_per_token": sum(latent) * ELEMENT}),
                       *(entry for entry in entries if entry not in growing)]
            reasons.append(f"the keys and values of all heads are made from a latent of {latent[0]} and a rotary key "
                           f"of {latent[1]} per token, so keeping those is enough")
        window = None if kind.attention_type == "full_attention" else kind.sizes.get("sliding_window")
        endless = [entry for entry in entries if entry.window is None and entry.name in (*_KEYS_AND_VALUES, "latent")]
        if window is not None and endless:
            entries = [entry.model_copy(update={"window": window - 1}) if entry in endless else entry
                       for entry in entries]
            reasons.append(f"a block with a window of {window:,} tokens reads the last {window - 1:,} beside its own")
        needed += entries
    reason = "; ".join(dict.fromkeys(reasons))
    return needed, f"{reason[0].upper()}{reason[1:]}." if reason else None


def _latent(kind: Kind) -> tuple[int, int] | None:
    """The widths of the latent and of the rotary key that a block's attention projects each token to, where a layer of
    that width stands in it."""
    sublayer = kind.sublayer("self_attn")
    if sublayer is None:
        return None
    config = getattr(sublayer.module, "config", None)
    rank, rotary = (getattr(sublayer.module, name, None) or getattr(config, name, None)
                    for name in ("kv_lora_rank", "qk_rope_head_dim"))
    if not isinstance(rank, int) or not isinstance(rotary, int):
        return None
    widths = {prod(layer.weight.shape[:1]) for layer in sublayer.module.modules() if isinstance(layer, nn.Linear)}
    return (rank, rotary) if rank + rotary in widths else None
