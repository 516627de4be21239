"""The API section: rows, conditions, what is missing, config, and nothing unescaped."""

import html as entities
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from encyclopedia.build.pages import write_pages
from encyclopedia.facts import HostFacts
from encyclopedia.page.api import api_view, config_view, run_lengths
from encyclopedia.page.block import block_view
from encyclopedia.page.environment import environment
from encyclopedia.page.module import module_view, source_file
from tests.page.small_facts import CONDITION, checkpoint, empty_project, family, value
from tests.page.test_course import checkpoint_of
from tests.page.test_diagram import attention, dense
from tests.page.test_diagram import kind as diagram_kind

TEMPLATES = Path(__file__).parents[2] / "templates"


def view(**changes):
    return api_view(checkpoint(**changes), family())


def html(**changes) -> str:
    return environment(TEMPLATES).get_template("page/api.html.jinja").render(api=view(**changes))


def row(name: str):
    return next(row for host in view().hosts for row in host.rows if row.name == name)


def test_rows_have_anchors_and_expressions_of_a_block_that_has_them():
    assert row("router_logits").id == "value-mlp-router_logits"
    assert row("router_logits").expression == "model.layers[1].mlp.router_logits"
    assert row("router_logits").present == "on blocks 1, 3"
    assert row("mlp_output").expression == "model.layers[0].mlp.mlp_output"
    assert row("mlp_output").present is None


def test_rows_point_into_the_diagram():
    assert row("attention_scores").address == "#ckpt=maker/Tiny-1&block=0&pin=value.self_attn.attention_scores"
    assert row("attention_output").address == "#ckpt=maker/Tiny-1&block=0&pin=contribution.self_attn"
    assert row("router_logits").address is None


def test_shapes_say_where_they_differ():
    assert [(line.sizes, line.blocks) for line in row("attention_scores").shapes] == [
        ((1, 2, 8, 8), "blocks 0, 2"), ((1, 3, 8, 8), "blocks 1, 3")]
    assert [(line.sizes, line.blocks) for line in row("mlp_output").shapes] == [((1, 8, 4), None)]


def test_conditions_are_visible_text():
    assert view().hosts[0].conditions[0].names == ("attention_scores",)
    assert row("attention_scores").condition_label == "not on every load"
    assert html().count(str(entities.escape(CONDITION, quote=True)).replace("&quot;", "&#34;")) == 2


def test_values_without_a_row_are_listed_with_their_reason():
    [missing] = view().missing
    assert missing.names == ("expert_outputs", "expert_weights")
    assert "Not on this checkpoint" in html()
    assert "Not on this checkpoint" not in html(support={})


def test_checked_values_are_counted():
    assert (view().checked, view().total) == (3, 4)


def test_config_groups_keys_by_what_is_recorded():
    config = view().config
    assert [row.key for row in config.recorded] == ["num_hidden_layers", "hidden_act", "heads_per_layer"]
    assert [row.key for row in config.defaults] == ["rope_parameters", "use_cache"]
    assert [row.source for row in config.recorded] == [1, 2, 1]
    assert config.usual_source == 1
    assert config.defaults[0].groups[0].path == "full"
    assert ("https://example.org/config.json", "https://example.org/config.json") in [
        (piece.text, piece.url) for piece in config.source]


def test_sizes_that_differ_stand_by_kind():
    config = view().config
    assert config.by_kind is not None
    assert config.by_kind.rows == (("num_heads", (2, 3)),)
    assert dict(config.sizes) == {"parameters": 1234, "active parameters": 1000, "num_layers": 4, "vocab_size": 10,
                                  "head_dim": 8}


def test_long_lists_are_summarised_and_kept():
    config = view().config
    assert config.recorded[2].text == "(2, 3 × 2) × 3"
    assert config.recorded[2].exact == "[2, 3, 3, 2, 3, 3, 2, 3, 3]"


def test_a_number_that_json_has_no_name_for_is_shown_as_one():
    limits = {"limits": [0.0, {"__float__": "Infinity"}], "least": {"__float__": "-Infinity"},
              "nested": {"a": {"__float__": "Infinity"}}}
    rows = {row.key: row for row in config_view(checkpoint(config=limits)).defaults}
    assert (rows["limits"].text, rows["least"].text, rows["nested"].text) == ("[0.0, inf]", "-inf", "1 entry")
    assert rows["nested"].groups[0].entries[0].text == "inf"


