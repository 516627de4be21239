"""The notes' own snippets, each with one thing wrong in it, on the twin of a checkpoint."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from encyclopedia.capture.snippets import BrokenSnippet, run_snippets
from encyclopedia.checkpoints import recorded
from encyclopedia.notes import Snippet, python_blocks
from tests.checks.mutations import DOGE, DOGE_MOE, M1, XS

NOTES = Path(__file__).parents[2] / "site_src" / "notes"

WRONG = {
    "the identity without its second gate": (
        DOGE, "assert_close(gates.post_attention_residual * middle + from_mlp", "assert_close(middle + from_mlp"),
    "the identity without its first gate": (
        DOGE, "middle = gates.input_residual * entering + from_attention", "middle = entering + from_attention"),
    "the gates walked in the wrong order": (
        DOGE, "factor = factor * gates.input_residual", "factor = factor * gates.post_attention_residual"),
    "an ablated sublayer costs no gate": (
        DOGE, "without_attention, block._module.input_residual * entering", "without_attention, entering"),
    "a bias twice as large": (DOGE, "torch.exp(own.A * step)", "torch.exp(2 * own.A * step)"),
    "the scaling forgotten": (DOGE, "* own.scaling", ""),
    "query heads grouped the other way": (
        DOGE, "keys.repeat_interleave(group, dim=1)", "keys.repeat(1, group, 1, 1)"),
    "one key more than is kept": (DOGE, "kept = scores.shape[-1], model.config.keep_window_size",
                                  "kept = scores.shape[-1], model.config.keep_window_size + 1"),
    "experts that are not weighted": (DOGE_MOE, "own.act_fn(read) * weights", "own.act_fn(read)"),
    "another routed scaling": (
        XS, "slots.sum(2) * model.config.moe_routed_scaling_factor", "slots.sum(2) * 2.0"),
    "no routed scaling where the config says one": (
        M1, "slots.sum(2) * model.config.moe_routed_scaling_factor", "slots.sum(2)"),
    "another head": (XS, "premix[:, :, head] @", "premix[:, :, head + 1] @"),
    "the gate on the wrong axis": (M1, "heads * gate.unflatten(-1, (attn.num_heads, attn.head_dim))",
                                   "heads * gate.unflatten(-1, (attn.head_dim, attn.num_heads)).transpose(-1, -2)"),
    "a softmax where there is a sigmoid": (XS, "scores = router_logits.float().sigmoid()",
                                           "scores = router_logits.float().softmax(-1)"),
    "the selection bias in the weights": (XS, "chosen = scores.gather(-1, indices)",
                                          "chosen = (scores + selection_bias).gather(-1, indices)"),
}


@cache
def blocks(model_type: str) -> list[Snippet]:
    return python_blocks((NOTES / f"{model_type}.md").read_text(encoding="utf-8"))


def mutated(found: list[Snippet], old: str, new: str) -> list[Snippet]:
    """``found`` up to the first block with ``old`` in it, and there ``new`` instead."""
    at = next(place for place, block in enumerate(found) if old in block.code)
    return [*found[:at], Snippet(found[at].code.replace(old, new, 1), found[at].attributes, found[at].line)]


@pytest.mark.parametrize(("checkpoint", "old", "new"), WRONG.values(), ids=WRONG)
def test_a_wrong_snippet_is_caught(checkpoint: str, old: str, new: str) -> None:
    record = recorded(checkpoint)
    model_type = str(record.config["model_type"])
    known = [record, *(recorded(name) for name in _named(blocks(model_type)) if name != checkpoint)]
    shown = [record, *(other.model_copy(update={"reason": "left out here"}) for other in known[1:])]
    changed = mutated(blocks(model_type), old, new)
    with pytest.raises(BrokenSnippet) as caught:
        run_snippets(changed, shown, checkpoint, f"site_src/notes/{model_type}.md")
    message = str(caught.value)
    assert f"on the small twin of {checkpoint}: AssertionError" in message
    file, line, _ = message.split(":", 2)
    assert file == f"site_src/notes/{model_type}.md"
    assert changed[-1].line < int(line) <= changed[-1].line + len(changed[-1].code.splitlines())


def _named(found: list[Snippet]) -> set[str]:
    lists = [block.attributes.get("checkpoints", "reference").split(",") for block in found]
    return {name.strip() for names in lists for name in names} - {"reference"}


@pytest.mark.parametrize("code", [
    "torch.testing.assert_close(a, b, atol=1.0, rtol=0)",
    "torch.testing.assert_close(a, b, rtol=0.5)",
    "assert torch.allclose(a, b, atol=1e-2)",
    "tolerance = 10\nassert torch.allclose(a, b, atol=tolerance)",
    "assert (a.isclose(b, atol=float('inf'))).all()",
])
def test_a_comparison_that_cannot_fail_is_refused(code: str) -> None:
    setup = "a, b = torch.zeros(2), torch.full((2,), 5e-3)\n"
    with pytest.raises(BrokenSnippet, match=r"notes\.md:[34]: \w+ with [ar]tol .*: expected .* at most 0\.001"):
        run_snippets([Snippet(setup + code, {}, 1)], [recorded(DOGE)], DOGE, "notes.md")


@pytest.mark.parametrize("code", [
    "torch.testing.assert_close(a, a.clone(), atol=1e-4, rtol=1e-3)",
    "assert not torch.allclose(a, a + 1, atol=1e-2)",
    "torch.testing.assert_close(a, a.clone())",
])
def test_a_comparison_that_can_fail_is_run(code: str) -> None:
    facts, = run_snippets([Snippet("a = torch.ones(2)\n" + code, {}, 1)], [recorded(DOGE)], DOGE, "notes.md")
    assert facts.ran_on == [DOGE]
