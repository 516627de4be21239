"""What moves information between tokens in a block, and families sorted by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from encyclopedia.facts import CheckpointFacts, FamilyFacts, KindFacts, SublayerFacts
from encyclopedia.page.course import course_of
from encyclopedia.page.shown import reference_of


@dataclass(frozen=True)
class Mixer:
    """What a block mixes tokens with.

    Attributes:
        slug: its name in data.
        phrase: how a sentence about blocks names it.
    """

    slug: str
    phrase: str


SOFTMAX = Mixer("softmax", "with softmax attention")
RECURRENT = Mixer("recurrent", "with a recurrent mixer")
BOTH = Mixer("both", "with softmax attention beside a recurrent mixer")
NEITHER = Mixer("none", "that mix no tokens")
UNKNOWN = Mixer("unknown", "whose inside is not told apart")


def mixer_of(kind: KindFacts) -> Mixer:
    """What the blocks of a kind mix tokens with."""
    if not kind.sublayers:
        return UNKNOWN
    hosts = {sublayer.host for sublayer in kind.sublayers}
    if {"self_attn", "linear_attn"} <= hosts:
        return BOTH
    return SOFTMAX if "self_attn" in hosts else RECURRENT if "linear_attn" in hosts else NEITHER


def mixers_of(checkpoint: CheckpointFacts) -> tuple[str, ...]:
    """The slugs of a checkpoint's mixers, each once."""
    return tuple(dict.fromkeys(mixer_of(kind).slug for kind in checkpoint.kinds))


@dataclass(frozen=True)
class Group:
    """A sort of family, by how its reference checkpoint is made.

    Attributes:
        slug: its name in data and addresses.
        title: its name on a page.
        sentence: what makes a family one of it.
    """

    slug: str
    title: str
    sentence: str


#: The sorts of family, in the order in which a page lists them.
GROUPS = (
    Group("dense", "Softmax attention, dense MLP", "Every block has attention and then one MLP for all tokens."),
    Group("mixture", "Softmax attention, mixture of experts", "Some or all blocks route tokens to experts."),
    Group("latent", "Latent attention", "Keys and values are unfolded from one compressed vector per token."),
    Group("parallel", "Parallel", "Attention and MLP read the same stream, and both are added to it afterwards."),
    Group("streams", "Several streams", "The blocks carry several residual streams beside one another."),
    Group("hybrid", "Hybrid", "Softmax attention and a recurrent mixer, in different blocks or side by side."),
    Group("recurrent", "Recurrent", "A state is carried from token to token; no block has softmax attention."),
    Group("other", "Other", "Blocks whose sublayers were not all told apart."),
    Group("failed", "Not verified",
          "Something about them could not be derived or did not hold in a run; their page says what."),
)


def group_of(family: FamilyFacts) -> Group:
    """The sort of ``family``."""
    return next(group for group in GROUPS if group.slug == _slug(family))


def by_group(families: Sequence[FamilyFacts]) -> list[tuple[Group, list[FamilyFacts]]]:
    """``families`` by their sort, in the order of :data:`GROUPS`; no empty sort."""
    found: dict[str, list[FamilyFacts]] = {}
    for family in families:
        found.setdefault(_slug(family), []).append(family)
    return [(group, found[group.slug]) for group in GROUPS if group.slug in found]


def _slug(family: FamilyFacts) -> str:
    reference = reference_of(family)
    if family.failure is not None or reference is None:
        return "failed"
    mixers = set(mixers_of(reference)) - {NEITHER.slug}
    if "both" in mixers or {"softmax", "recurrent"} <= mixers:
        return "hybrid"
    if mixers == {"recurrent"}:
        return "recurrent"
    if mixers != {"softmax"}:
        return "other"
    courses = [course_of(reference, index) for index in range(len(reference.kinds))]
    if any(way.streams is not None for way in courses):
        return "streams"
    if all(len(way.rows) < len(way.sublayers) for way in courses):
        return "parallel"
    if _is_latent(reference):
        return "latent"
    if has_mixture(reference):
        return "mixture"
    return "dense" if _mlps(reference) else "other"


def has_mixture(checkpoint: CheckpointFacts) -> bool:
    """Whether some block of ``checkpoint`` has a mixture of experts."""
    return any(sublayer.parts or sublayer.sort == "mixture" for sublayer in _mlps(checkpoint))


def _mlps(checkpoint: CheckpointFacts) -> list[SublayerFacts]:
    return [sublayer for kind in checkpoint.kinds for sublayer in kind.sublayers if sublayer.host == "mlp"]


def _is_latent(checkpoint: CheckpointFacts) -> bool:
    return bool(checkpoint.config.get("kv_lora_rank"))
