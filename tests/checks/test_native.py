"""Recording a forward leaves the model as it was."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
import torch

from encyclopedia.native import record
from encyclopedia.twin import prompt_for
from tests.checks.mutations import DOGE, LLAMA, XS

if TYPE_CHECKING:
    from transformers import PreTrainedModel

EACH = pytest.mark.parametrize("checkpoint", [LLAMA, DOGE, XS])


def hooks(model: torch.nn.Module) -> int:
    return sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules())


@EACH
def test_recording_does_not_change_the_output(checkpoint: str, fresh_twin: Callable[..., PreTrainedModel]) -> None:
    twin = fresh_twin(checkpoint)
    ids = prompt_for(twin, batch=2)
    with torch.no_grad():
        before = twin(input_ids=ids).logits
    run = record(twin, ids)
    assert torch.equal(run.output.logits, before)
    with torch.no_grad():
        assert torch.equal(twin(input_ids=ids).logits, before)


@EACH
def test_every_module_and_every_attention_is_recorded(
    checkpoint: str, fresh_twin: Callable[..., PreTrainedModel]
) -> None:
    twin = fresh_twin(checkpoint)
    ids = prompt_for(twin, batch=2)
    run = record(twin, ids)
    blocks = twin.get_submodule("model.layers")
    assert set(run.attention) == {f"model.layers.{index}.self_attn" for index in range(len(blocks))}
    for index, block in enumerate(blocks):
        call, = run.calls[f"model.layers.{index}"]
        assert call.entering.shape == call.leaving.shape == (*ids.shape, twin.config.hidden_size)
        attention = run.attention[f"model.layers.{index}.self_attn"]
        assert attention.key.shape[1] == twin.config.num_key_value_heads
        assert attention.outputs.shape[1:3] == (ids.shape[1], attention.query.shape[1])
        assert attention.scaling == block.self_attn.scaling


@EACH
def test_nothing_of_it_stays(checkpoint: str, fresh_twin: Callable[..., PreTrainedModel]) -> None:
    twin = fresh_twin(checkpoint)
    file = sys.modules[type(twin).__module__]
    original, hooked = file.eager_attention_forward, hooks(twin)
    record(twin, prompt_for(twin))
    assert file.eager_attention_forward is original
    assert hooks(twin) == hooked


@EACH
def test_nothing_of_it_stays_where_the_forward_fails(
    checkpoint: str, fresh_twin: Callable[..., PreTrainedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = fresh_twin(checkpoint)
    file = sys.modules[type(twin).__module__]
    original, hooked = file.eager_attention_forward, hooks(twin)

    def fails(*arguments: Any, **keywords: Any) -> Any:
        raise RuntimeError("in the middle of the forward")

    with monkeypatch.context() as patch:
        patch.setattr(twin.get_submodule("model.layers.1.mlp.down_proj" if checkpoint != XS else "model.norm"),
                      "forward", fails)
        with pytest.raises(RuntimeError, match="in the middle"):
            record(twin, prompt_for(twin))
    assert file.eager_attention_forward is original
    assert hooks(twin) == hooked
    assert torch.is_grad_enabled()
