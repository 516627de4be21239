"""The page of checks and what other pages say about a check: counts, wording, and nothing unchecked with a tick."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from encyclopedia.build.pages import write_pages
from encyclopedia.checks import claims as run_claims
from encyclopedia.checks import identity as run_identity
from encyclopedia.facts import CheckpointFacts, HostFacts, KindFacts, SnippetFacts
from encyclopedia.page import checks
from encyclopedia.page.api import api_view
from encyclopedia.page.block import block_view
from encyclopedia.page.checks import ChecksView, ClaimLine, checks_view
from encyclopedia.page.claims import (
    SORTS,
    Phrase,
    claims_anchor,
    claims_by_sort,
    claims_checked,
    figure,
    how_checked,
    phrases,
)
from encyclopedia.page.environment import environment
from encyclopedia.page.hero import summary_view
from encyclopedia.page.notes import Heading
from encyclopedia.page.render import render_checks
from tests.page.small_facts import CLAIMS, checkpoint, claim, empty_project, family, kind, value

TEMPLATES = Path(__file__).parents[2] / "templates"
NOTES = "### Loading\n\n```python\n# not a heading\n\n```\n\n#### Inside\n\n### Gates\n\n```python\n1\n```\n"


def view(**changes) -> ChecksView:
    return checks_view(family(**changes), NOTES, [Heading("note-loading", "Loading"), Heading("note-gates", "Gates")],
                       "../../../source/tiny")


def html(**changes) -> str:
    return render_checks(family(**changes), "", TEMPLATES)


def lines(page: ChecksView, at: int = 0) -> list[ClaimLine]:
    return [line for host in page.checkpoints[at].hosts for subject in host.subjects for group in subject.sorts
            for line in group.lines]


def find(facts: CheckpointFacts, host: str, name: str):
    values = next(entry.values for entry in facts.hosts if entry.name == host)
    return next(entry for entry in values if entry.name == name)


def checked_row(facts: CheckpointFacts, node: str, kind: int) -> dict:
    [card] = [card for card in block_view(facts, family()).facts["cards"] if card["id"] == node
              and kind in card["kinds"]]
    return next(row for row in card["rows"] if row["label"] == "checked")


def test_the_counts_are_all_the_claims_and_snippets():
    page, shown = view(), family().checkpoints[:2]
    assert [entry.counts for entry in page.checkpoints] == [(4, 4, 1, 1, 0, 0, 2), (4, 4, 1, 1, 0, 0, 1)]
    assert [entry.total for entry in page.checkpoints] == [claims_checked(family(), entry) for entry in shown]
    assert page.total == 2 * len(CLAIMS) + 3
    assert [len(lines(page, at)) for at in (0, 1)] == [len(CLAIMS), len(CLAIMS)]
    assert page.checkpoints[0].runs == sum(entry.runs for entry in CLAIMS) + 2
    assert html().count('<td class="checks-claim') == 2 * len(CLAIMS)


def test_the_reference_comes_first_and_is_open():
    page = view(reference="maker/Tiny-2")
    assert [(entry.name, entry.opened) for entry in page.checkpoints] == [("Tiny-2", True), ("Tiny-1", False)]
    assert len(re.findall(r"<details[^>]* open>", html())) == 1


def test_values_stand_in_the_order_of_the_tables_with_all_about_one_together():
    hosts = view().checkpoints[0].hosts
    assert [host.expression for host in hosts] == [
        "model.layers[i].self_attn", "model.layers[i].mlp", "model.layers[i]"]
    assert [subject.name for subject in hosts[1].subjects] == ["router_logits", "mlp_output"]
    output = hosts[1].subjects[1]
    assert (output.id, output.role, output.count) == ("maker/Tiny-1/mlp/mlp_output", "mlp", 4)
    assert [(group.sort, len(group.lines)) for group in output.sorts] == [("layout", 1), ("meaning", 2), ("writing", 1)]
    [block] = hosts[2].subjects
    assert (block.id, block.name) == ("maker/Tiny-1/layer/block", None)


@pytest.mark.parametrize(("error", "said"), [(0.0, "exact"), (3.14e-8, "3.1e-8"), (None, "holds")])
def test_errors_in_words(error: float | None, said: str):
    assert figure(claim("mlp", "mlp_output", "meaning", "x", error)) == said


def test_the_largest_error_in_words():
    assert [entry.largest for entry in view().checkpoints] == ["3.1e-8", "3.1e-8"]
    exact = [entry.model_copy(update={"error": None if entry.error is None else 0.0}) for entry in CLAIMS]
    assert view(checkpoints=[checkpoint(claims=exact)]).checkpoints[0].largest == "exact"
    assert view(checkpoints=[checkpoint(claims=[])]).checkpoints[0].largest == "none"


def test_the_tolerances_are_those_of_the_checks():
    assert checks.RECOMPUTATION_TOLERANCE == run_claims.TOLERANCE
    assert checks.IDENTITY_TOLERANCE == run_identity.TOLERANCE
    assert (view().recomputation, view().identity) == ("1e-5", "2e-6")


def test_every_sort_is_explained_and_an_unknown_one_is_an_error():
    assert tuple(sort.name for sort in checks.EXPLAINED) == SORTS
    with pytest.raises(ValueError, match=r"does not explain: \['taste'\]"):
        claims_by_sort(family(), checkpoint(claims=[claim("mlp", "mlp_output", "taste", "sweet")]))


def test_names_in_a_claim():
    assert list(phrases("the softmax of attention_scores")) == [
        Phrase("the softmax of "), Phrase("attention_scores", code=True, role="attention")]
    assert list(phrases("what a plain hook sees leave o_proj, of the model.")) == [
        Phrase("what a plain hook sees leave "), Phrase("o_proj", code=True), Phrase(", of the model.")]
    assert [phrase.role for phrase in phrases("layers[i].input + mlp.mlp_output") if phrase.code] == ["stream", "mlp"]


@pytest.mark.parametrize("text", [entry.text for entry in CLAIMS])
def test_a_claim_keeps_its_text(text: str):
    assert "".join(phrase.text for phrase in phrases(text)) == text


def test_a_card_says_the_strongest_claim_that_is_true_on_its_kind():
    facts = checkpoint()
    output = find(facts, "mlp", "mlp_output")
    dense, mixture = (how_checked(facts, "mlp", output, index) for index in (0, 1))
    assert dense is not None
    assert mixture is not None
    assert dense.text == "equals what a plain hook sees leave the MLP (exact)"
    assert mixture.text == "equals weighted by `router_logits` (error 2.0e-8)"
    assert mixture.plain == "equals weighted by router_logits (error 2.0e-8)"
    assert (mixture.more, mixture.href) == ("and 3 more claims", "checks/#maker/Tiny-1/mlp/mlp_output")
    everywhere = how_checked(facts, "mlp", output)
    assert everywhere is not None
    assert everywhere.text == dense.text, "a table speaks of every block"
    row = checked_row(facts, "value.self_attn.attention_scores", 0)
    assert row == {"label": "checked", "text": "equals query · key, scaled, plus the mask (error 3.1e-8)",
                   "checked": True, "more": "and 1 more claim",
                   "href": "checks/#maker/Tiny-1/self_attn/attention_scores"}


def test_the_line_does_not_depend_on_rounding():
    claims = [claim("mlp", "mlp_output", "meaning", "twice attention_output", 0.0),
              claim("mlp", "mlp_output", "meaning", "a half of attention_scores", 1e-7)]
    for order in (claims, [claims[0].model_copy(update={"error": 2e-7}), claims[1]]):
        facts = checkpoint(claims=order)
        how = how_checked(facts, "mlp", find(facts, "mlp", "mlp_output"))
        assert how is not None
        assert how.claim == "twice `attention_output`"


def test_a_claim_that_was_not_run_on_every_block_is_not_said_of_all():
    claims = [claim("mlp", "mlp_output", "meaning", "what a plain hook sees leave", 0.0, runs=4),
              claim("mlp", "mlp_output", "meaning", "the block before's attention_output", 0.0, runs=3)]
    facts = checkpoint(claims=claims)
    for index in (None, 0, 1):
        how = how_checked(facts, "mlp", find(facts, "mlp", "mlp_output"), index)
        assert how is not None
        assert "plain hook" in how.text


def unchecked_ways() -> list[CheckpointFacts]:
    """The value of which a run did not confirm everything: by its facts, by lacking a recomputation, by no claims."""
    scores = value("attention_scores", "attention", [[1], [1]], checked=False)
    hosts = [HostFacts(name="self_attn", host="model.layers[i].self_attn", classes=["A"], values=[scores])]
    meaningless = [entry for entry in CLAIMS if entry.sort != "meaning"]
    return [checkpoint(hosts=hosts), checkpoint(claims=meaningless), checkpoint(claims=[])]


@pytest.mark.parametrize("facts", unchecked_ways(), ids=["by its facts", "no meaning", "no claims"])
def test_what_was_not_checked_says_so_and_has_no_tick(facts: CheckpointFacts):
    assert how_checked(facts, "self_attn", find(facts, "self_attn", "attention_scores"), 0) is None
    assert checked_row(facts, "value.self_attn.attention_scores", 0) == {"label": "checked", "text": "not checked"}
    api = api_view(facts, family())
    row = next(row for table in api.hosts for row in table.rows if row.name == "attention_scores")
    page = environment(TEMPLATES).get_template("page/values.html.jinja").render(api=api)
    assert row.how is None
    assert page.count("not checked</span>") == api.total - api.checked
    assert page.count("✓") == api.checked + bool(api.checked), "one per checked value, one for the tally"


def test_a_checked_value_says_how_in_its_table():
    page = environment(TEMPLATES).get_template("page/values.html.jinja").render(api=api_view(checkpoint(), family()))
    said = "equals query · key, scaled, plus the mask (error 3.1e-8)"
    assert f'href="checks/#maker/Tiny-1/self_attn/attention_scores" title="{said}"' in page
    assert f'<span class="visually-hidden">checked: {said}</span>' in page


def test_a_checkpoint_without_claims_has_no_tick_in_its_head():
    bare = family(notes=family().notes.model_copy(update={"snippets": []}))
    summary = summary_view(checkpoint(claims=[]), bare)
    page = environment(TEMPLATES).get_template("page/summary.html.jinja").render(summary=summary)
    assert summary.href is None
    assert "No claim was checked on" in page
    assert "✓" not in page


def test_an_identity_that_was_not_measured_has_no_tick():
    facts = checkpoint(checks=None, claims=[])
    page = environment(TEMPLATES).get_template("page/block.html.jinja").render(block=block_view(facts, family()))
    assert '<p class="identity-unchecked">not checked</p>' in page
    assert "✓" not in page


def test_values_that_were_not_checked_are_listed():
    assert view().checkpoints[0].unchecked == ("model.layers[i].mlp.router_logits",)
    assert "<strong>Not checked</strong>" in html()


def test_snippets_say_where_they_ran_or_why_not():
    snippets = [SnippetFacts(line=3, ran_on=["maker/Tiny-1", "maker/Tiny-2"], reason=None),
                SnippetFacts(line=12, ran_on=["maker/Tiny-2"], reason=None),
                SnippetFacts(line=12, ran_on=[], reason="only trained ones show it"),
                SnippetFacts(line=12, ran_on=[], reason=None)]
    page = view(notes=family().notes.model_copy(update={"snippets": snippets}))
    assert [(line.ran_on, line.reason) for line in page.snippets] == [
        ("all 2 checkpoints", None), ("Tiny-2", None), ("", "only trained ones show it"), ("", "no run is recorded")]
    assert [line.note and line.note.text for line in page.snippets] == ["Loading", "Gates", "Gates", "Gates"]
    assert page.run == 2


def test_an_anchor_is_an_id_whatever_the_name():
    assert claims_anchor("maker/Tiny-1", "mlp", "mlp_output") == "maker/Tiny-1/mlp/mlp_output"
    assert claims_anchor('a b/"<c>', "layer") == "a-b/--c-/layer/block"


def test_what_facts_say_is_escaped():
    hostile = checkpoint('maker/"><script>', hosts=[HostFacts(
        name="mlp", host="model.<i>", classes=[], values=[value("x<b>", "mlp", [None, [1]], checked=False)])],
        claims=[claim("mlp", "x<b>", "meaning", "the <script> of `attention_scores`", 0.0)],
        kinds=[kind([0], "dense"), KindFacts(**{**kind([1], "<u>").model_dump(), "identity": "<u>"})])
    page = html(checkpoints=[hostile], reference=hostile.id, title="<h1>", notes=family().notes.model_copy(
        update={"snippets": [SnippetFacts(line=1, ran_on=[], reason="<s>")]}))
    assert not re.search(r"<(script|b|i|u|s)>", page)
    assert "&lt;script&gt;" in page
    assert page.count("<h1>") == 1 + page.partition("\n---\n")[0].count("<h1>")


def test_the_page_is_written_beside_the_familys_and_goes_with_it(tmp_path: Path):
    project = empty_project(tmp_path)
    page = project.source / "families" / "tiny" / "checks" / "index.md"
    write_pages(project, [family(quirks=[])], [])
    text = page.read_text(encoding="utf-8")
    assert 'title: "Tiny: checks"' in text
    made_with = ", ".join(f"{name} {version}" for name, version in family().versions.model_dump().items())
    assert text.count(f"Made with {made_with}.") == 1
    assert "23 claims checked" in (project.source / "index.md").read_text(encoding="utf-8")
    write_pages(project, [], ["tiny"])
    assert not page.parent.exists()
