"""The diagram's geometry, on kinds like those of real families and on generated ones."""

from __future__ import annotations

import itertools
import re
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from encyclopedia.facts import EdgeFacts, KindFacts, PartFacts, SublayerFacts
from encyclopedia.page.diagram import NARROW, WIDE, Drawing, Style, draw
from encyclopedia.page.geometry import Box, number, polyline

STYLES = pytest.mark.parametrize("style", [WIDE, NARROW], ids=["wide", "narrow"])

ATTENTION_EDGES = [
    ("attention_queries", "attention_scores", "q · k"),
    ("attention_keys", "attention_scores", "q · k"),
    ("attention_scores", "attention_probabilities", "softmax"),
    ("attention_probabilities", "attention_head_outputs", None),
    ("attention_values", "attention_head_outputs", None),
    ("attention_head_outputs", "attention_premix", "gate"),
    ("attention_premix", "attention_output", None),
]
MIXTURE_EDGES = [
    ("router_logits", "expert_weights", None),
    ("router_logits", "expert_indices", None),
    ("expert_weights", "expert_outputs", None),
    ("expert_indices", "expert_outputs", None),
    ("expert_outputs", "routed_output", None),
    ("routed_output", "mlp_output", None),
    ("shared_expert_output", "mlp_output", None),
]


def sublayer(host: str, values: list[str], edges: list[tuple[str, str, str | None]], **more: object) -> SublayerFacts:
    facts = {
        "host": host, "sort": "mlp" if host == "mlp" else "attention", "class_name": "Native", "norm": None,
        "post_norm": None, "contribution": "mlp_output" if host == "mlp" else "attention_output", "stream_gate": None,
        "values": values, "parts": [],
        "edges": [EdgeFacts(source=source, target=target, label=label) for source, target, label in edges],
    }
    return SublayerFacts.model_validate(facts | more)


def attention(**more: object) -> SublayerFacts:
    names = ["queries", "keys", "values", "scores", "probabilities", "head_outputs", "premix"]
    return sublayer("self_attn", [f"attention_{name}" for name in names], ATTENTION_EDGES,
                    **{"norm": "input_layernorm"} | more)


def dense(**more: object) -> SublayerFacts:
    edges = [("mlp_activation", "mlp_neurons", None), ("mlp_neurons", "mlp_output", None)]
    return sublayer("mlp", ["mlp_activation", "mlp_neurons"], edges, **{"norm": "post_attention_layernorm"} | more)


def mixture(**more: object) -> SublayerFacts:
    values = ["shared_expert_output", "router_logits", "expert_weights", "expert_indices", "expert_outputs",
              "routed_output"]
    parts = [
        PartFacts(name="router", module="gate", class_name="Router", values=values[1:4]),
        PartFacts(name="experts", module="experts", class_name="Experts", values=values[4:]),
        PartFacts(name="shared", module="shared_experts", class_name="Mlp", values=values[:1]),
    ]
    return sublayer("mlp", values, MIXTURE_EDGES,
                    **{"sort": "mixture", "norm": "post_attention_layernorm", "parts": parts} | more)


def kind(*sublayers: SublayerFacts, **sizes: int) -> KindFacts:
    return KindFacts(blocks=[0], label="full · dense MLP", attention_type="full_attention", modules={}, sizes=sizes,
                     identity="layers[i].input == layer_output", identity_error=0.0, sublayers=list(sublayers))


HEADS = {"num_heads": 64, "num_kv_heads": 8, "head_dim": 128, "qk_head_dim": 128, "sliding_window": 512}
EXPERTS = {"num_experts": 256, "top_k": 8, "expert_intermediate_size": 512, "shared_intermediate_size": 512}
KINDS = {
    "laguna dense": kind(attention(), dense(), **HEADS, intermediate_size=8192),
    "laguna mixture": kind(attention(), mixture(), **HEADS, **EXPERTS),
    "doge": kind(attention(stream_gate="input_residual"), dense(stream_gate="post_attention_residual"), **HEADS),
    "one sublayer": kind(attention()),
    "post-norms only": kind(attention(norm=None, post_norm="post_attention_layernorm"),
                            dense(norm=None, post_norm="post_feedforward_layernorm")),
    "four norms": kind(attention(post_norm="post_attention_layernorm"),
                       mixture(norm="pre_feedforward_layernorm", post_norm="post_feedforward_layernorm"), **EXPERTS),
    "no interior": kind(sublayer("linear_attn", [], []), dense()),
    "no scores": kind(sublayer("self_attn", ["attention_premix"], [("attention_premix", "attention_output", None)])),
    "nothing": kind(),
}
EVERY_KIND = pytest.mark.parametrize("facts", KINDS.values(), ids=list(KINDS))


