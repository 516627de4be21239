"""How names, sizes and counts are put on a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from encyclopedia.facts import PartFacts, SublayerFacts

#: What a sublayer is called, by its sort.
TITLES = {"attention": "Attention", "recurrent": "Recurrent mixer", "mlp": "MLP", "mixture": "Mixture of experts"}
#: What a mixture's panels are called.
PART_TITLES = {"router": "router", "experts": "routed experts", "shared": "shared expert"}

_PREFIXES = ("attention_", "mlp_", "expert_", "router_")
#: Words that say too little alone.
_BARE = {"output", "outputs", "input"}
#: Short names that are not a value's name without its prefix.
_USUAL = {"attention_probabilities": "pattern"}


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Labels for values that stand side by side: each without its prefix where the rest is still its own."""
    short = {name: _USUAL.get(name) or _unprefixed(name) for name in names}
    taken = list(short.values())
    return {name: (label if taken.count(label) == 1 else name).replace("_", " ") for name, label in short.items()}


def _unprefixed(name: str) -> str:
    for prefix in _PREFIXES:
        rest = name.removeprefix(prefix)
        if rest != name and rest not in _BARE:
            return rest
    return name


def sublayer_title(sublayer: SublayerFacts, sizes: Mapping[str, int]) -> str:
    """The headline of a sublayer's box."""
    if sublayer.host == "linear_attn":
        return TITLES["recurrent"]
    if sublayer.host == "mlp" and "num_experts" in sizes:
        return TITLES["mixture"]
    return TITLES.get(sublayer.sort, sublayer.sort.capitalize())


def sizes_of(sublayer: SublayerFacts, sizes: Mapping[str, int]) -> list[str]:
    """The sizes of a sublayer as short phrases, such as ``48 heads over 8 kv × 128``."""
    if sublayer.host == "mlp":
        return _mixture_sizes(sublayer, sizes) if "num_experts" in sizes else _dense_sizes(sizes)
    if sublayer.host == "linear_attn":
        return _recurrent_sizes(sizes)
    if sublayer.sort != "attention" or "num_heads" not in sizes:
        return []
    heads, kv_heads = sizes["num_heads"], sizes.get("num_kv_heads", sizes["num_heads"])
    phrase = f"{heads} heads" if heads == kv_heads else f"{heads} heads over {kv_heads} kv"
    width, key_width = sizes.get("head_dim"), sizes.get("qk_head_dim")
    if width is not None:
        phrase += f" × {width}" if key_width in (None, width) else f" × {key_width} (values {width})"
    window = sizes.get("sliding_window")
    return [phrase] if window is None else [phrase, f"window {window}"]


def _recurrent_sizes(sizes: Mapping[str, int]) -> list[str]:
    """A state's sizes: heads with a matrix each, or channels with a vector each."""
    heads, key_heads = sizes.get("heads"), sizes.get("key_heads")
    widths = [str(sizes[name]) for name in ("key_dim", "value_dim") if name in sizes]
    phrases = [] if heads is None else [f"{heads} heads" + (f" × {' × '.join(widths)}" if widths else "")]
    if heads is not None and key_heads not in (None, heads):
        phrases.append(f"{key_heads} key heads")
    named = (("channels", "{} channels"), ("state_dim", "state {}"), ("groups", "{} groups"))
    return phrases + [phrase.format(sizes[name]) for name, phrase in named if name in sizes and
                      not (name == "groups" and sizes[name] == 1)]


def _dense_sizes(sizes: Mapping[str, int]) -> list[str]:
    return [f"{sizes['intermediate_size']} neurons"] if "intermediate_size" in sizes else []


def _mixture_sizes(sublayer: SublayerFacts, sizes: Mapping[str, int]) -> list[str]:
    width = sizes.get("expert_intermediate_size")
    phrases = [routing_of(sizes) + ("" if width is None else f" × {width}")]
    if any(part.name == "shared" for part in sublayer.parts):
        shared = sizes.get("shared_intermediate_size")
        phrases.append("1 shared" if shared in (None, width) else f"1 shared × {shared}")
    return phrases + [f"{phrase} beside them" for phrase in _dense_sizes(sizes)]


def routing_of(sizes: Mapping[str, int]) -> str:
    """How many experts a token visits, such as ``8 of 256``."""
    chosen, experts = sizes.get("top_k"), sizes["num_experts"]
    return f"{experts} experts" if chosen is None else f"{chosen} of {experts}"


def part_sizes(part: PartFacts, sizes: Mapping[str, int]) -> str | None:
    """The size shown at a panel's title, or ``None``."""
    if part.name == "router":
        return f"top {sizes['top_k']}" if "top_k" in sizes else None
    if part.name == "experts" and "num_experts" in sizes:
        width = sizes.get("expert_intermediate_size")
        return f"{sizes['num_experts']}" + ("" if width is None else f" × {width}")
    if part.name == "shared" and "shared_intermediate_size" in sizes:
        return str(sizes["shared_intermediate_size"])
    return None


def amount(count: int) -> str:
    """A parameter count for reading: ``33.4 B``, ``268 M``."""
    for unit, size in (("T", 10**12), ("B", 10**9), ("M", 10**6), ("K", 10**3)):
        if count >= size:
            scaled = count / size
            return f"{scaled:.0f} {unit}" if scaled >= 100 else f"{scaled:.1f} {unit}"
    return str(count)


def counted(count: int, noun: str) -> str:
    """``1 block``, ``40 blocks``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def error(value: float) -> str:
    """An error for reading: ``2.4e-7``."""
    mantissa, _, exponent = f"{value:.1e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def broken_name(name: str, letters: int) -> list[str]:
    """``name`` in lines of about ``letters`` letters, broken after underscores."""
    lines = [""]
    for piece in name.replace("_", "_\0").split("\0"):
        if lines[-1] and len(lines[-1]) + len(piece) > letters:
            lines.append("")
        lines[-1] += piece
    return lines
