"""The page of TransformerLens's names: rows, traps and differences are those of the records."""

from __future__ import annotations

from pathlib import Path

from encyclopedia.across.lens import ROOT, lens_view, render_lens
from encyclopedia.lens import LensName, LensRecord, families_named
from tests.page.small_facts import family

TEMPLATES = Path(__file__).parents[2] / "templates"


def name(value: str, hook: str, difference: str | None = None, *, host: str = "self_attn", same: bool = True,
         acts: bool | None = True) -> LensName:
    return LensName(host=host, value=value, hook=hook, same=same, error=0.0, difference=difference, acts=acts)


def record(*names: LensName, eager_only: tuple[str, ...] = ()) -> LensRecord:
    return LensRecord(transformer_lens="4.3.0", transformers="5.24.0", eager_only=list(eager_only), names=list(names))


Z, Q, PATTERN, SCORES = (f"blocks.{{i}}.attn.hook_{each}" for each in ("z", "q", "pattern", "attn_scores"))
RECORDS = {
    "one": record(name("attention_premix", Z, "axes [batch seq (num_heads head_dim)]"), name("attention_queries", Q)),
    "two": record(name("attention_premix", Z, "axes [batch seq (num_heads head_dim)]"),
                  name("attention_queries", Q, "before the rotary embedding", same=False),
                  name("attention_scores", SCORES, "attention_probabilities", same=False, acts=False),
                  name("attention_probabilities", PATTERN, acts=False), eager_only=(SCORES, PATTERN)),
    "three": record(name("attention_premix", "blocks.{i}.attn.o.hook_in"), name("attention_queries", Q, acts=None),
                    name("attention_norm_output", "blocks.{i}.ln1.hook_normalized", "before the weight of own_norm",
                         host="layer", same=False)),
}


def text(phrases) -> str:
    return "".join(phrase.text for phrase in phrases)


def test_the_usual_hook_comes_first_and_the_others_after_it() -> None:
    rows = {row.value: row for row in lens_view(RECORDS, ["one"]).values}
    premix = rows["attention_premix"]
    assert (premix.hook, premix.id) == (Z, "self_attn.attention_premix")
    assert premix.axes == "[batch seq (num_heads head_dim)]"
    assert [(link.model_type, link.url) for link in premix.families] == [
        ("one", f"{ROOT}families/one/"), ("two", None)]
    assert [(hook, [link.model_type for link in links]) for hook, links in premix.others] == [
        ("blocks.{i}.attn.o.hook_in", ["three"])]
    assert "attention_scores" not in rows


def test_traps_are_those_that_some_family_has() -> None:
    found = {text(trap.said): [link.model_type for link in trap.families] for trap in lens_view(RECORDS, []).traps}
    both, together = f"{SCORES} or {PATTERN}", f"{SCORES} and {PATTERN}"
    assert found == {
        f"{SCORES} holds attention_probabilities, after the softmax": ["two"],
        f"An edit of {both} changes no logit: it can be read, and patching it does nothing": ["two"],
        f"An edit of {Q} makes the bridge fail": ["three"],
        f'Only a model loaded with attn_implementation="eager" has {together} in the cache': ["two"],
    }
    assert lens_view({"one": RECORDS["one"]}, []).traps == ()


def test_differences_stand_in_the_vocabularys_order_without_the_norms_own_names() -> None:
    rows = lens_view(RECORDS, []).differences
    assert [(row.value, text(row.difference)) for row in rows] == [
        ("attention_norm_output", "before the weight of the norm"),
        ("attention_queries", "before the rotary embedding"),
        ("attention_scores", "attention_probabilities")]
    assert rows[2].difference[0].role == "attention"


def test_the_page_names_every_recorded_family() -> None:
    page = render_lens([family()], TEMPLATES)
    assert families_named()
    assert all(f"<code>{model_type}</code>" in page for model_type in families_named())
    assert 'id="self_attn.attention_probabilities"' in page
