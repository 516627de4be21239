"""Floating-point operations of a token's forward, two for each multiply-add of a matrix product."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from torch import nn

from encyclopedia.capture.costs.products import BLOCK, EXPERTS, OUTSIDE, Place
from encyclopedia.capture.costs.running import Ran, Subject, experts_of
from encyclopedia.facts import Cost
from encyclopedia.structure.parts import Kind, Structure


def flops(full: nn.Module, structure: Structure, subject: Subject, short: Sequence[Ran]) -> tuple[Cost, Cost]:
    """What a token takes, and what each earlier token that it attends to adds.

    Args:
        full: the full model.
        structure: what it is made of.
        subject: the model that was run.
        short: forwards of three texts, each twice as long as the one before.
    """
    return _per_token(full, structure, subject, short), _of_context(structure, subject, short)


def _per_token(full: nn.Module, structure: Structure, subject: Subject, short: Sequence[Ran]) -> Cost:
    counts: Counter[int] = Counter()
    left_out = set()
    for number, kind in enumerate(structure.kinds):
        counts += _by_count(subject.places[number], partial(_in_block, kind, short))
        if kind.sublayer("linear_attn") is not None:
            left_out.add("the recurrence itself")
        if short[-1].counted.convolutions.intersection(subject.places[number]):
            left_out.add("convolutions over positions")
    outside = _linear(short, lambda at: at.part == OUTSIDE and at.of_weights)
    head = getattr(full.get_submodule(structure.stack.lm_head), "weight", None)
    where = "the head" if head is not None and head.numel() == outside else "the head and beside the blocks"
    without = f", without {' and '.join(sorted(left_out, reverse=True))}" if left_out else ""
    terms = [*(f"{blocks_in_words(blocks)} * {count:,}" for count, blocks in counts.items()), f"{outside:,} in {where}"]
    return Cost(amount=2 * (sum(count * blocks for count, blocks in counts.items()) + outside),
                formula=f"2 * ({' + '.join(terms)}) multiply-adds of matrix products{without}")


def _of_context(structure: Structure, subject: Subject, short: Sequence[Ran]) -> Cost:
    amount = 0
    terms: Counter[str] = Counter()
    windows = set()
    for number, kind in enumerate(structure.kinds):
        counts = _by_count(subject.places[number], partial(_between_tokens, short))
        counts.pop(0, None)
        amount += 2 * sum(count * blocks for count, blocks in counts.items())
        for count, blocks in counts.items():
            terms[_of_heads(kind, count)] += blocks
        if counts and "sliding_window" in kind.sizes and kind.attention_type != "full_attention":
            windows.add(kind.sizes["sliding_window"])
    if not terms:
        return Cost(amount=0, formula="no block attends to earlier tokens one by one")
    widths = " or ".join(f"{size:,}" for size in sorted(windows))
    reach = f"; blocks with a window attend to no more than its {widths} tokens" if windows else ""
    total = " + ".join(f"{blocks_in_words(blocks)} * {term}" for term, blocks in terms.items())
    return Cost(amount=amount, formula=f"2 * ({total}), queries by keys and pattern by values{reach}")


def blocks_in_words(number: int) -> str:
    """How many blocks."""
    return f"{number} block{'s' * (number != 1)}"


def _by_count(places: Mapping[int, int], count: Callable[[int], int]) -> Counter[int]:
    """How many blocks there are with each count."""
    found: Counter[int] = Counter()
    for place, blocks in places.items():
        found[count(place)] += blocks
    return found


def _in_block(kind: Kind, short: Sequence[Ran], place: int) -> int:
    """Multiply-adds of a token in one block, in all its calls."""
    made = _linear(short, lambda at: at.block == place and at.part != EXPERTS and (at.of_weights or at.part == BLOCK))
    return made + short[-1].counted.calls[place] * _active_experts(kind)


def _between_tokens(short: Sequence[Ran], place: int) -> int:
    """Multiply-adds of a pair of tokens in one block, in all its calls."""
    return _quadratic(short, lambda at: at.block == place and at.part == BLOCK and not at.of_weights)


def _of_heads(kind: Kind, count: int) -> str:
    heads, width, key_width = (kind.sizes.get(name) for name in ("num_heads", "head_dim", "qk_head_dim"))
    plain = heads * ((key_width or width) + width) if heads and width else 0
    if not plain or count < plain:
        return f"{count:,}"
    rounds, rest = divmod(count, plain)
    named = f"{'' if rounds == 1 else f'{rounds} rounds * '}{heads} heads * ({key_width or width} + {width})"
    return f"({named} + {rest:,} in products beside these)" if rest else named


def _active_experts(kind: Kind) -> int:
    """Multiply-adds of a token in the routed experts it is sent to."""
    num_experts, top_k = (kind.sizes.get(name) for name in ("num_experts", "top_k"))
    number = sum(parameter.numel() for path in experts_of(kind)
                 for name, parameter in kind.block.get_submodule(path).named_parameters()
                 if "bias" not in name and parameter.ndim > 1)
    return number * top_k // num_experts if num_experts and top_k else number


def _sums(short: Sequence[Ran], wanted: Callable[[Place], bool]) -> list[int]:
    return [sum(count for place, count in ran.counted.products.items() if wanted(place)) for ran in short]


def _quadratic(short: Sequence[Ran], wanted: Callable[[Place], bool]) -> int:
    """Multiply-adds for each pair of tokens: the second difference over three lengths, each twice the one before."""
    first, second, third = _sums(short, wanted)
    return (third - 3 * second + 2 * first) // (6 * short[0].length ** 2)


def _linear(short: Sequence[Ran], wanted: Callable[[Place], bool]) -> int:
    """Multiply-adds for each token, beside those for each pair and those of any text."""
    first, second, _ = _sums(short, wanted)
    length = short[0].length
    return (second - first - 3 * length ** 2 * _quadratic(short, wanted)) // length

