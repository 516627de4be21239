"""The block section's view models, and the HTML that a reader without scripts gets."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from encyclopedia.facts import CheckpointFacts, FamilyFacts, HostFacts, IdentityCheck, KindFacts
from encyclopedia.page.block import block_view, conditional_nodes, identity_claim, identity_tokens
from encyclopedia.page.environment import environment, inert
from encyclopedia.page.hero import hero_view
from encyclopedia.page.render import render_family
from encyclopedia.page.tree import class_at
from encyclopedia.page.wording import amount, broken_name, error, short_names
from tests.page.small_facts import checkpoint, family, value
from tests.page.test_diagram import HEADS, KINDS

TEMPLATES = Path(__file__).parents[2] / "templates"
SUM = "layers[i].input + self_attn.attention_output + mlp.mlp_output == layer_output"
GATED = ("post_attention_residual * (input_residual * layers[i].input + self_attn.attention_output)"
         " + mlp.mlp_output == layer_output")
EAGER = 'read in the eager attention: load with attn_implementation="eager"'


def kind_of(name: str, blocks: list[int], label: str, identity: str = SUM) -> KindFacts:
    return KINDS[name].model_copy(update={"blocks": blocks, "label": label, "identity": identity})


def laguna_like(**changes: object) -> CheckpointFacts:
    """Four blocks of two kinds, the first and third of them dense."""
    heads = {"layout": "Queries", "dims": ["batch", "num_heads", "seq", "head_dim"], "condition": EAGER,
             "location": "source.attention_interface_1.inputs[1]"}
    attention = [value(name, "attention", [[1, 48, 8, 128], [1, 64, 8, 128]], **heads)
                 for name in KINDS["laguna dense"].sublayers[0].values]
    stream = [[1, 8, 2048], [1, 8, 2048]]
    dense, mixture = KINDS["laguna dense"].sublayers[1].values, KINDS["laguna mixture"].sublayers[1].values
    hosts = [
        HostFacts(name="model", host="model", classes=["Lm"], values=[
            value(name, "stream", stream) for name in ("logits", "token_embeddings", "final_norm_output",
                                                       "lm_head_output")]),
        HostFacts(name="layer", host="model.layers[i]", classes=["Block"], values=[
            *(value(f"layer_{name}", "stream", stream) for name in ("input", "mid", "output")),
            value("attention_norm_output", "norm", stream, location="input_layernorm.output"),
            value("mlp_norm_output", "norm", stream, location="post_attention_layernorm.output")]),
        HostFacts(name="self_attn", host="model.layers[i].self_attn", classes=["Attention"], values=[
            *attention, value("attention_output", "attention", stream)]),
        HostFacts(name="mlp", host="model.layers[i].mlp", classes=["Mlp", "Moe"], values=[
            *(value(name, "mlp", [[1, 8, 8192], None]) for name in dense),
            *(value(name, "mlp", [None, [1, 8, 8]]) for name in mixture),
            value("mlp_output", "mlp", stream, location="../norm.output")]),
    ]
    return checkpoint(**{
        "kinds": [kind_of("laguna dense", [0, 2], "full · dense MLP"),
                  kind_of("laguna mixture", [1, 3], "sliding 512 · mixture")],
        "hosts": hosts,
        "support": {"eager": {}, "default": {"model.layers[i].self_attn": {"attention_scores": EAGER}}},
        "printout": ["Lm(", "  (layers): ModuleList(", "    (0-3): 4 x Block(",
                     "      (input_layernorm): RmsNorm((8,))", "    )", "  )", "  (norm): RmsNorm((8,))", ")"],
    } | changes)


def family_of(*checkpoints: CheckpointFacts) -> FamilyFacts:
    return family(checkpoints=[*checkpoints, checkpoint("maker/Tiny-3", available=False, reason="no <config>")])


class Page(HTMLParser):
    """Attributes of every element; what a script element holds is text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[dict[str, str | None]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append({"tag": tag, **dict(attrs)})

    def having(self, attribute: str) -> list[dict[str, str | None]]:
        return [element for element in self.elements if attribute in element]


def render(name: str, **context: object) -> str:
    return environment(TEMPLATES).get_template(f"page/{name}.html.jinja").render(**context)


@pytest.fixture(scope="module")
def facts() -> CheckpointFacts:
    return laguna_like()


@pytest.fixture(scope="module")
def html(facts: CheckpointFacts) -> str:
    return render("block", block=block_view(facts, family_of(facts)))


def test_a_tick_per_block_with_its_kind(facts: CheckpointFacts) -> None:
    ticks = block_view(facts, family_of(facts)).ticks
    assert [(tick.block, tick.kind) for tick in ticks] == [(0, 0), (1, 1), (2, 0), (3, 1)]


def test_the_most_frequent_kind_is_the_calmest() -> None:
    few = laguna_like(kinds=[kind_of("laguna dense", [0], "dense"), kind_of("laguna mixture", [1, 2, 3], "mixture")])
    assert [kind.look for kind in block_view(few, family_of(few)).kinds] == [1, 0]


def test_every_part_has_a_card_on_its_kind(facts: CheckpointFacts) -> None:
    view = block_view(facts, family_of(facts))
    cards = {(card["id"], kind) for card in view.facts["cards"] for kind in card["kinds"]}
    for kind in view.kinds:
        nodes = {item.node for item in view.strip} | {node.id for node in kind.wide.nodes}
        assert {(node, kind.index) for node in nodes} <= cards
        assert {node.id for node in kind.narrow.nodes} == {node.id for node in kind.wide.nodes}


def test_a_card_is_stored_once_for_kinds_it_is_the_same_on(facts: CheckpointFacts) -> None:
    cards = block_view(facts, family_of(facts)).facts["cards"]
    queries = [card for card in cards if card["id"] == "value.self_attn.attention_queries"]
    assert len(queries) == 1
    assert queries[0]["shapes"] == [[1, 48, 8, 128], [1, 64, 8, 128]]
    assert queries[0]["expression"] == "model.layers[i].self_attn.attention_queries"
    assert len([card for card in cards if card["id"] == "sublayer.mlp"]) == 2


def test_a_card_says_where_what_it_needs_and_whether_it_was_checked(facts: CheckpointFacts) -> None:
    cards = {card["id"]: card for card in block_view(facts, family_of(facts)).facts["cards"]}
    rows = {row["label"]: row for row in cards["value.self_attn.attention_scores"]["rows"]}
    assert rows["read at"]["code"] == "source.attention_interface_1.inputs[1]"
    assert rows["read at"]["copy"] == "model.layers[i].self_attn.source.attention_interface_1.inputs[1]"
    assert '`attn_implementation="eager"`' in rows["needs"]["text"]
    assert rows["access"]["text"] == "read and write"
    assert rows["checked"]["checked"]
    sibling = next(row for row in cards["contribution.mlp"]["rows"] if row["label"] == "read at")
    assert sibling["copy"] == "model.layers[i].norm.output"


def test_norms_adds_modules_and_parts_have_their_own_facts(facts: CheckpointFacts) -> None:
    cards = {card["id"]: card for card in block_view(facts, family_of(facts)).facts["cards"]}
    norm = {row["label"]: row for row in cards["norm.input_layernorm"]["rows"]}
    assert norm["class"]["text"] == "`RmsNorm`"
    assert norm["module"]["copy"] == "model.layers[i].input_layernorm"
    assert cards["norm.input_layernorm"]["expression"] == "model.layers[i].attention_norm_output"
    assert cards["add.0"]["expression"] == "model.layers[i].layer_mid"
    assert cards["add.1"]["expression"] == "model.layers[i].layer_output"
    assert cards["part.mlp.shared"]["expression"] == "model.layers[i].mlp.shared_experts"
    holds = next(row for row in cards["part.mlp.router"]["rows"] if row["label"] == "holds")
    assert holds["text"] == "`router_logits`, `expert_weights`, `expert_indices`"


def test_values_a_default_load_lacks_are_marked(facts: CheckpointFacts) -> None:
    assert conditional_nodes(facts, facts.kinds[0]) == {"value.self_attn.attention_scores"}


def test_identity_tokens_keep_the_text_and_name_parts() -> None:
    doge = kind_of("doge", [0], "full", GATED)
    tokens = identity_tokens(doge)
    assert "".join(token.text for token in tokens) == GATED
    named = {token.text: (token.role, token.node) for token in tokens if token.node}
    assert named["input_residual"] == ("stream", "gate.self_attn")
    assert named["mlp.mlp_output"] == ("mlp", "contribution.mlp")
    assert named["layer_output"] == ("stream", "stream.output")
    assert "==" in [token.text for token in tokens]


@pytest.mark.parametrize(("largest", "said"), [
    (0.0, "held exactly on 3 blocks of the small model"),
    (2.4e-7, "held on 3 blocks of the small model, largest error 2.4e-7"),
])
def test_the_identity_claim(facts: CheckpointFacts, largest: float, said: str) -> None:
    assert facts.checks is not None
    checks = facts.checks.model_copy(update={"identity": IdentityCheck(blocks=3, max_error=largest)})
    assert identity_claim(facts.model_copy(update={"checks": checks})) == said


def test_no_stream_in_the_middle_means_parallel_sublayers(facts: CheckpointFacts) -> None:
    hosts = [host.model_copy(update={"values": [entry for entry in host.values if entry.name != "layer_mid"]})
             for host in facts.hosts]
    view = block_view(laguna_like(hosts=hosts), family_of(facts))
    nodes = {node.id: node.box for node in view.first.wide.nodes}
    assert "stream.mid" not in nodes
    assert nodes["add.0"].y > nodes["sublayer.mlp"].bottom


def test_a_checkpoint_without_blocks_is_refused() -> None:
    with pytest.raises(ValueError, match="no blocks to show"):
        block_view(checkpoint(kinds=[]), family())


def test_the_page_without_scripts_shows_block_0(html: str) -> None:
    page = Page(html)
    nodes = [element["data-node"] for element in page.having("data-node")]
    assert nodes.count("value.self_attn.attention_scores") == 2, "once in each layout"
    assert "part.mlp.router" not in nodes
    assert len(page.having("data-tick")) == 4
    assert str(page.having("data-tick")[0]["class"]).endswith("ticks-here")
    assert len(page.having("data-card")) == len(page.having("data-identity")) == 1
    assert "data-pinned" not in page.having("data-card")[0]
    slider = page.having("data-block-slider")[0]
    assert (slider["type"], slider["min"], slider["max"]) == ("range", "0", "3")
    assert "[1, 48, 8, 128]" in html


def test_the_expression_reads_through_its_breaks(html: str) -> None:
    written = re.search(r"<code data-card-expression>(.*?)</code>", html)
    assert written is not None
    assert re.sub(r"<[^>]+>", "", written[1]) == "model.layers[0].self_attn.attention_queries"


def test_the_island_is_the_facts(facts: CheckpointFacts, html: str) -> None:
    island = re.search(r'<script type="application/json" data-facts[^>]*>(.*?)</script>', html, re.DOTALL)
    assert island is not None
    assert json.loads(island[1])["kinds"][1] == {"blocks": [1, 3], "label": "sliding 512 · mixture"}


def test_no_id_is_used_twice_in_a_section_that_may_be_on_a_page_many_times(html: str) -> None:
    assert {element["id"] for element in Page(html).having("id")} == {"the-block", "block-view"}
    assert "style=" not in html


def test_what_waits_for_a_script_is_text_of_the_page_and_comes_back_whole() -> None:
    shown = [laguna_like(), laguna_like(id="maker/Tiny-2")]
    page = render_family(family(checkpoints=shown), "", TEMPLATES)
    mark = r'<script type="text/html" data-checkpoint-content="([^"]+)"[^>]*>(.*?)</script>'
    waiting = re.findall(mark, page, re.DOTALL)
    assert [name for name, _ in waiting] == ["maker/Tiny-2"]
    parts = waiting[0][1].replace("<\\/script", "</script")
    assert re.findall(r'<div data-region="(\w+)">', parts) == ["summary", "block", "api"]
    assert parts.count("<script") == parts.count("</script>") == 2, "the other kind's diagram, and the facts"
    assert render("block", block=block_view(shown[1], family_of(*shown))).strip() in parts
    elements = Page(page).elements
    assert sum(element.get("data-region") == "block" for element in elements) == 1


def test_a_comment_is_not_kept_as_text() -> None:
    with pytest.raises(ValueError, match="has an HTML comment"):
        inert("<p><!-- x --></p>")


def test_facts_cannot_break_out_of_the_page() -> None:
    hostile = laguna_like(id="maker/</script><b>")
    html = render("block", block=block_view(hostile, family_of(hostile)))
    assert "</script><b>" not in html


def test_the_selector_lists_every_checkpoint_with_its_reason(facts: CheckpointFacts) -> None:
    html = render("hero", hero=hero_view(family_of(facts)))
    options = [element for element in Page(html).elements if element.get("role") == "option"]
    assert [option["data-checkpoint"] for option in options] == ["maker/Tiny-1", "maker/Tiny-3"]
    assert [option.get("aria-disabled") for option in options] == [None, "true"]
    assert html.count("no &lt;config&gt;") == 2, "in the listbox and in the plain list"
    assert 'href="#quirk-output-gate"' in html


def test_the_summary_counts_parameters_blocks_and_claims(facts: CheckpointFacts) -> None:
    summary = hero_view(family_of(facts)).summary
    assert [(figure.number, figure.caption) for figure in summary.figures] == [
        ("1.2 K", "parameters"), ("1.0 K", "active per token"), ("4", "blocks, 2 kinds")]
    assert summary.claim == "12 claims checked on"
    assert summary.versions == ("transformers 5", "torch 2", "nnsight 0.8")
    assert summary.detail == "layout 4, meaning 4, identity 1, writing 1, snippets 2"
    assert summary.href == "checks/#maker/Tiny-1"


def test_a_reference_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="is not among its checkpoints"):
        hero_view(family(reference="maker/nothing"))


