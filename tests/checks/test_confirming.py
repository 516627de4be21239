"""What a family without a module of its own serves: what a run confirmed, and nothing else in silence."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

import encyclopedia.checks.confirming
import encyclopedia.model.locations
from encyclopedia import StandardizedTransformer, Unavailable
from encyclopedia.checks.claims import BrokenClaim
from encyclopedia.checks.confirming import confirm, unconfirmed_of
from encyclopedia.families import Family, family
from encyclopedia.model.locations import pattern_locations
from tests.checks.mutations import LLAMA

if TYPE_CHECKING:
    from transformers import PreTrainedModel

PLACE = ("LlamaAttention", "self_attn")

#: Llama's blocks under a name that nobody wrote a module for.
NOBODYS = Family("nobodys", title="", subtitle="", hue=0)


@pytest.fixture
def misread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores are derived to be what the softmax returns."""

    def wrong(eager: Callable) -> dict[str, str]:
        found = pattern_locations(eager)
        return {**found, "attention_scores": found["attention_scores"].replace(".input", ".output")}

    monkeypatch.setattr(encyclopedia.model.locations, "pattern_locations", wrong)


@pytest.mark.usefixtures("misread")
def test_a_derived_value_that_does_not_hold_is_left_out_with_the_reason(
    fresh_twin: Callable[..., PreTrainedModel]
) -> None:
    checked, left_out = confirm(lambda: fresh_twin(LLAMA), NOBODYS, None, writing=False)
    assert {place: set(values) for place, values in left_out.items()} == {PLACE: {"attention_scores"}}
    reason = left_out[PLACE]["attention_scores"]
    assert reason.startswith("no run confirmed it where it was derived to be: ")
    attention = checked.model.layers[0].self_attn
    assert attention.unavailable("attention_scores") == reason
    with pytest.raises(Unavailable, match="no run confirmed it"):
        _ = attention.attention_scores
    confirmed = {claim.value for claim in checked.claims if claim.sort == "meaning" and claim.host == "self_attn"}
    assert "attention_scores" not in confirmed
    assert {"attention_queries", "attention_head_outputs", "attention_output"} <= confirmed


@pytest.mark.usefixtures("misread")
def test_a_family_with_a_module_leaves_nothing_out_in_silence(fresh_twin: Callable[..., PreTrainedModel]) -> None:
    with pytest.raises(BrokenClaim, match="attention_scores on block 0"):
        confirm(lambda: fresh_twin(LLAMA), family("llama"), None, writing=False)


def test_where_everything_holds_nothing_is_left_out(fresh_twin: Callable[..., PreTrainedModel]) -> None:
    checked, left_out = confirm(lambda: fresh_twin(LLAMA), NOBODYS, lambda: fresh_twin(LLAMA, "sdpa"))
    assert left_out == {}
    assert {claim.sort for claim in checked.claims} == {"layout", "meaning", "writing", "identity", "availability"}


def test_what_is_about_no_single_value_is_an_error(
    fresh_twin: Callable[..., PreTrainedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise BrokenClaim("location", None, None, "all values to be read in one forward", "an accident")

    monkeypatch.setattr(encyclopedia.checks.confirming, "check_model", broken)
    with pytest.raises(BrokenClaim, match="an accident"):
        confirm(lambda: fresh_twin(LLAMA), NOBODYS, None, writing=False)


@pytest.mark.usefixtures("misread")
def test_a_live_model_is_confirmed_once(
    fresh_twin: Callable[..., PreTrainedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encyclopedia.checks.confirming, "has_module", lambda model_type: False)
    monkeypatch.setattr(encyclopedia.checks.confirming, "_known", OrderedDict())
    model = StandardizedTransformer(fresh_twin(LLAMA))
    assert set(model.left_out[PLACE]) == {"attention_scores"}
    monkeypatch.setattr(encyclopedia.checks.confirming, "confirm", None)
    again = StandardizedTransformer(fresh_twin(LLAMA))
    assert again.left_out == model.left_out
    assert unconfirmed_of(fresh_twin(LLAMA), NOBODYS) == model.left_out


def test_a_family_with_a_module_is_not_run_for_it(
    fresh_twin: Callable[..., PreTrainedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encyclopedia.checks.confirming, "confirm", None)
    assert unconfirmed_of(fresh_twin(LLAMA), family("llama")) == {}
    assert StandardizedTransformer(fresh_twin(LLAMA)).left_out == {}
