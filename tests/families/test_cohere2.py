"""What is particular to Cohere 2, on small random models with every parameter moved off its initial value."""

from __future__ import annotations

import pytest
import torch

from encyclopedia import Unavailable
from encyclopedia.checkpoints import read_family, recorded
from encyclopedia.families import Family, family
from encyclopedia.instantiate import build_without_weights

RECORDS = [record for record in read_family("cohere2")[0] if record.reason is None]
SHOWN = [record.id for record in RECORDS]
R7B = "CohereLabs/c4ai-command-r7b-12-2024"


def test_the_notes_run(run_notes):
    for snippet in run_notes("cohere2"):
        assert snippet.ran_on or snippet.reason.startswith("it "), f"line {snippet.line}"


def test_nothing_is_declared():
    declared = family("cohere2")
    assert declared == Family("cohere2", declared.title, declared.subtitle, declared.hue)


@pytest.mark.parametrize("record", [record for record in RECORDS if record.published_parameters], ids=lambda r: r.id)
def test_parameters_agree_with_the_published_count(record):
    counted = sum(parameter.numel() for parameter in build_without_weights(record).parameters())
    assert counted == record.published_parameters.total


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_sublayers_read_one_norm_and_are_added_together(small, prompt, checkpoint):
    model = small(checkpoint)
    ids, native = prompt(model), model.layers[0]._module
    read, handles = {}, []
    for name in ("self_attn", "mlp"):
        handles.append(native.get_submodule(name).register_forward_hook(
            lambda _module, arguments, keywords, output, name=name:
                read.update({name: arguments[0] if arguments else keywords["hidden_states"]}),
            with_kwargs=True))
    try:
        model._module(ids)
    finally:
        for handle in handles:
            handle.remove()
    assert read["self_attn"] is read["mlp"]
    with model.trace(ids):
        entering = model.layers[0].layer_input.save()
        attention = model.layers[0].self_attn.attention_output.save()
        mlp = model.layers[0].mlp.mlp_output.save()
        leaving = model.layers[0].layer_output.save()
    torch.testing.assert_close(entering + attention + mlp, leaving)


def test_there_is_no_stream_between_the_sublayers(small, prompt):
    model = small(R7B)
    with pytest.raises(Unavailable, match="layer_mid"), model.trace(prompt(model)):
        model.layers[0].layer_mid.save()


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_full_blocks_rotate_nothing(small, prompt, checkpoint):
    model = small(checkpoint)
    rotated = []
    for block in model.layers:
        attn = block.self_attn
        with model.trace(prompt(model)):
            projected = attn.k_proj.output.save()
            keys = attn.attention_keys.save()
        plain = projected.unflatten(-1, (-1, attn.head_dim)).transpose(1, 2)
        torch.testing.assert_close(keys[:, :, 0], plain[:, :, 0])
        rotated.append(not torch.allclose(keys, plain, atol=1e-2))
    assert rotated == [sort == "sliding_attention" for sort in model.config.layer_types]
    types = build_without_weights(recorded(checkpoint)).config.layer_types
    assert [index for index, sort in enumerate(types) if sort == "full_attention"] == list(range(3, len(types), 4))


def test_rotary_turns_neighbours(small, prompt):
    model = small(R7B)
    attn = model.layers[model.config.layer_types.index("sliding_attention")].self_attn
    with model.trace(prompt(model)):
        projected = attn.q_proj.output.save()
        queries = attn.attention_queries.save()
    plain = projected.unflatten(-1, (-1, attn.head_dim)).transpose(1, 2)
    torch.testing.assert_close(queries.unflatten(-1, (-1, 2)).norm(dim=-1), plain.unflatten(-1, (-1, 2)).norm(dim=-1))
    halves = [torch.stack(tensor.chunk(2, -1), -1).norm(dim=-1) for tensor in (queries, plain)]
    assert not torch.allclose(*halves, atol=1e-2)


@pytest.mark.parametrize(("checkpoint", "scale"), [(R7B, 0.25), ("CohereLabs/tiny-aya-global", 1.0)])
def test_logits_are_the_scaled_product(small, prompt, checkpoint, scale):
    assert recorded(checkpoint).config["logit_scale"] == scale
    model = small(checkpoint)
    # A twin's factors are moved off one.
    assert model.config.logit_scale != 1
    with model.trace(prompt(model)):
        head = model.lm_head_output.save()
        logits = model.logits.save()
    torch.testing.assert_close(model.config.logit_scale * head, logits)
