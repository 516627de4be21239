"""The whole capture of small configs that were changed: facts, or one line; and the limits of its process."""

from __future__ import annotations

import json
import logging
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from encyclopedia.standalone.capturing import capture_within, captured
from encyclopedia.standalone.reading import UnreadableConfig, config_from
from tests.fuzz.inputs import FUZZ, assert_one_line, mutations
from tests.fuzz.tiny import TINY

#: Seconds; the slowest of these takes a tenth of it on an idle machine.
LONGEST = 60

#: Families whose small configs are captured in about a second.
QUICK = ("llama", "gpt2", "gemma2", "mixtral", "bloom", "deepseek_v3")


@pytest.fixture(autouse=True)
def _quiet():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@settings(FUZZ, max_examples=30)
@given(data=st.data())
@pytest.mark.parametrize("family", QUICK)
def test_a_changed_config_gives_facts_or_one_line(family, data):
    content = json.dumps(data.draw(mutations(TINY[family], most=2))).encode()
    try:
        record = config_from(content, "local/tiny", "tiny/config.json").record
    except UnreadableConfig:
        return
    started = time.monotonic()
    facts, failure = captured(record)
    assert time.monotonic() - started < LONGEST
    if facts is None:
        assert_one_line(failure, names="local/tiny")
        assert ";" in failure, "no next step"
    else:
        assert facts.available
        assert facts.kinds
        assert facts.claims


def record_of(**changes):
    return config_from(json.dumps({**TINY["llama"], **changes}).encode(), "local/tiny", "tiny/config.json").record


def test_a_capture_that_takes_too_long_ends():
    started = time.monotonic()
    with pytest.raises(UnreadableConfig, match=r"no facts within 0.5 seconds; give it longer by --timeout"):
        capture_within(record_of(), 0.5)
    assert time.monotonic() - started < 20


def test_a_capture_in_its_own_process_gives_facts():
    assert capture_within(record_of(), 120).sizes["num_layers"] == 2