def test_run_lengths():
    assert run_lengths([64] * 70) == "64 × 70"
    assert run_lengths(["dense"] + ["sparse"] * 39) == "'dense', 'sparse' × 39"
    assert run_lengths([48, 64, 64, 64] * 10) == "(48, 64 × 3) × 10"
    assert run_lengths(list(range(30))) == "0, 1, 2, 3, 4, 5, 6, 7, …, 29"


@given(st.lists(st.integers(0, 2), min_size=1, max_size=9))
def test_run_lengths_can_be_read_back(values):
    text = run_lengths(values)
    inner, repeats = (found[1], int(found[2])) if (found := re.fullmatch(r"\((.*)\) × (\d+)", text)) else (text, 1)
    read = []
    for part in inner.split(", "):
        number, _, count = part.partition(" × ")
        read += [int(number)] * int(count or 1)
    assert read * repeats == values


def test_the_exact_text_is_the_printout():
    page = html()
    [text] = re.findall(r'aria-label="print\(model\), exact text">\n(.*?)</pre>', page, re.DOTALL)
    assert entities.unescape(text).split("\n") == checkpoint().printout


def test_printout_lines_carry_path_role_and_anchor():
    page = html()
    assert 'data-copy="model.layers[0].mlp"' in page
    assert 'href="#value-mlp-mlp_output" class="printout-name">mlp_output</a>' in page
    assert "0–3" in page


def test_the_router_goes_by_its_standard_name():
    lines = ["TinyForCausalLM(", "  (router/gate): Router()", ")"]
    assert 'data-copy="model.router"' in html(printout=lines)


def test_names_are_escaped():
    host = HostFacts(name="mlp", host="model.<i>", classes=["A<b>"], values=[
        value("x<script>", "mlp", [None, [1]], location="<b>", where="<i>", condition="<u>", description="<s>")])
    page = html(hosts=[host], printout=["A(", "  (<script>): B()", ")"], config={"<key>": "<value>"},
                config_known_from={"<key>": "<from>"})
    assert not re.search(r"<(script|key|value|from|u|s|i)>", page)
    assert "&lt;script&gt;" in page


def test_the_module_section():
    module = module_view(family(), "../../source/toy")
    page = environment(TEMPLATES).get_template("page/module.html.jinja").render(module=module)
    assert "<code>TinyForCausalLM</code>" in page
    assert "&lt;b&gt;" in page
    assert ">\nout = x" in page
    assert 'href="../../source/toy/tiny.py.txt"' in page
    assert module.classes[0].host == "model.layers[i].mlp"
    assert module.classes[0].checkpoints is None


def test_a_file_that_is_not_there_is_not_linked(tmp_path: Path) -> None:
    project, family_page = empty_project(tmp_path), Path("families") / family().model_type / "index.md"
    [source] = family().sources
    write_pages(project, [family()], [])
    assert source_file(source) not in (project.source / family_page).read_text(encoding="utf-8")
    there = tmp_path / source.path
    there.parent.mkdir(parents=True)
    there.write_text("FAMILY = None\n", encoding="utf-8")
    write_pages(project, [family()], [])
    [link] = re.findall(rf'href="([^"]+/{re.escape(source_file(source))})"',
                        (project.source / family_page).read_text(encoding="utf-8"))
    assert (project.source / family_page.parent / link).resolve().read_text(encoding="utf-8") == "FAMILY = None\n"


@pytest.mark.parametrize(("sublayers", "drawn"), [((attention(), dense()), True), ((attention(),), False)],
                         ids=["between two rows", "with one row"])
def test_the_middle_of_the_stream_leads_to_the_diagram_where_it_is_drawn(sublayers: tuple, drawn: bool) -> None:
    facts = checkpoint_of(diagram_kind(*sublayers), "layer_input", "layer_mid", "layer_output")
    row = next(row for host in api_view(facts, family()).hosts for row in host.rows if row.name == "layer_mid")
    assert (row.address is not None) == drawn
    assert ("stream.mid" in {node.id for node in block_view(facts, family()).first.wide.nodes}) == drawn
