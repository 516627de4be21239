"""Every text decoder of transformers is on the built site, and few of them without a verified page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from encyclopedia.coverage import all_families, text_decoders

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "site_src" / "data"

#: Most families that may have a page which says what failed.
MOST_FAILED = 14


@pytest.fixture(scope="module")
def index() -> list[dict[str, Any]]:
    """The families in the index of the built data."""
    return json.loads((DATA / "index.json").read_text(encoding="utf-8"))["families"]


def test_every_text_decoder_is_on_the_site(index: list[dict[str, Any]]) -> None:
    on_it = {family["model_type"] for family in index}
    assert set(text_decoders()) <= on_it
    assert on_it == set(all_families())


def test_few_families_are_without_a_verified_page_and_each_says_why(index: list[dict[str, Any]]) -> None:
    failed = [family["model_type"] for family in index if family["state"] != "verified"]
    assert len(failed) <= MOST_FAILED
    for model_type in failed:
        failure = json.loads((DATA / f"{model_type}.json").read_text(encoding="utf-8"))["failure"]
        assert failure["step"] in ("config", "structure", "run", "check")
        assert len(failure["reason"]) > 20
        assert (ROOT / "site_src" / "families" / model_type / "index.md").is_file()


def test_an_annotated_family_is_verified(index: list[dict[str, Any]]) -> None:
    annotated = [family for family in index if family["annotated"]]
    assert len(annotated) >= 36
    assert all(family["state"] == "verified" for family in annotated)
