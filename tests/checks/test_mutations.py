"""A check that cannot fail is a defect: every wrong claim here has to be caught, and named."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import pytest

from encyclopedia.build.families import Outcome
from encyclopedia.build.worker import CaptureTask, failure_line, run
from encyclopedia.checkpoints import recorded
from encyclopedia.checks.claims import BrokenClaim
from encyclopedia.checks.run import check_model
from encyclopedia.cli import _failure_lines
from encyclopedia.families import family
from encyclopedia.instantiate import build_without_weights
from encyclopedia.twin import PROMPTS, prompt_for
from tests.checks.mutations import DOGE, MUTATIONS, Mutation, identity

if TYPE_CHECKING:
    from transformers import PreTrainedModel

MODEL_TYPES = {checkpoint: str(recorded(checkpoint).config["model_type"])
               for checkpoint in sorted({mutation.checkpoint for mutation in MUTATIONS})}


@cache
def default_attention(checkpoint: str) -> str:
    """The attention that a load of the checkpoint runs where none is asked for."""
    return build_without_weights(recorded(checkpoint)).config._attn_implementation


def check(mutation: Mutation, fresh_twin: Callable[..., PreTrainedModel], patch: pytest.MonkeyPatch) -> None:
    twin = fresh_twin(mutation.checkpoint)
    claimed = mutation.change(family(MODEL_TYPES[mutation.checkpoint]), patch)
    default = (lambda: fresh_twin(mutation.checkpoint, "sdpa")) if mutation.default else None
    check_model(twin, claimed, prompt_for(twin, batch=PROMPTS), writing=mutation.writing, default=default)


@pytest.mark.parametrize("checkpoint", MODEL_TYPES)
def test_what_is_claimed_holds(checkpoint: str, fresh_twin: Callable[..., PreTrainedModel]) -> None:
    """Without a mutation nothing is caught, so what is caught below is the mutation."""
    twin = fresh_twin(checkpoint)
    check_model(twin, family(MODEL_TYPES[checkpoint]), prompt_for(twin, batch=PROMPTS),
                default=lambda: fresh_twin(checkpoint, default_attention(checkpoint)))


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.sentence)
def test_a_wrong_claim_is_caught(
    mutation: Mutation, fresh_twin: Callable[..., PreTrainedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BrokenClaim) as caught:
        check(mutation, fresh_twin, monkeypatch)
    claim, message = caught.value, str(caught.value)
    assert claim.block == mutation.block
    assert mutation.value in (claim.value or "")
    assert f"{claim.value} on {'the root' if claim.block is None else f'block {claim.block}'}" in message
    assert claim.expected
    assert f"expected {claim.expected}" in message
    assert claim.found
    assert f"found {claim.found}" in message
    model_type = MODEL_TYPES[mutation.checkpoint]
    outcome = Outcome()
    outcome.fail(model_type, failure_line(mutation.checkpoint, claim))
    line, = _failure_lines(outcome)
    assert line.startswith(f"{model_type}: checkpoint '{mutation.checkpoint}'")
    assert line.endswith(message)


def test_there_are_enough_of_them() -> None:
    assert len(MUTATIONS) >= 230
    assert len({mutation.sentence for mutation in MUTATIONS}) == len(MUTATIONS)


def test_the_build_of_a_family_with_a_wrong_claim_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same through the worker that a build runs: a line that says all, and no facts."""
    wrong = identity("", DOGE, "layers[i].input").change(family("doge"), monkeypatch)
    monkeypatch.setattr("encyclopedia.capture.checkpoint.family", lambda model_type: wrong)
    result = run(CaptureTask(recorded(DOGE)))
    assert result.facts is None
    assert result.failure is not None
    for part in (DOGE, "identity", "layer_output", "block 0", "expected layers[i].input", "found off by"):
        assert part in result.failure
