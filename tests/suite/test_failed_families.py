"""The families that cannot be verified: few, each with the step that stops it and the reason."""

from __future__ import annotations

import pytest

from encyclopedia.capture.checkpoint import capture_or_fail
from encyclopedia.capture.family import gather_family
from encyclopedia.coverage import all_families
from encyclopedia.facts import CheckpointFacts, NotesFacts
from encyclopedia.families import has_module
from tests.suite.failed import FAILED
from tests.suite.test_every_family import reference


@pytest.fixture(scope="module", params=FAILED)
def failed(request: pytest.FixtureRequest) -> tuple[str, CheckpointFacts]:
    """A family and what capturing its reference gave."""
    return request.param, capture_or_fail(reference(request.param))


def test_it_says_its_step_and_its_reason(failed: tuple[str, CheckpointFacts]) -> None:
    name, facts = failed
    assert not facts.available, f"{name} is verified: take it off the list of failed families"
    assert facts.failure is not None
    assert facts.failure.step == FAILED[name]
    assert len(facts.failure.reason) > 20
    assert "\n" not in facts.failure.reason
    assert facts.kinds == []
    assert facts.hosts == []
    assert facts.checks is None


def test_its_family_says_so_too(failed: tuple[str, CheckpointFacts]) -> None:
    name, facts = failed
    gathered = gather_family(name, [facts], facts.id, NotesFacts(snippets=[]))
    assert gathered.failure == facts.failure
    assert not gathered.annotated


def test_they_are_few_and_known() -> None:
    assert len(FAILED) <= 14
    assert set(FAILED) <= set(all_families())
    assert len(all_families()) - len(FAILED) >= 140
    assert not any(has_module(name) for name in FAILED)
