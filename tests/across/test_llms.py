"""The site as text: ``llms.txt`` and a family's page as Markdown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from markdown import Markdown

from encyclopedia.across.llms import llms_text
from encyclopedia.across.presence import key_of, survey
from encyclopedia.across.value_text import value_text
from encyclopedia.across.values import value_view
from encyclopedia.build.pages import write_pages
from encyclopedia.facts import HookFacts, NativePlace
from encyclopedia.page.markdown import family_markdown
from encyclopedia.page.render import render_family
from encyclopedia.vocabulary import HOSTS, VOCABULARY, Value
from tests.page.small_facts import CONDITION, checkpoint, empty_project, family
from tests.page.test_derived import LEFT_OUT, failed

TEMPLATES = Path(__file__).parents[2] / "templates"

LINK = re.compile(r"\[[^\]]+\]\(([^)]+)\)")


def test_every_link_leads_to_something_that_is_written(tmp_path: Path) -> None:
    project = empty_project(tmp_path)
    write_pages(project, [family(), failed(model_type="broken")], [])
    links = LINK.findall((project.source / "llms.txt").read_text(encoding="utf-8"))
    assert {"families/tiny/llms.txt", "families/broken/llms.txt", "data/index.json"} <= set(links)
    for link in links:
        place = project.source / link
        pages = (place, place / "index.md", place.with_name(f"{place.name}.md"))
        assert any(page.is_file() for page in pages), link


def test_it_has_the_form_that_readers_of_such_files_expect() -> None:
    lines = llms_text([family()]).splitlines()
    assert lines[0] == "# the encyclopedia"
    assert lines[2].startswith("> ")
    assert [line for line in lines if line.startswith("# ")] == lines[:1]
    entries = [line for line in lines if line.startswith("- ")]
    assert all(re.fullmatch(r"- \[[^\]]+\]\([^)]+\): \S.*", line) for line in entries)
    assert len(entries) == 8 + 1 + len(VOCABULARY)


def test_the_text_of_a_family_that_is_not_built_any_more_goes(tmp_path: Path) -> None:
    project = empty_project(tmp_path)
    write_pages(project, [family()], [])
    text = project.source / "families" / "tiny" / "llms.txt"
    assert text.is_file()
    write_pages(project, [], ["tiny"])
    assert not text.exists()


def test_a_page_leads_to_its_text_and_its_data() -> None:
    for page in (render_family(family(), "", TEMPLATES), render_family(failed(), "", TEMPLATES)):
        assert '<a href="llms.txt">' in page
        assert '<a href="../../data/tiny.json">' in page


@pytest.fixture(scope="module")
def text() -> str:
    notes = ('### Note\n\nIt has {{ ref.sizes.num_layers }} blocks & a < b.\n\n'
             '```{ .python checkpoints="reference" }\nx = 1\n```\n')
    return family_markdown(family(checkpoints=[checkpoint(unconfirmed=[LEFT_OUT]),
                                               checkpoint("maker/Tiny-3", available=False, reason="no config")]), notes)


def test_it_has_what_the_page_has(text: str) -> None:
    assert text.startswith("# Tiny\n\n> A block.\n")
    for said in ("**Output gate**", "`maker/Tiny-3`: not shown, no config", "1,234 parameters, 1,000 active",
                 "layers[i].input + self_attn.attention_output + mlp.mlp_output == layer_output", "exact",
                 "[1, 2, 8, 8] on blocks 0, 2; [1, 3, 8, 8] on blocks 1, 3", "It has 4 blocks & a < b.",
                 "1 about identity", "transformers 5, torch 2", LEFT_OUT.reason):
        assert said in text, said
    assert text.count(CONDITION) == 1
    assert "| `attention_scores` | Pattern [batch num_heads query key] |" in text
    assert "on blocks 1, 3" in text
    assert "```python\nx = 1\n```" in text


def test_it_is_plain_text_that_markdown_reads(text: str) -> None:
    assert "&amp;" not in text
    assert "<b>" not in text
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1
    html = Markdown(extensions=["tables", "fenced_code"]).convert(text)
    assert html.count("<table>") == len(tables)


def test_a_bar_in_a_cell_does_not_end_it() -> None:
    facts = checkpoint()
    host = facts.hosts[0]
    odd = host.values[0].model_copy(update={"location": "source.a|b"})
    facts = facts.model_copy(update={"hosts": [host.model_copy(update={"values": [odd]})]})
    assert "| `source.a\\|b` |" in family_markdown(family(checkpoints=[facts]), "")


def test_it_says_names_elsewhere_on_the_reference() -> None:
    facts = checkpoint()
    host = facts.hosts[0]
    place = NativePlace(kinds=[0, 1], module="model.h[i].attn", location="output[1]", held=None,
                        hook=HookFacts(module="model.h[i].attn", tensor="output[1]", held=None), no_hook=None,
                        no_nnsight=None)
    placed = host.values[0].model_copy(update={"native": [place]})
    facts = facts.model_copy(update={"hosts": [host.model_copy(update={"values": [placed]})]})
    text = family_markdown(family(checkpoints=[facts]), "")
    assert "In transformers: `model.h[i].attn` (" in text
    assert "; in nnsight: `model.h[i].attn" in text
    assert "register_forward_hook" not in text


def test_a_family_that_failed_says_the_step() -> None:
    text = family_markdown(failed(), "")
    assert "Not verified: the structure step failed." in text
    assert "## Checks" not in text


def test_a_family_without_notes_has_its_blocks_in_steps() -> None:
    text = family_markdown(family(annotated=False), "")
    assert "## Notes" in text
    assert "1. `self_attn`" in text


@pytest.mark.parametrize("value", VOCABULARY, ids=lambda value: f"{value.host}.{value.name}")
def test_a_values_text_says_what_its_page_says(value: Value) -> None:
    found = survey([family(), failed(model_type="broken")])
    text = value_text(value_view(value, found))
    assert text.startswith(f"# {HOSTS[value.host]}.{value.name}\n\n> {value.description}")
    there = found.families[0].presences[key_of(value)].row
    assert f"{int(there is not None)} of 1 verified families have it" in text
    assert "`tiny`" in text
    if there is not None:
        assert f"| `tiny` | `maker/Tiny-1` | `{there.location}` |" in text
        assert all(f"[{', '.join(map(str, shape.sizes))}]" in text for shape in there.shapes)
    Markdown().convert(text)
    assert text.count("```") % 2 == 0
