"""A write that is lost, that reaches less or more than it should, or that leaks backwards is caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from encyclopedia import StandardizedTransformer
from encyclopedia.checks import writing
from encyclopedia.checks.claims import BrokenClaim, Ledger
from encyclopedia.checks.writing import check_writing, keep, written
from encyclopedia.model.readings import Reading, Write, read_all
from encyclopedia.twin import prompt_for
from tests.checks.mutations import LLAMA, XS

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Read = list[Reading]


@pytest.fixture
def check(fresh_twin: Callable[..., PreTrainedModel]) -> Callable[..., Ledger]:
    def run(checkpoint: str = LLAMA) -> Ledger:
        twin = fresh_twin(checkpoint)
        ids, model, ledger = prompt_for(twin, batch=2), StandardizedTransformer(twin), Ledger()
        with torch.no_grad():
            readings = read_all(model, ids, keep, fake=False, layers=[0])
            check_writing(model, ids, readings, [0], ledger)
        return ledger

    return run


def spoil(patch: pytest.MonkeyPatch, edit: Callable[[list[Write], Read], Read]) -> None:
    """Change what is read in every forward in which something is written."""

    def spoiled(model: Any, writes: list[Write], ids: torch.Tensor, layers: list[int], names: Any = None) -> Read:
        return edit(writes, written(model, writes, ids, layers, names))

    patch.setattr(writing, "written", spoiled)


def other(readings: Read, name: str) -> Read:
    return [replace(reading, result=reading.result + 1e-3) if reading.name == name else reading
            for reading in readings]


def test_what_holds_is_noted_for_every_writable_value(check: Callable[..., Ledger]) -> None:
    claims = check().claims()
    unchanged = {claim.value for claim in claims if "unchanged" in claim.text}
    changed = {claim.value for claim in claims if "read as written" in claim.text}
    assert unchanged == changed >= {"layer_mid", "attention_scores", "mlp_neurons", "token_embeddings"}
    assert any("slice of the output projection" in claim.text for claim in claims)


def test_a_write_that_is_lost(check: Callable[..., Ledger], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "written", lambda model, writes, ids, layers, names=None: read_all(
        model, ids, keep, fake=False, layers=layers, names=names))
    with pytest.raises(BrokenClaim, match=r"writing of .* expected to be read as it was written"):
        check()


def test_a_write_that_leaks_backwards(check: Callable[..., Ledger], monkeypatch: pytest.MonkeyPatch) -> None:
    def leak(writes: list[Write], readings: Read) -> Read:
        late = [write.name for write in writes] == ["layer_mid"]
        return other(readings, "attention_norm_output") if late else readings

    spoil(monkeypatch, leak)
    with pytest.raises(BrokenClaim, match=r"writing of layer_mid on block 0: expected no change before the place that "
                                          r"was written, found layer\.attention_norm_output changed"):
        check()


def test_a_write_that_does_not_reach_the_logits(check: Callable[..., Ledger], monkeypatch: pytest.MonkeyPatch) -> None:
    clean: dict[str, Reading] = {}

    def stop(writes: list[Write], readings: Read) -> Read:
        at = next(place for place, reading in enumerate(readings) if reading.name == "logits")
        clean.setdefault("logits", readings[at])
        if [write.name for write in writes] == ["mlp_neurons"]:
            readings[at] = clean["logits"]
        return readings

    spoil(monkeypatch, stop)
    with pytest.raises(BrokenClaim, match="writing of mlp_neurons on block 0: expected a change of the logits"):
        check()


def test_a_write_of_the_same_that_is_not_the_same(
    check: Callable[..., Ledger], monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(monkeypatch, lambda writes, readings: other(readings, "logits") if len(writes) > 1 else readings)
    with pytest.raises(BrokenClaim, match="writing of logits on the root: expected no change from writing every value"):
        check()


def test_a_head_that_takes_more_than_its_slice(check: Callable[..., Ledger], monkeypatch: pytest.MonkeyPatch) -> None:
    def two_heads(tensor: torch.Tensor) -> torch.Tensor:
        changed = tensor.clone()
        changed[:, :, :2] = 0
        return changed

    monkeypatch.setattr(writing, "_without_head", two_heads)
    with pytest.raises(BrokenClaim, match="writing of attention_head_outputs on block 0: expected "):
        check()


def test_readings_are_compared_value_by_value(check: Callable[..., Ledger], monkeypatch: pytest.MonkeyPatch) -> None:
    """However they come back, a value is compared with itself."""
    spoil(monkeypatch, lambda writes, readings: readings[::-1])
    assert check(XS).claims()
