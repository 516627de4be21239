"""The diagram's geometry, on kinds like those of real families and on generated ones."""

from __future__ import annotations

import itertools
import re
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from encyclopedia.facts import EdgeFacts, KindFacts, PartFacts, SublayerFacts
from encyclopedia.page.course import Course, course
from encyclopedia.page.diagram import draw
from encyclopedia.page.drawing import NARROW, WIDE, Drawing, Node, Style
from encyclopedia.page.geometry import Box, Point, number, polyline

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


RECURRENT_VALUES = ("attention_queries", "attention_keys", "attention_values", "decays", "betas", "state_input",
                    "attention_head_outputs", "state_output")


def recurrent(*names: str, **more: object) -> SublayerFacts:
    """A recurrent mixer with any of its values, each made from what there is of what makes it."""
    names = names or RECURRENT_VALUES
    written = [name for name in ("attention_keys", "attention_values", "decays", "betas", "state_input")
               if name in names]
    read = [*(["attention_queries"] if "attention_queries" in names else []), *written]
    edges = [(name, "state_output", None) for name in written if "state_output" in names]
    if "attention_head_outputs" in names:
        edges += [(name, "attention_head_outputs", None) for name in read]
        read = ["attention_head_outputs"]
    edges += [(name, "attention_output", None) for name in read]
    return sublayer("linear_attn", list(names), edges, **{"sort": "recurrent", "norm": "input_layernorm"} | more)


def kind(*sublayers: SublayerFacts, **sizes: int) -> KindFacts:
    terms = "".join(f" + {row.host}.{row.contribution}" for row in sublayers)
    return KindFacts(blocks=[0], label="full · dense MLP", attention_type="full_attention", modules={}, sizes=sizes,
                     identity=f"layers[i].input{terms} == layer_output", identity_error=0.0, sublayers=list(sublayers))


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
    "delta rule": kind(recurrent(), mixture(), **EXPERTS),
    "scan": kind(recurrent("attention_queries", "attention_keys", "attention_values", "state_output"), channels=1536),
    "state alone": kind(recurrent("state_input", "state_output", norm="norm")),
    "three": kind(recurrent(), attention(), dense(norm="pre_ff_layernorm"), **HEADS, heads=80, state_dim=128),
    "no interior": kind(sublayer("linear_attn", [], []), dense()),
    "no scores": kind(sublayer("self_attn", ["attention_premix"], [("attention_premix", "attention_output", None)])),
    "nothing": kind(),
}
EVERY_KIND = pytest.mark.parametrize("facts", KINDS.values(), ids=list(KINDS))


def check(facts: KindFacts, style: Style, way: Course | None = None) -> Drawing:
    """Everything that holds of any drawing."""
    way = way or course(facts, mid=len(facts.sublayers) == 2)
    drawing = draw(facts, style, way)
    page = Box(0, 0, drawing.width, drawing.height)
    by_id = {node.id: node for node in drawing.nodes}
    assert len(by_id) == len(drawing.nodes), "every id once in a layout"
    assert list(by_id) == forward_order(way)
    for node in drawing.nodes:
        assert encloses(page, node.box), node.id
        assert node.hit is None or encloses(node.box, node.hit), node.id
    values = [node for node in drawing.nodes if node.shape == "value"]
    for one, other in itertools.combinations(values, 2):
        assert not overlaps(one.box, other.box), (one.id, other.id)
    check_nesting(facts, drawing)
    for edge in drawing.edges:
        assert all(touches(page, point) for point in edge.points), edge
        assert by_id[edge.source].shape in ("stream", "add") or meets(by_id[edge.source], edge.points[0]), edge
        assert meets(by_id[edge.target], edge.points[-1]), edge
        for (x, y), (next_x, next_y) in itertools.pairwise(edge.points):
            assert abs(x - next_x) < 0.1 or abs(y - next_y) < 0.1, "lines are horizontal or vertical"
    return drawing


def overlaps(one: Box, other: Box) -> bool:
    """Whether the two share more than an edge."""
    return one.x < other.right and other.x < one.right and one.y < other.bottom and other.y < one.bottom


def encloses(outer: Box, inner: Box, slack: float = 1e-6) -> bool:
    return (outer.x - slack <= inner.x and inner.right <= outer.right + slack
            and outer.y - slack <= inner.y and inner.bottom <= outer.bottom + slack)