def check(facts: KindFacts, style: Style, *, parallel: bool = False) -> Drawing:
    """Everything that holds of any drawing."""
    drawing = draw(facts, style, parallel=parallel)
    page = Box(0, 0, drawing.width, drawing.height)
    by_id = {node.id: node for node in drawing.nodes}
    assert len(by_id) == len(drawing.nodes), "every id once in a layout"
    assert list(by_id) == forward_order(facts, parallel=parallel)
    for node in drawing.nodes:
        assert page.encloses(node.box), node.id
        assert node.hit is None or node.box.encloses(node.hit), node.id
    values = [node for node in drawing.nodes if node.shape == "value"]
    for one, other in itertools.combinations(values, 2):
        assert not one.box.overlaps(other.box), (one.id, other.id)
    check_nesting(facts, drawing)
    for edge in drawing.edges:
        assert all(page.touches(point) for point in edge.points), edge
        assert by_id[edge.source].shape in ("stream", "add") or touches(by_id[edge.source], edge.points[0]), edge
        assert touches(by_id[edge.target], edge.points[-1]), edge
        for (x, y), (next_x, next_y) in itertools.pairwise(edge.points):
            assert abs(x - next_x) < 0.1 or abs(y - next_y) < 0.1, "lines are horizontal or vertical"
    return drawing


def touches(node: object, point: tuple[float, float]) -> bool:
    return node.box.touches(point) or (node.join is not None and node.join.touches(point))  # type: ignore[attr-defined]


def check_nesting(facts: KindFacts, drawing: Drawing) -> None:
    boxes = {node.id: node.box for node in drawing.nodes}
    for row in facts.sublayers:
        module = boxes[f"sublayer.{row.host}"]
        assert not module.overlaps(boxes[f"contribution.{row.host}"])
        assert all(module.encloses(boxes[f"value.{row.host}.{name}"]) for name in row.values)
        for part in row.parts:
            panel = boxes[f"part.{row.host}.{part.name}"]
            assert module.encloses(panel)
            for name in row.values:
                box = boxes[f"value.{row.host}.{name}"]
                assert panel.encloses(box) if name in part.values else not panel.overlaps(box)


def forward_order(facts: KindFacts, *, parallel: bool = False) -> list[str]:
    """The nodes of a kind in the order in which a forward computes them."""
    order, seen, returns = ["stream.input"], set[str](), []
    for index, row in enumerate(facts.sublayers):
        if row.norm is not None and row.norm not in seen:
            seen.add(row.norm)
            order.append(f"norm.{row.norm}")
        order.append(f"sublayer.{row.host}")
        opened = set()
        for name in row.values:
            part = next((part for part in row.parts if name in part.values), None)
            if part is not None and part.name not in opened:
                opened.add(part.name)
                order.append(f"part.{row.host}.{part.name}")
            order.append(f"value.{row.host}.{name}")
        back = [f"norm.{row.post_norm}"] if row.post_norm else []
        back += [f"contribution.{row.host}", *([f"gate.{row.host}"] if row.stream_gate else []), f"add.{index}"]
        if index == 0 and len(facts.sublayers) == 2 and not parallel:
            back.append("stream.mid")
        if parallel:
            returns += back
        else:
            order += back
    return [*order, *returns, "stream.output"]


@STYLES
@EVERY_KIND
def test_kinds_like_those_of_families(facts: KindFacts, style: Style) -> None:
    check(facts, style)


@STYLES
@pytest.mark.parametrize("shared_norm", [False, True])
def test_parallel_sublayers_read_the_stream_before_it_is_added_to(style: Style, shared_norm: bool) -> None:
    second = dense(norm="input_layernorm") if shared_norm else dense()
    drawing = check(kind(attention(), second), style, parallel=True)
    boxes = {node.id: node.box for node in drawing.nodes}
    assert boxes["add.0"].y > boxes["sublayer.mlp"].bottom
    assert not any(edge.source == "stream.mid" for edge in drawing.edges)


def test_attention_runs_from_left_to_right_in_the_order_of_the_data() -> None:
    boxes = {node.id: node.box for node in draw(KINDS["laguna mixture"], WIDE).nodes}
    chain = ["queries", "scores", "probabilities", "head_outputs", "premix"]
    columns = [boxes[f"value.self_attn.attention_{name}"] for name in chain]
    assert all(before.right < after.x for before, after in itertools.pairwise(columns))
    assert boxes["value.self_attn.attention_values"].cy == boxes["value.self_attn.attention_head_outputs"].cy


def test_arrows_carry_the_operation_once() -> None:
    words = [mark.text for mark in draw(KINDS["laguna dense"], WIDE).marks if mark.text]
    assert words == ["q · k", "softmax", "gate"]


