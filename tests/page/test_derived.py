"""Pages of families that nobody wrote about, that have no public checkpoint, or that could not be verified."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from encyclopedia.facts import CheckpointFacts, Failure, FamilyFacts, ModuleClass, NotesFacts, UnconfirmedValue
from encyclopedia.page.derived import subtitle_of, title_from, title_of
from encyclopedia.page.failed import STEPS, failed_view
from encyclopedia.page.render import render_checks, render_family
from tests.page.small_facts import checkpoint, family
from tests.page.test_course import checkpoint_of
from tests.page.test_diagram import KINDS, attention, dense, kind, recurrent

TEMPLATES = Path(__file__).parents[2] / "templates"
LEFT_OUT = UnconfirmedValue(host="mlp", native="Mixture", name="expert_outputs", reason="the tensor there has 2 axes")
NO_TABLE = UnconfirmedValue(host="linear_attn", native="Mixer", name="states", reason="its kernel keeps them.")


def bare(*checkpoints: CheckpointFacts, **changes: object) -> FamilyFacts:
    """A family that has facts and nothing else."""
    shown = checkpoints or (checkpoint(),)
    return family(**{"title": "tiny", "subtitle": "", "docstring": "", "annotated": False, "sources": [],
                     "notes": NotesFacts(snippets=[]), "checkpoints": list(shown), "reference": shown[0].id} | changes)


def failed(step: str = "structure", **changes: object) -> FamilyFacts:
    tried = checkpoint(available=False, reason="see the page", kinds=[], hosts=[], printout=[], claims=[], checks=None,
                       module_classes=[ModuleClass(host="mlp", native="Odd", serves="Mlp")])
    return bare(tried, **{"failure": Failure(step=step, reason="TinyForCausalLM: <blocks> were not found")} | changes)


@pytest.mark.parametrize(("model_type", "class_name", "title"), [
    ("gpt_neox", "GPTNeoXForCausalLM", "GPT NeoX"),
    ("qwen3_next", "Qwen3NextForCausalLM", "Qwen3 Next"),
    ("openai-gpt", "OpenAIGPTLMHeadModel", "OpenAI GPT"),
    ("gemma3_text", "Gemma3ForCausalLM", "Gemma3 Text"),
    ("falcon_h1", None, "Falcon H1"),
])
def test_a_title_takes_its_capitals_from_the_class(model_type: str, class_name: str | None, title: str) -> None:
    assert title_from(model_type, class_name) == title


def test_what_people_wrote_comes_first() -> None:
    assert (title_of(family()), subtitle_of(family())) == ("Tiny", "A block.")
    assert title_of(bare()) == "Tiny"


@pytest.mark.parametrize(("facts", "sentence"), [
    (kind(attention(), dense()), "1 block with softmax attention; output gate."),
    (kind(recurrent()), "1 block with a recurrent mixer; output gate."),
    (KINDS["three"], "1 block with softmax attention beside a recurrent mixer; output gate."),
    (KINDS["post-norms only"], "1 block with softmax attention, normed only behind their sublayers; output gate."),
    (kind(), "1 block whose inside is not told apart; output gate."),
])
def test_a_sentence_is_made_of_the_blocks_and_the_quirks(facts: object, sentence: str) -> None:
    assert subtitle_of(bare(checkpoint_of(facts))) == sentence  # type: ignore[arg-type]


def test_kinds_of_block_are_counted() -> None:
    kinds = [kind(recurrent()).model_copy(update={"blocks": [0, 1, 3]}),
             kind(attention()).model_copy(update={"blocks": [2]})]
    facts = bare(checkpoint(kinds=kinds, hosts=[]), quirks=[])
    assert subtitle_of(facts) == "4 blocks: 3 with a recurrent mixer and 1 with softmax attention."


def test_a_page_without_a_module_says_that_nothing_is_declared() -> None:
    page = render_family(bare(), "", TEMPLATES)
    assert "04 · nothing is declared" in page
    assert "This family has no module of its own" in page
    assert "Its files" not in page
    assert "This family has no module of its own" not in render_family(family(), "", TEMPLATES)


def test_class_defaults_are_called_so() -> None:
    page = render_family(bare(checkpoint("tiny", is_default=True, config_known_from={})), "", TEMPLATES)
    assert page.count('<span class="selector-owner"></span>class defaults') == 4, "with a script or not"
    assert 'data-checkpoint="tiny"' in page
    assert "The page shows the model that the config class builds by default" in page
    assert "5 keys of the config class" in page
    assert "as recorded in this project" not in page
    assert "class defaults" not in render_family(family(), "", TEMPLATES)


def test_what_was_left_out_is_listed_with_its_reason_on_both_pages() -> None:
    facts = bare(checkpoint(unconfirmed=[LEFT_OUT, NO_TABLE]))
    page, checks = render_family(facts, "", TEMPLATES), render_checks(facts, "", TEMPLATES)
    table = page[page.index('id="values-mlp"'):page.index('id="values-linear_attn"')]
    assert "<code>expert_<wbr>outputs</code> <span>on Mixture</span>: the tensor there has 2 axes." in table
    assert "<code>states</code> <span>on Mixer</span>: its kernel keeps them." in page
    assert "<code>states</code> on <code>model.<wbr>layers[i].<wbr>linear_attn</code> (Mixer)" in checks


def test_a_block_without_an_identity_says_so_and_carries_no_tick() -> None:
    page = render_family(bare(checkpoint(kinds=[
        checkpoint().kinds[0].model_copy(update={"identity": None, "blocks": [0, 1, 2, 3]})], hosts=[], claims=[])),
        "", TEMPLATES)
    assert "No exact sum." in page
    identity = re.search(r'<div class="identity" data-identity>(.*?)</div>', page, re.DOTALL)
    assert identity is not None
    assert "✓" not in identity[1]


@pytest.mark.parametrize("step", STEPS)
def test_a_failed_family_says_which_step_and_why(step: str) -> None:
    page = render_family(failed(step), "", TEMPLATES)
    assert "TinyForCausalLM: &lt;blocks&gt; were not found" in page
    here = re.findall(r'<li class="failed-here"><b>(\w+)</b>', page)
    assert here == [step]
    assert page.count('class="failed-held"') == list(STEPS).index(step)
    assert "<svg" not in page
    assert "<code>Odd</code>" in page
    assert "num_<wbr>hidden_<wbr>layers" in page


def test_a_failed_family_may_have_no_config_at_all() -> None:
    page = render_family(failed(checkpoints=[], reference="tiny"), "", TEMPLATES)
    assert "What failed" in page
    assert 'id="config"' not in page


def test_only_a_failed_family_has_such_a_page() -> None:
    with pytest.raises(ValueError, match="has not failed"):
        failed_view(family())
