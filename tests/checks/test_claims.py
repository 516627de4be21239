"""What a claim is compared with, and what is kept of those that held."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from encyclopedia.checks.claims import TOLERANCE, BrokenClaim, Ledger, describe, difference, said

FINITE = st.floats(-100, 100, width=32)
ROWS = st.lists(FINITE, min_size=1, max_size=6)
LOWEST = torch.finfo(torch.float32).min


def passes(expected: torch.Tensor, found: torch.Tensor) -> bool:
    return difference(expected, found) <= TOLERANCE


@given(ROWS)
def test_a_tensor_is_itself(row: list[float]) -> None:
    assert difference(torch.tensor(row), torch.tensor(row)) == 0


@given(ROWS, st.data())
def test_one_entry_off_is_as_far_as_it_is_off(row: list[float], data: st.DataObject) -> None:
    expected, at = torch.tensor(row), data.draw(st.integers(0, len(row) - 1))
    off = data.draw(st.floats(2**-10, 10, width=32))
    found = expected.clone()
    found[at] += off * max(expected.abs().max().item(), 1.0)
    assert not passes(expected, found)


@given(ROWS, st.data(), st.sampled_from([math.nan, math.inf, -math.inf]))
def test_what_is_not_a_number_never_passes(row: list[float], data: st.DataObject, odd: float) -> None:
    at = data.draw(st.integers(0, len(row) - 1))
    plain = torch.tensor(row)
    broken = plain.clone()
    broken[at] = odd
    assert not passes(plain, broken)
    assert not passes(broken, plain)
    if odd != -math.inf:
        assert not passes(broken, broken)


@given(ROWS, st.data())
def test_a_mask_has_to_be_where_it_is_expected(row: list[float], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(row) - 1))
    masked, plain = torch.tensor(row), torch.tensor(row)
    masked[at] = data.draw(st.sampled_from([LOWEST, -math.inf]))
    assert not passes(masked, plain)
    assert not passes(plain, masked)
    assert passes(masked, masked)


def test_two_ways_of_masking_are_one() -> None:
    assert difference(torch.tensor([LOWEST, 1.0]), torch.tensor([-math.inf, 1.0])) == 0


@given(ROWS)
def test_a_mask_does_not_set_the_scale(row: list[float]) -> None:
    expected = torch.tensor([LOWEST, *row])
    found = expected.clone()
    found[1:] += 0.01 * max(expected[1:].abs().max().item(), 1.0)
    assert not passes(expected, found)


@pytest.mark.parametrize("shape", [(3,), (1, 2, 2), (4, 1), (2, 1), (0,), ()])
def test_another_shape_never_passes(shape: tuple[int, ...]) -> None:
    assert difference(torch.ones(2, 2), torch.ones(shape)) == math.inf


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=6), st.data())
def test_whole_numbers_are_equal_or_not(row: list[int], data: st.DataObject) -> None:
    expected, at = torch.tensor(row), data.draw(st.integers(0, len(row) - 1))
    found = expected.clone()
    assert difference(expected, found.to(torch.int32)) == 0
    found[at] += data.draw(st.sampled_from([-1, 1]))
    assert difference(expected, found) == math.inf


def test_whole_numbers_are_no_fractions() -> None:
    """Rounded down these would be the indices expected."""
    assert difference(torch.tensor([1, 2]), torch.tensor([1.4, 2.3])) == math.inf
    assert difference(torch.tensor([1.0, 2.0]), torch.tensor([1, 2])) == math.inf


def test_anything_is_far_from_nothing_but_zeros() -> None:
    assert difference(torch.zeros(3), torch.zeros(3)) == 0
    assert not passes(torch.zeros(3), torch.full((3,), 1e-6))


def test_an_empty_tensor_has_no_difference() -> None:
    assert difference(torch.empty(0), torch.empty(0)) == 0


def test_a_ledger_keeps_the_largest_error_of_each_claim() -> None:
    ledger = Ledger()
    for error in (1e-7, 3e-7, None, 2e-7):
        ledger.held("meaning", "mlp", "mlp_output", "it is", error)
    ledger.held("meaning", "mlp", "mlp_output", "it is also")
    ledger.held("layout", "mlp", "mlp_output", "it is")
    first, second, third = ledger.claims()
    assert (first.sort, first.host, first.value, first.text) == ("meaning", "mlp", "mlp_output", "it is")
    assert (first.runs, first.error) == (4, 3e-7)
    assert (second.runs, second.error) == (1, None)
    assert third.sort == "layout"


def test_a_broken_claim_says_all() -> None:
    claim = BrokenClaim("meaning", "mlp_output", 3, "this", "that")
    assert str(claim) == "meaning of mlp_output on block 3: expected this, found that"
    assert str(BrokenClaim("layout", None, None, "a", "b")) == "layout of the block on the root: expected a, found b"


def test_a_tensor_and_an_error_are_said_in_a_few_words() -> None:
    assert describe(torch.tensor([[1.0, -2.5]])) == "float32 [1, 2], largest 2.5"
    assert describe(torch.tensor([True])) == "bool [1]"
    assert said(KeyError("a\n  b")) == r"KeyError: 'a\n b'"
    assert said(ValueError()) == "ValueError: no message"


def test_a_broken_claim_on_a_twin_names_the_checkpoints_own_block() -> None:
    broken = BrokenClaim("meaning", "mlp_output", 2, "one thing", "another")
    assert "on block 4 (block 2 of its small twin): expected one thing, found another" in str(
        broken.on_twin_of([0, 1, 4]))
    assert str(BrokenClaim("meaning", "logits", None, "a", "b").on_twin_of([0])) == str(
        BrokenClaim("meaning", "logits", None, "a", "b"))