def test_classes_are_read_off_the_printout() -> None:
    printout = ["Lm(", "  (layers): ModuleList(", "    (0): A(", "      (norm): First()", "    )",
                "    (1-3): 3 x B(", "      (router/gate): Router()", "      (norm): Second()", "    )", "  )",
                "  (norm): Last()", ")"]
    assert class_at(printout, ["norm"]) == "Last"
    assert class_at(printout, ["layers", 0, "norm"]) == "First"
    assert class_at(printout, ["layers", 2, "norm"]) == "Second"
    assert class_at(printout, ["layers", 2, "gate"]) == "Router"
    assert class_at(printout, ["layers", 0, "gate"]) is None


def test_wording() -> None:
    assert [amount(count) for count in (999, 13_118_728, 268_478_280, 33_442_617_088)] == [
        "999", "13.1 M", "268 M", "33.4 B"]
    assert error(2.4e-7) == "2.4e-7"
    assert broken_name("post_attention_layernorm", 17) == ["post_attention_", "layernorm"]
    assert short_names(["attention_output", "attention_scores", "scores"]) == {
        "attention_output": "attention output", "attention_scores": "attention scores", "scores": "scores"}


def test_sizes_of_heads_without_sharing() -> None:
    from encyclopedia.page.wording import sizes_of

    row = KINDS["laguna dense"].sublayers[0]
    assert sizes_of(row, HEADS | {"num_kv_heads": 64}) == ["64 heads × 128", "window 512"]
    assert sizes_of(row, {"num_heads": 8, "num_kv_heads": 1, "head_dim": 64, "qk_head_dim": 96}) == [
        "8 heads over 1 kv × 96 (values 64)"]
