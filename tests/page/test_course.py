"""How a block's parts follow one another, as read off its facts."""

from __future__ import annotations

import pytest

from encyclopedia.facts import CheckpointFacts, HostFacts, KindFacts, UnconfirmedValue
from encyclopedia.page.block import block_view, identity_tokens
from encyclopedia.page.cards import cards_of
from encyclopedia.page.course import course, course_of, factor_in_short
from tests.page.small_facts import checkpoint, family, value
from tests.page.test_diagram import KINDS, attention, dense, kind, recurrent

STREAM = [[1, 8, 4]]
SCALED = ("layers[i].input + layers[i].residual_multiplier * self_attn.attention_output"
          " + layers[i].residual_multiplier * mlp.mlp_output + shared_mlp.output == layer_output")


def checkpoint_of(facts: KindFacts, *layer: str, layout: str = "Residual", **changes: object) -> CheckpointFacts:
    """A checkpoint of one kind, whose blocks have the values ``layer``."""
    hosts = [HostFacts(name="layer", host="model.layers[i]", classes=["Block"], values=[
        value(name, "stream", STREAM, layout=layout) for name in layer])]
    for row in facts.sublayers:
        role = "mlp" if row.host == "mlp" else "attention"
        hosts.append(HostFacts(name=row.host, host=f"model.layers[i].{row.host}", classes=["Native"], values=[
            value(name, role, STREAM) for name in (*row.values, row.contribution)]))
    return checkpoint(**{"kinds": [facts], "hosts": hosts, "claims": []} | changes)


PAIR = kind(attention(), dense())
BOTH = ("layer_input", "layer_output")


def hosts_by_row(facts: CheckpointFacts) -> list[list[str]]:
    return [[row.host for row in together] for together in course_of(facts, 0).rows]


def test_a_stream_in_the_middle_means_one_after_the_other() -> None:
    facts = checkpoint_of(PAIR, "layer_input", "layer_mid", "layer_output")
    assert hosts_by_row(facts) == [["self_attn"], ["mlp"]]
    assert course_of(facts, 0).mid
    assert [course_of(facts, 0).sum_after(position) for position in (0, 1)] == ["layer_mid", "layer_output"]


def test_two_sublayers_with_no_stream_between_them_read_the_same() -> None:
    assert hosts_by_row(checkpoint_of(PAIR, *BOTH)) == [["self_attn", "mlp"]]


@pytest.mark.parametrize("facts", [
    checkpoint_of(PAIR, *BOTH, layout="Streams"),
    checkpoint_of(PAIR, *BOTH, unconfirmed=[
        UnconfirmedValue(host="layer", native="Block", name="layer_mid", reason="it is not what is added to")]),
], ids=["several streams", "a middle that was left out"])
def test_a_middle_that_cannot_be_read_is_not_taken_for_none(facts: CheckpointFacts) -> None:
    assert hosts_by_row(facts) == [["self_attn"], ["mlp"]]
    assert not course_of(facts, 0).mid


def test_of_three_sublayers_those_with_one_norm_read_the_same() -> None:
    assert hosts_by_row(checkpoint_of(KINDS["three"], *BOTH)) == [["linear_attn", "self_attn"], ["mlp"]]


def test_of_three_sublayers_one_without_any_norm_reads_what_the_one_before_does() -> None:
    first, second, third = KINDS["three"].sublayers
    bare = second.model_copy(update={"norm": None})
    facts = KINDS["three"].model_copy(update={"sublayers": [first, bare, third]})
    assert hosts_by_row(checkpoint_of(facts, *BOTH)) == [["linear_attn", "self_attn"], ["mlp"]]
    behind = bare.model_copy(update={"post_norm": "post_norm"})
    facts = KINDS["three"].model_copy(update={"sublayers": [first, behind, third]})
    assert hosts_by_row(checkpoint_of(facts, *BOTH)) == [["linear_attn"], ["self_attn"], ["mlp"]]


def test_streams_are_counted_where_the_layout_says_so() -> None:
    facts = PAIR.model_copy(update={"sizes": {"streams": 4}})
    assert course_of(checkpoint_of(facts, *BOTH, layout="Streams"), 0).streams == 4
    assert course_of(checkpoint_of(facts, *BOTH), 0).streams is None


def test_factors_and_native_terms_are_read_off_the_identity() -> None:
    way = course(PAIR.model_copy(update={"identity": SCALED}))
    assert way.factors == {"self_attn": "layers[i].residual_multiplier", "mlp": "layers[i].residual_multiplier"}
    assert way.loose == ("shared_mlp.output",)
    assert way.stated == {"self_attn", "mlp"}
    assert factor_in_short("config.a * layers[i].b") == "× a · b"


