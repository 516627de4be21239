"""Names elsewhere: what a page prints is what runs, and a name that is wrong in any part of it is caught."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import pytest
import torch

from encyclopedia.checks.claims import BrokenClaim, Ledger
from encyclopedia.checks.elsewhere import SORT, check_elsewhere
from encyclopedia.checks.writing import keep
from encyclopedia.facts import HookFacts
from encyclopedia.hooks import CALL, filled, hook_snippet, into_layout, nnsight_expression, tensor_phrase
from encyclopedia.model.places import NO_MODULE, Placed, native_places
from encyclopedia.model.readings import read_all
from encyclopedia.model.transformer import StandardizedTransformer
from encyclopedia.native import record
from encyclopedia.structure.held import to_layout
from encyclopedia.twin import PROMPTS, prompt_for
from tests.checks.mutations import LLAMA, MAMBA2, XS, reference

if TYPE_CHECKING:
    from transformers import PreTrainedModel

GPT2, MIXTRAL, FALCON = map(reference, ("gpt2", "mixtral", "falcon"))

Twins = Callable[..., "PreTrainedModel"]
Case = tuple["PreTrainedModel", list[Placed], torch.Tensor]


@pytest.fixture(scope="session")
def case(fresh_twin: Twins) -> Callable[[str], Case]:
    """``case(id)``: a twin that nothing has wrapped, where it has each value, and the prompt it was read on."""

    @cache
    def placed(checkpoint: str) -> tuple[list[Placed], torch.Tensor]:
        twin = fresh_twin(checkpoint)
        ids = prompt_for(twin, batch=PROMPTS)
        native = record(twin, ids)
        model = StandardizedTransformer(twin)
        layers = [kind.blocks[0] for kind in model.structure.kinds]
        with torch.no_grad():
            return native_places(model, native, read_all(model, ids, keep, fake=False, layers=layers)), ids

    def make(checkpoint: str) -> Case:
        found, ids = placed(checkpoint)
        return fresh_twin(checkpoint), list(found), ids

    return make


def find(placed: list[Placed], name: str, layer: int | None = 0) -> int:
    return next(position for position, found in enumerate(placed)
                if (found.reading.layer, found.reading.name) == (layer, name))


def changed(placed: list[Placed], position: int, **hook: str | None) -> list[Placed]:
    """``placed`` with another hook at ``position``."""
    found = placed[position]
    assert found.place.hook is not None
    place = found.place.model_copy(update={"hook": found.place.hook.model_copy(update=hook)})
    return [*placed[:position], replace(found, place=place), *placed[position + 1:]]


@pytest.mark.parametrize("checkpoint", [LLAMA, GPT2, XS, MIXTRAL, FALCON, MAMBA2])
def test_every_name_holds_to_the_last_bit(checkpoint: str, case: Callable[[str], Case]) -> None:
    twin, placed, ids = case(checkpoint)
    ledger = Ledger()
    settled = check_elsewhere(twin, placed, ids, ledger, lenient=False)
    claims = ledger.claims()
    hooks = sum(found.place.hook is not None for found in settled)
    assert {claim.sort for claim in claims} == {SORT}
    assert sum(claim.runs for claim in claims) == hooks + len(settled)
    assert {claim.error for claim in claims} == {0.0}
    assert hooks > len(settled) / 2
    assert all(found.place.no_nnsight is None for found in settled)


def test_native_paths_are_the_models_own(case: Callable[[str], Case]) -> None:
    _, placed, _ = case(GPT2)
    assert placed[find(placed, "attention_premix")].place.module == "model.transformer.h[i].attn.c_proj"
    assert placed[find(placed, "layer_output")].place.module == "model.transformer.h[i]"
    logits = placed[find(placed, "logits", None)].place.hook
    assert logits == HookFacts(module="model", tensor="output.logits", held=None)


def test_a_hook_is_found_where_another_module_sees_the_tensor(case: Callable[[str], Case]) -> None:
    """Values and pattern are read at operations; the projection and the attention give the same tensors."""
    _, placed, _ = case(LLAMA)
    values = placed[find(placed, "attention_values")].place
    assert "source" in values.location
    assert values.hook == HookFacts(module="model.model.layers[i].self_attn.v_proj", tensor="output",
                                    held="batch seq (num_kv_heads head_dim)")
    pattern = placed[find(placed, "attention_probabilities")].place.hook
    assert pattern is not None
    assert pattern.tensor == "output[1]"


def test_where_no_module_has_it_the_reason_names_the_forward(case: Callable[[str], Case]) -> None:
    _, placed, _ = case(LLAMA)
    scores = placed[find(placed, "attention_scores")].place
    assert scores.hook is None
    assert scores.no_hook == NO_MODULE.format(native="LlamaAttention")


MUTATIONS = {
    "another module": (LLAMA, "mlp_neurons", {"module": "model.model.layers[i].mlp.act_fn", "tensor": "output"}),
    "a module that is not there": (LLAMA, "mlp_neurons", {"module": "model.model.layers[i].mlp.down"}),
    "another block": (LLAMA, "layer_output", {"module": "model.model.layers[1]"}),
    "the wrong element of a tuple": (LLAMA, "attention_output", {"tensor": "output[1]"}),
    "an element too many": (LLAMA, "attention_output", {"tensor": "output[7]"}),
    "the tuple instead of its element": (LLAMA, "attention_output", {"tensor": "output"}),
    "the input instead of the output": (LLAMA, "mlp_output", {"tensor": "args[0]"}),
    "heads and their width swapped": (LLAMA, "attention_premix", {"held": "batch seq (head_dim num_heads)"}),
    "tokens left flat": (MIXTRAL, "expert_weights", {"held": None}),
    "weights for indices": (MIXTRAL, "expert_indices", {"tensor": "args[2]"}),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_wrong_hook_is_caught(mutation: str, case: Callable[[str], Case]) -> None:
    checkpoint, name, hook = MUTATIONS[mutation]
    twin, placed, ids = case(checkpoint)
    wrong = changed(placed, find(placed, name), **hook)
    with pytest.raises(BrokenClaim) as caught:
        check_elsewhere(twin, wrong, ids, Ledger(), lenient=False)
    assert (caught.value.sort, caught.value.block) == (SORT, 0)
    assert name in str(caught.value.value)


@pytest.mark.parametrize(("name", "place"), [
    ("mlp_neurons", {"module": "model.model.layers[i].mlp.act_fn", "location": "output"}),
    ("mlp_neurons", {"module": "model.model.layers[i].mlp.down"}),
    ("attention_output", {"location": "output[1]"}),
    ("attention_queries", {"location": "source.attention_interface_1.inputs[2]"}),
    ("attention_scores", {"location": "source.attention_interface_1.source.nn_functional_softmax_0.output"}),
    ("attention_scores", {"location": "source.attention_interface_1.source.no_such_operation_0.input"}),
])
def test_a_wrong_expression_is_caught(name: str, place: dict[str, str], case: Callable[[str], Case]) -> None:
    twin, placed, ids = case(LLAMA)
    position = find(placed, name)
    found = placed[position]
    wrong = [replace(found, place=found.place.model_copy(update={**place, "hook": None}))]
    with pytest.raises(BrokenClaim) as caught:
        check_elsewhere(twin, wrong, ids, Ledger(), lenient=False)
    assert name in str(caught.value.value)


def test_leniently_only_the_name_is_lost(case: Callable[[str], Case]) -> None:
    twin, placed, ids = case(LLAMA)
    position = find(placed, "attention_output")
    ledger = Ledger()
    settled = check_elsewhere(twin, changed(placed, position, tensor="output[7]"), ids, ledger, lenient=True)
    lost = settled[position].place
    assert lost.hook is None
    assert "IndexError" in (lost.no_hook or "")
    assert lost.no_nnsight is None
    others = [found.place.hook is None for found in settled]
    before = [found.place.hook is None for found in placed]
    assert [now for at, now in enumerate(others) if at != position] == [
        then for at, then in enumerate(before) if at != position]


def test_no_hook_stays_behind(case: Callable[[str], Case]) -> None:
    twin, placed, ids = case(LLAMA)
    plain = copy.deepcopy(twin)
    check_elsewhere(plain, changed(placed, find(placed, "attention_output"), tensor="output[7]"), ids, Ledger(),
                    lenient=True)
    # nnsight keeps hooks of its own on a model it has wrapped, the same number on each module.
    assert not [hook for module in plain.modules()
                for hook in (*module._forward_hooks.values(), *module._forward_pre_hooks.values())
                if getattr(hook, "__name__", "") == "keep"]


@pytest.mark.parametrize(("held", "dims"), [
    ("(batch seq) top_k", ("batch", "seq", "top_k")),
    ("batch seq (heads head_dim)", ("batch", "seq", "heads", "head_dim")),
    ("batch seq (heads head_dim)", ("batch", "heads", "seq", "head_dim")),
    ("(batch seq) (heads head_dim)", ("batch", "seq", "heads", "head_dim")),
    ("batch heads seq head_dim", ("batch", "seq", "heads", "head_dim")),
    ("batch head_dim seq heads", ("batch", "seq", "heads", "head_dim")),
    ("batch seq heads", ("batch", "seq", "heads", "head_dim")),
])
def test_the_printed_reshape_is_the_one_that_reads(held: str, dims: tuple[str, ...]) -> None:
    sizes = {"batch": 2, "seq": 3, "top_k": 5, "heads": 7, "head_dim": 11 if "head_dim" in held else 1}
    flat = torch.arange(torch.Size([sizes[axis] for axis in dims]).numel())
    shape = [torch.Size([sizes[axis] for axis in inside.split()]).numel()
             for inside in held.replace("(batch seq)", "batch@seq").replace("(heads head_dim)", "heads@head_dim")
             .replace(" ", "|").replace("@", " ").split("|")]
    tensor = flat.reshape(shape)
    printed = filled(f"tensor{into_layout(held, dims)}", 0, sizes)
    ids = torch.zeros(2, 3)
    assert torch.equal(eval(printed, {"tensor": tensor, "input_ids": ids}), to_layout(tensor, held, dims, sizes))


def test_the_text_of_a_hook() -> None:
    hook = HookFacts(module="model.layers[i].experts", tensor="kwargs[weights]", held="(batch seq) top_k")
    snippet = hook_snippet("expert_weights", hook, ("batch", "seq", "top_k"))
    assert filled(snippet.text, 3, {}) == (
        "caught = {}\n\n"
        "def keep(module, args, kwargs):\n"
        '    caught["expert_weights"] = kwargs["weights"].unflatten(0, input_ids.shape).clone()\n\n'
        "handle = model.layers[3].experts.register_forward_pre_hook(keep, with_kwargs=True)\n"
        f"{CALL}\n"
        "handle.remove()")


@pytest.mark.parametrize(("location", "expression"), [
    ("output", "model.a.output"), ("output[0]", "model.a.output[0]"), ("output.logits", "model.a.output.logits"),
    ("input", "model.a.input"), ("inputs[2]", "model.a.inputs[0][2]"), ("inputs[g]", 'model.a.inputs[1]["g"]'),
    ("source.f_0.source.g_1.input", "model.a.source.f_0.source.g_1.input"),
])
def test_inputs_are_a_pair_to_nnsight(location: str, expression: str) -> None:
    assert nnsight_expression("model.a", location) == expression


@pytest.mark.parametrize(("tensor", "phrase"), [
    ("output", "its output"), ("output[1]", "element 1 of its output"), ("args[0]", "its first argument"),
    ("output.logits", "the field logits of its output"), ("kwargs[x]", "its argument x"), ("args[9]", "its argument 9"),
])
def test_a_tensor_of_a_call_in_words(tensor: str, phrase: str) -> None:
    assert tensor_phrase(tensor) == phrase
