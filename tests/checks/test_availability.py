"""A ``support()`` that lies is caught, whichever way it lies."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

import encyclopedia.model.envoys
from encyclopedia import StandardizedTransformer, Unavailable
from encyclopedia.checks.availability import check_availability, check_refused, check_remedy
from encyclopedia.checks.claims import BrokenClaim, Ledger
from encyclopedia.model.envoys import StandardHost
from encyclopedia.twin import prompt_for
from tests.checks.mutations import DOGE_MOE, LLAMA

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Made = Callable[..., StandardizedTransformer]
EAGER = 'this load runs sdpa: load with attn_implementation="eager"'


@pytest.fixture
def made(fresh_twin: Callable[..., PreTrainedModel]) -> Made:
    return lambda checkpoint, attention="eager": StandardizedTransformer(fresh_twin(checkpoint, attention))


def checked(model: StandardizedTransformer, **more: Any) -> Ledger:
    ledger = Ledger()
    check_availability(model, prompt_for(model._module, batch=2), "this load", [0, 1], ledger, **more)
    return ledger


def test_every_value_of_every_host_is_asked_for(made: Made) -> None:
    model = made(DOGE_MOE)
    asked = {(claim.host, claim.value) for claim in checked(model).claims()}
    carried = {(host.host, name) for host in (model, *model.hosts(0)) for name in host.values()}
    assert asked == carried


def test_a_value_that_is_promised_and_missing(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encyclopedia.model.envoys, "load_condition", lambda *_: None)
    with pytest.raises(BrokenClaim, match="availability of attention_scores on block 0: expected this load to read it"):
        checked(made(LLAMA, "sdpa"))


def test_a_value_that_is_refused_and_served(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    model = made(LLAMA)
    honest = StandardHost.support

    def lying(host: StandardHost) -> dict[str, str | None]:
        return {**honest(host), **({"mlp_neurons": "it is not there"} if host.host == "mlp" else {})}

    monkeypatch.setattr(StandardHost, "support", lying)
    with pytest.raises(BrokenClaim, match="availability of mlp_neurons on block 0: expected to be refused"):
        checked(model)


def test_a_value_that_support_forgets(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is promised is compared with what was read, not with what was asked for."""
    model = made(LLAMA)
    monkeypatch.setattr("encyclopedia.checks.availability.read_all", lambda *_, **__: [])
    with pytest.raises(BrokenClaim, match="expected this load to read it, found no reading"):
        checked(model)


def test_a_refusal_gives_the_reason_that_support_gives(made: Made) -> None:
    host = made(LLAMA, "sdpa").layers[1].self_attn
    reason = host.unavailable("attention_scores")
    assert reason is not None
    check_refused(host, 1, "attention_scores", reason)
    with pytest.raises(BrokenClaim, match="attention_scores on block 1: expected the reason 'it is Tuesday'"):
        check_refused(host, 1, "attention_scores", "it is Tuesday")


def test_a_refusal_is_not_just_any_error(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    host = made(LLAMA, "sdpa").layers[1].self_attn

    def breaks(host: StandardHost, name: str) -> None:
        raise ZeroDivisionError("by accident")

    monkeypatch.setattr(StandardHost, "require", breaks)
    with pytest.raises(BrokenClaim, match="found ZeroDivisionError: by accident"):
        check_refused(host, 1, "attention_scores", "a reason")


@pytest.mark.parametrize(("reason", "found"), [
    ("it is Tuesday", "expected a reason that says what to load with"),
    ('load with attn_implementation="sdpa"', "found it on the load with attn_implementation='eager'"),
])
def test_a_reason_advises_the_load_that_helps(made: Made, reason: str, found: str) -> None:
    with pytest.raises(BrokenClaim, match=found):
        check_remedy(made(LLAMA).layers[0].self_attn, 0, "attention_scores", reason)


def test_advice_that_does_not_help(made: Made) -> None:
    host = made(LLAMA, "sdpa").layers[0].self_attn
    with pytest.raises(BrokenClaim, match="expected a load that has it"):
        check_remedy(host, 0, "attention_scores", 'load with attn_implementation="sdpa"')
    with pytest.raises(Unavailable):
        _ = host.attention_scores