def touches(box: Box, point: Point, slack: float = 0.5) -> bool:
    """Whether ``point`` lies in the box or on its border."""
    x, y = point
    return box.x - slack <= x <= box.right + slack and box.y - slack <= y <= box.bottom + slack


def meets(node: Node, point: Point) -> bool:
    """Whether ``point`` is where a line of ``node`` may end."""
    return touches(node.box, point) or (node.join is not None and touches(node.join, point))


def check_nesting(facts: KindFacts, drawing: Drawing) -> None:
    boxes = {node.id: node.box for node in drawing.nodes}
    for row in facts.sublayers:
        module = boxes[f"sublayer.{row.host}"]
        assert not overlaps(module, boxes[f"contribution.{row.host}"])
        assert all(encloses(module, boxes[f"value.{row.host}.{name}"]) for name in row.values)
        for part in row.parts:
            panel = boxes[f"part.{row.host}.{part.name}"]
            assert encloses(module, panel)
            for name in row.values:
                box = boxes[f"value.{row.host}.{name}"]
                assert encloses(panel, box) if name in part.values else not overlaps(panel, box)


def forward_order(way: Course) -> list[str]:
    """The nodes of a kind in the order in which a forward computes them."""
    order, seen, adds = ["stream.input"], set[str](), itertools.count()
    for index, together in enumerate(way.rows):
        returns = []
        for row in together:
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
            returns += [f"norm.{row.post_norm}"] if row.post_norm else []
            returns += [f"contribution.{row.host}", *([f"gate.{row.host}"] if row.stream_gate else []),
                        f"add.{next(adds)}"]
        order += returns
        if way.mid and index == 0:
            order.append("stream.mid")
    for name in way.loose:
        order += [f"contribution.{name}", f"add.{next(adds)}"]
    if way.scale is not None:
        order.append("gate.layer")
    return [*order, "stream.output"]


@STYLES
@EVERY_KIND
def test_kinds_like_those_of_families(facts: KindFacts, style: Style) -> None:
    check(facts, style)


@STYLES
@pytest.mark.parametrize("shared_norm", [False, True])
def test_parallel_sublayers_read_the_stream_before_it_is_added_to(style: Style, shared_norm: bool) -> None:
    second = dense(norm="input_layernorm") if shared_norm else dense()
    facts = kind(attention(), second)
    drawing = check(facts, style, course(facts, parallel=True))
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


def drawn(name: str, style: Style = WIDE) -> dict[str, Node]:
    return {node.id: node for node in draw(KINDS[name], style).nodes}


def test_a_recurrence_reads_from_left_to_right_and_its_arrows_meet_in_one_point() -> None:
    drawing = draw(KINDS["delta rule"], WIDE)
    boxes = {node.id.removeprefix("value.linear_attn."): node.box for node in drawing.nodes}
    assert max(boxes[name].right for name in RECURRENT_VALUES[:6]) < boxes["attention_head_outputs"].x
    arrows = {(edge.source, edge.target): edge.points for edge in drawing.edges}
    written = [arrows[f"value.linear_attn.{name}", f"value.linear_attn.{target}"] for name in RECURRENT_VALUES[1:6]
               for target in ("state_output", "attention_head_outputs")]
    [meeting] = [mark for mark in drawing.marks if not mark.text and mark.x > boxes["attention_keys"].right
                 and mark.role == "attention"]
    assert all(any(y == meeting.y and x <= meeting.x for x, y in points) for points in written)
    queries = arrows["value.linear_attn.attention_queries", "value.linear_attn.attention_head_outputs"]
    assert all(y != meeting.y for _, y in queries), "what reads the state is not written into it"


def test_what_is_made_of_several_values_is_a_sum_in_a_mixture_only() -> None:
    scan, routed = drawn("scan")["contribution.linear_attn"], drawn("laguna mixture")["contribution.mlp"]
    assert scan.join is not None
    assert not scan.sums
    assert routed.sums


def test_three_sublayers_the_first_two_of_which_share_a_norm() -> None:
    nodes, way = drawn("three"), course(KINDS["three"])
    assert [[row.host for row in together] for together in way.rows] == [["linear_attn", "self_attn"], ["mlp"]]
    assert nodes["sublayer.self_attn"].box.bottom < nodes["add.0"].box.y < nodes["add.1"].box.y
    assert nodes["add.1"].box.bottom < nodes["sublayer.mlp"].box.y < nodes["add.2"].box.y
    words = {host: nodes[f"contribution.{host}"].texts[0].text for host in ("linear_attn", "self_attn", "mlp")}
    assert words == {"linear_attn": "linear_attn.attention_output", "self_attn": "self_attn.attention_output",
                     "mlp": "mlp_output"}