@pytest.mark.parametrize("identity", [
    "gate * (layers[i].input + self_attn.attention_output) + mlp.mlp_output == layer_output",
    "alpha * layers[i].input + beta * self_attn.attention_output + mlp.mlp_output == layer_output",
])
def test_no_factor_is_given_to_an_add_where_the_stream_is_scaled_too(identity: str) -> None:
    way = course(PAIR.model_copy(update={"identity": identity}))
    assert way.factors == {}
    assert way.loose == ()
    assert way.stated == {"self_attn", "mlp"}


def test_a_sum_that_is_multiplied_as_a_whole_ends_in_a_gate() -> None:
    total = "layers[i].input + self_attn.attention_output + mlp.mlp_output + post.output"
    facts = PAIR.model_copy(update={"identity": f"layer_scalar * ({total}) == layer_output"})
    way = course(facts)
    assert (way.scale, way.loose, way.factors) == ("layer_scalar", ("post.output",), {})
    assert way.sum_after(2) is None
    made = checkpoint_of(facts, *BOTH)
    cards = {card.id: card for card in cards_of(made)}
    assert cards["gate.layer"].description.endswith("The product is `layer_output`.")
    assert "layer_output" not in cards["add.2"].description
    nodes = {node.id: node.box for node in block_view(made, family()).kinds[0].wide.nodes}
    assert nodes["add.2"].bottom < nodes["gate.layer"].y
    assert {token.text: token.node for token in identity_tokens(facts)}["layer_scalar"] == "gate.layer"


def test_a_sublayer_that_is_no_term_is_not_said_to_be_added() -> None:
    facts = PAIR.model_copy(update={"identity": "layers[i].input + mlp.mlp_output == layer_output"})
    assert course(facts).stated == {"mlp"}
    cards = {card.id: card for card in cards_of(checkpoint_of(facts, *BOTH))}
    assert "how it does is not stated" in cards["add.0"].description
    assert cards["add.1"].description.startswith("Adds `mlp.mlp_output` to the stream.")


@pytest.mark.parametrize("facts", [*KINDS.values(), PAIR.model_copy(update={"identity": SCALED}),
                                   PAIR.model_copy(update={"identity": None})])
@pytest.mark.parametrize("layer", [BOTH, ("layer_input", "layer_mid", "layer_output")], ids=["ends", "with a middle"])
def test_every_part_has_one_card(facts: KindFacts, layer: tuple[str, ...]) -> None:
    made = checkpoint_of(facts, *layer)
    cards = [card.id for card in cards_of(made)]
    assert len(cards) == len(set(cards))
    for drawing in (block_view(made, family()).kinds[0].wide, block_view(made, family()).kinds[0].narrow):
        assert {node.id for node in drawing.nodes} <= set(cards)


def test_cards_say_what_a_contribution_is_multiplied_by() -> None:
    facts = PAIR.model_copy(update={"identity": SCALED})
    cards = {card.id: card for card in cards_of(checkpoint_of(facts, "layer_mid", *BOTH))}
    [times] = [row for row in cards["contribution.self_attn"].rows if row.label == "times"]
    assert times.text == "`layers[i].residual_multiplier`, before it is added"
    assert cards["add.0"].description == ("Adds `self_attn.attention_output`, multiplied by "
                                          "`layers[i].residual_multiplier`, to the stream. The sum is `layer_mid`.")
    assert cards["contribution.shared_mlp.output"].expression == "model.layers[i].shared_mlp.output"
    assert cards["add.2"].expression == "model.layers[i].layer_output"


def test_without_an_identity_no_card_speaks_of_a_sum() -> None:
    cards = cards_of(checkpoint_of(PAIR.model_copy(update={"identity": None}), *BOTH))
    assert not any(row.label == "term of" for card in cards for row in card.rows)
    assert not any("The sum is" in card.description for card in cards)
    [sublayer] = [card for card in cards if card.id == "sublayer.mlp"]
    assert [row.text for row in sublayer.rows if row.label == "gives"] == ["`mlp_output`"]


def test_a_native_term_of_the_identity_names_its_part() -> None:
    tokens = {token.text: token.node for token in identity_tokens(PAIR.model_copy(update={"identity": SCALED}))}
    assert tokens["shared_mlp.output"] == "contribution.shared_mlp.output"
    assert tokens["layers[i].residual_multiplier"] is None


def test_the_sizes_of_a_recurrent_mixer_are_said() -> None:
    facts = kind(recurrent(), heads=32, key_heads=16, key_dim=128, value_dim=64)
    [card] = [card for card in cards_of(checkpoint_of(facts, *BOTH)) if card.id == "sublayer.linear_attn"]
    assert card.description == "Recurrent mixer with 32 heads × 128 × 64; 16 key heads."
    assert card.role == "attention"