def test_a_mixture_is_summed_inside_its_module() -> None:
    drawing = draw(KINDS["laguna mixture"], WIDE)
    by_id = {node.id: node for node in drawing.nodes}
    join = by_id["contribution.mlp"].join
    assert join is not None
    assert by_id["sublayer.mlp"].box.encloses(join)
    into = [edge for edge in drawing.edges if edge.target == "contribution.mlp" and join.touches(edge.points[-1])]
    assert [edge.source for edge in into] == ["value.mlp.routed_output", "value.mlp.shared_expert_output"]


def test_a_gate_stands_on_the_stream_before_the_add() -> None:
    boxes = {node.id: node.box for node in draw(KINDS["doge"], WIDE).nodes}
    for host, add in (("self_attn", "add.0"), ("mlp", "add.1")):
        gate = boxes[f"gate.{host}"]
        assert gate.cx == boxes[add].cx
        assert boxes[f"sublayer.{host}"].bottom < gate.cy < boxes[add].y


@STYLES
def test_headers_give_sizes(style: Style) -> None:
    texts = {node.id: " ".join(f"{text.text} {text.after or ''}" for text in node.texts)
             for node in draw(KINDS["laguna mixture"], style).nodes}
    assert "64 heads over 8 kv × 128" in texts["sublayer.self_attn"]
    assert "window 512" in texts["sublayer.self_attn"]
    assert "8 of 256 × 512 · 1 shared" in texts["sublayer.mlp"]


def test_values_have_short_names_and_the_pattern_its_own() -> None:
    texts = {node.id: node.texts[0].text for node in draw(KINDS["laguna mixture"], WIDE).nodes if node.shape == "value"}
    assert texts["value.self_attn.attention_probabilities"] == "pattern"
    assert texts["value.mlp.expert_weights"] == "weights"
    assert texts["value.mlp.expert_outputs"] == "expert outputs"


def test_words_of_a_phone_layout_fit_their_boxes() -> None:
    for facts in KINDS.values():
        for node in draw(facts, NARROW).nodes:
            for text in node.texts:
                if text.anchor == "middle":
                    assert len(text.text) * 7.7 <= node.box.width, node.id


def test_paths_have_one_decimal_and_a_head() -> None:
    path = polyline([(0, 0), (10.04, 0), (10.04, 20)])
    assert path.count("M") == 2
    assert not re.search(r"\.\d\d", path)
    assert number(-0.01) == "0"


NAME = st.text(string.ascii_lowercase, min_size=1, max_size=10).flatmap(
    lambda first: st.sampled_from([first, f"attention_{first}", f"expert_{first}_outputs", f"{first}_of_the_layer"]))


@st.composite
def sublayers(draw_from: st.DrawFn, host: str) -> SublayerFacts:
    contribution = "mlp_output" if host == "mlp" else "attention_output"
    values = draw_from(st.lists(NAME.filter(lambda name: name != contribution), max_size=8, unique=True))
    pairs = [*itertools.combinations(values, 2), *((name, contribution) for name in values)]
    chosen = draw_from(st.lists(st.sampled_from(pairs), max_size=12, unique=True)) if pairs else []
    labels = st.one_of(st.none(), st.sampled_from(["softmax", "gate", "q · k"]))
    parts = []
    if values and draw_from(st.booleans()):
        cut = draw_from(st.integers(1, len(values)))
        pieces = {"router": values[:cut], "experts": values[cut:]}
        parts = [PartFacts(name=name, module=name, class_name="Native", values=inside)
                 for name, inside in pieces.items() if inside]
    return sublayer(
        host, values, [(source, target, draw_from(labels)) for source, target in chosen], parts=parts,
        norm=draw_from(st.sampled_from([None, f"{host}_norm", f"pre_{host}_layernorm"])),
        post_norm=draw_from(st.sampled_from([None, f"post_{host}_layernorm"])),
        stream_gate=draw_from(st.sampled_from([None, f"{host}_residual"])))


@st.composite
def kinds(draw_from: st.DrawFn) -> KindFacts:
    hosts = draw_from(st.lists(st.sampled_from(["self_attn", "linear_attn", "mlp"]), min_size=1, unique=True))
    sizes = draw_from(st.sampled_from([{}, HEADS, EXPERTS, HEADS | EXPERTS]))
    return kind(*(draw_from(sublayers(host)) for host in hosts), **sizes)


@STYLES
@given(facts=kinds(), parallel=st.booleans())
@settings(max_examples=80, deadline=None)
def test_generated_kinds(style: Style, facts: KindFacts, parallel: bool) -> None:
    check(facts, style, parallel=parallel and len(facts.sublayers) > 1)