@STYLES
def test_factors_and_native_outputs_of_an_identity_are_drawn(style: Style) -> None:
    identity = ("layers[i].input + layers[i].residual_multiplier * self_attn.attention_output + mlp.mlp_output"
                " + config.scale * shared_mlp.output == layer_output")
    facts = kind(attention(), dense()).model_copy(update={"identity": identity})
    nodes = {node.id: node for node in check(facts, style).nodes}
    words = {name: [text.text for text in nodes[f"contribution.{name}"].texts]
             for name in ("self_attn", "mlp", "shared_mlp.output")}
    assert words == {"self_attn": ["attention_output", "× residual_multiplier"], "mlp": ["mlp_output"],
                     "shared_mlp.output": ["shared_mlp.output", "× scale"]}
    assert nodes["add.2"].box.y > nodes["add.1"].box.bottom


@STYLES
def test_without_an_identity_no_add_is_sure_and_no_factor_is_drawn(style: Style) -> None:
    facts = kind(attention(), mixture()).model_copy(update={"identity": None})
    nodes = {node.id: node for node in check(facts, style).nodes}
    doubtful = {name for name, node in nodes.items() if not node.sure}
    assert doubtful == {"contribution.self_attn", "add.0", "contribution.mlp", "add.1"}
    assert [text.text for text in nodes["contribution.mlp"].texts] == ["mlp_output"]


def test_a_sum_without_the_stream_says_so() -> None:
    facts = kind(recurrent()).model_copy(update={
        "identity": "linear_attn.attention_output + post_mlp_convolution.output == layer_output"})
    doubtful = {node.id for node in check(facts, WIDE).nodes if not node.sure}
    assert doubtful == {"stream.input"}


def test_several_streams_are_drawn_as_such() -> None:
    facts = kind(attention(), mixture(), streams=4)
    drawing = check(facts, WIDE, course(facts, streams=4))
    assert drawing.streams == 4
    assert [node.texts[0].after for node in drawing.nodes if node.shape == "stream"] == ["× 4 streams"] * 2


def test_a_mixture_is_summed_inside_its_module() -> None:
    drawing = draw(KINDS["laguna mixture"], WIDE)
    by_id = {node.id: node for node in drawing.nodes}
    join = by_id["contribution.mlp"].join
    assert join is not None
    assert encloses(by_id["sublayer.mlp"].box, join)
    into = [edge for edge in drawing.edges if edge.target == "contribution.mlp" and touches(join, edge.points[-1])]
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
        norm=draw_from(st.sampled_from([None, "norm", f"{host}_norm", f"pre_{host}_layernorm"])),
        post_norm=draw_from(st.sampled_from([None, f"post_{host}_layernorm"])),
        stream_gate=draw_from(st.sampled_from([None, f"{host}_residual"])))


@st.composite
def kinds(draw_from: st.DrawFn) -> KindFacts:
    hosts = draw_from(st.lists(st.sampled_from(["self_attn", "linear_attn", "mlp"]), min_size=1, unique=True))
    sizes = draw_from(st.sampled_from([{}, HEADS, EXPERTS, HEADS | EXPERTS]))
    facts = kind(*(draw_from(sublayers(host)) for host in hosts), **sizes)
    own = f" + {' + '.join(f'{row.host}.{row.contribution}' for row in facts.sublayers)}"
    scaled = own.replace(" + ", " + layers[i].multiplier * ")
    return facts.model_copy(update={"identity": draw_from(st.sampled_from([
        None, facts.identity, f"layers[i].input{scaled} + config.scale * shared_mlp.output[0] == layer_output",
        f"post.output{own} == layer_output",
        f"layer_scalar * (layers[i].input{own} + post.output) == layer_output"]))})


@STYLES
@given(facts=kinds(), parallel=st.booleans(), mid=st.booleans())
@settings(max_examples=80, deadline=None)
def test_generated_kinds(style: Style, facts: KindFacts, parallel: bool, mid: bool) -> None:
    check(facts, style, course(facts, parallel=parallel, mid=mid and not parallel))
