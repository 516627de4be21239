"""What is particular to Laguna, on small random models with every parameter moved off its initial value."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from encyclopedia import NoWeights, StandardizedTransformer, Unavailable
from encyclopedia.checkpoints import recorded
from encyclopedia.instantiate import build_without_weights
from encyclopedia.twin import twin_of
from tests.families.counting import counted_in

XS = "poolside/Laguna-XS-2.1"
M1 = "poolside/Laguna-M.1"
PER_HEAD = (XS, "poolside/Laguna-XS.2", "poolside/Laguna-S-2.1")
SHOWN = (*PER_HEAD, M1)


def test_the_notes_run(run_notes):
    for snippet in run_notes("laguna"):
        assert snippet.ran_on or snippet.reason.startswith("it "), f"line {snippet.line}"


@pytest.fixture(scope="module")
def full() -> StandardizedTransformer:
    """XS-2.1 at full size, without weights."""
    return StandardizedTransformer.from_recorded(XS, attn_implementation="eager")


def test_query_heads_differ_by_block_at_full_size(full):
    with full.scan(torch.zeros(1, 8, dtype=torch.long)):
        on_full = full.layers[0].self_attn.attention_queries.shape.save()
        on_sliding = full.layers[1].self_attn.attention_queries.shape.save()
        keys = full.layers[1].self_attn.attention_keys.shape.save()
    assert on_full == (1, 48, 8, 128)
    assert on_sliding == (1, 64, 8, 128)
    assert keys == (1, 8, 8, 128)
    assert full.num_heads == full.layers[0].self_attn.num_heads == 48
    assert full.layers[1].self_attn.num_heads == 64


def test_a_model_without_weights_refuses_to_compute(full):
    with pytest.raises(NoWeights), full.trace(torch.zeros(1, 8, dtype=torch.long)):
        full.logits.save()


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_contributions_add_up_on_every_block(small, prompt, checkpoint):
    model = small(checkpoint)
    for block in model.layers:
        with model.trace(prompt(model)):
            entering = block.layer_input.save()
            attention = block.self_attn.attention_output.save()
            mlp = block.mlp.mlp_output.save()
            leaving = block.layer_output.save()
        torch.testing.assert_close(entering + attention + mlp, leaving)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_gate_stands_between_head_outputs_and_premix(small, prompt, checkpoint):
    model = small(checkpoint)
    attn = model.layers[1].self_attn
    with model.trace(prompt(model)):
        heads = attn.attention_head_outputs.save()
        opening = attn.g_proj.output.save()
        premix = attn.attention_premix.save()
    gate = F.softplus(opening)
    per_head = checkpoint in PER_HEAD
    gate = gate.unsqueeze(-1) if per_head else gate.unflatten(-1, (attn.num_heads, attn.head_dim))
    assert gate.shape[2:] == (attn.num_heads, 1 if per_head else attn.head_dim)
    torch.testing.assert_close(heads * gate, premix)
    assert not torch.allclose(heads, premix, atol=1e-2)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_a_zeroed_head_takes_its_gated_term_away(small, prompt, checkpoint):
    model = small(checkpoint)
    attn, ids, head = model.layers[1].self_attn, prompt(model), 1
    with model.trace(ids):
        premix = attn.attention_premix.save()
        output = attn.attention_output.save()
    with model.trace(ids):
        attn.attention_head_outputs[:, :, head] = 0
        ablated = attn.attention_output.save()
    slices = attn.o_proj._module.weight.unflatten(1, (attn.num_heads, attn.head_dim))
    torch.testing.assert_close(output - ablated, premix[:, :, head] @ slices[:, head].T, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("checkpoint", PER_HEAD)
def test_sliding_blocks_see_their_window_only(small, prompt, checkpoint):
    model = small(checkpoint)
    ids = prompt(model)
    window = model.config.sliding_window
    age = torch.arange(ids.shape[1])[:, None] - torch.arange(ids.shape[1])
    for block, attention_type in zip(model.layers, model.config.layer_types, strict=True):
        with model.trace(ids):
            pattern = block.self_attn.attention_probabilities.save()
        seen = (age >= 0) & (age < window) if attention_type == "sliding_attention" else age >= 0
        assert torch.equal(pattern > 0, seen.expand_as(pattern))


def test_sdpa_computes_the_same(small, prompt):
    eager, default = small(XS), small(XS, attn_implementation="sdpa")
    ids = prompt(eager)
    torch.testing.assert_close(default._module(ids).logits, eager._module(ids).logits, rtol=1e-4, atol=1e-4)
    assert "eager" in default.layers[0].self_attn.unavailable("attention_queries")


@pytest.mark.parametrize("experts", ["grouped_mm", "batched_mm"])
@pytest.mark.parametrize("checkpoint", SHOWN)
def test_mixture_step_by_step(small, prompt, checkpoint, experts):
    model = small(checkpoint, experts_implementation=experts)
    moe = model.layers[1].mlp
    with model.trace(prompt(model, batch=2)):
        entering = moe.input.save()
        shared = moe.shared_expert_output.save()
        logits = moe.router_logits.save()
        weights = moe.expert_weights.save()
        indices = moe.expert_indices.save()
        slots = moe.expert_outputs.save()
        routed = moe.routed_output.save()
        output = moe.mlp_output.save()
    native = moe._module
    torch.testing.assert_close(shared, native.shared_experts(entering))
    torch.testing.assert_close(logits, entering @ native.gate.weight.T)
    expected_weights, expected_indices = routing(logits, native.gate.e_score_correction_bias, native.gate.top_k)
    assert torch.equal(indices, expected_indices)
    torch.testing.assert_close(weights, expected_weights)
    for slot in range(native.gate.top_k):
        for row, position in [(0, 0), (1, 5)]:
            expert = indices[row, position, slot]
            gate, up = (native.experts.gate_up_proj[expert] @ entering[row, position]).chunk(2)
            alone = native.experts.down_proj[expert] @ (F.silu(gate) * up)
            torch.testing.assert_close(
                slots[row, position, slot], weights[row, position, slot] * alone, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(slots.sum(2) * model.config.moe_routed_scaling_factor, routed)
    torch.testing.assert_close(routed + shared, output)


def routing(logits: torch.Tensor, bias: torch.Tensor, top_k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights and indices that a router makes of logits: the bias ranks, the sigmoids weigh."""
    scores = logits.float().sigmoid()
    indices = (scores + bias).topk(top_k).indices
    chosen = scores.gather(-1, indices)
    return chosen / chosen.sum(-1, keepdim=True), indices


def test_router_logits_are_in_the_dtype_of_the_model(prompt):
    model = StandardizedTransformer(twin_of(recorded(XS)).to(torch.bfloat16))
    moe = model.layers[1].mlp
    with model.trace(prompt(model)):
        logits = moe.router_logits.save()
        cast = moe.router.output[0].save()
        weights = moe.expert_weights.save()
    assert (logits.dtype, cast.dtype, weights.dtype) == (torch.bfloat16, torch.float32, torch.bfloat16)
    torch.testing.assert_close(cast.view(logits.shape), logits.float())


@pytest.mark.parametrize("checkpoint", [XS, M1])
def test_written_logits_move_choice_and_weights(small, prompt, checkpoint):
    model = small(checkpoint)
    moe, ids = model.layers[1].mlp, prompt(model)
    with model.trace(ids):
        logits = moe.router_logits.save()
        weights = moe.expert_weights.save()
        indices = moe.expert_indices.save()
    written = logits.roll(1, dims=-1)
    with model.trace(ids):
        moe.router_logits = written
        new_weights = moe.expert_weights.save()
        new_indices = moe.expert_indices.save()
    gate = moe._module.gate
    expected_weights, expected_indices = routing(written, gate.e_score_correction_bias, gate.top_k)
    assert torch.equal(new_indices, expected_indices)
    torch.testing.assert_close(new_weights, expected_weights)
    assert not torch.equal(new_indices, indices)
    assert not torch.allclose(new_weights, weights, atol=1e-3)


@pytest.mark.parametrize("checkpoint", [XS, M1])
def test_selection_bias_moves_the_choice_only(small, prompt, checkpoint):
    model = small(checkpoint)
    moe, ids = model.layers[1].mlp, prompt(model)
    gate = moe._module.gate
    added = torch.zeros_like(gate.e_score_correction_bias)
    added[4] = 5
    with model.trace(ids):
        logits = moe.router_logits.save()
        indices = moe.expert_indices.save()
    with model.trace(ids):
        place = moe.router.source.self_e_score_correction_bias_to_0
        place.output = place.output + added
        new_logits = moe.router.output[0].save()
        new_weights = moe.expert_weights.save()
        new_indices = moe.expert_indices.save()
    assert torch.equal(new_logits.view_as(logits), logits)
    assert not torch.equal(new_indices, indices)
    assert (new_indices == 4).any(-1).all()
    chosen = logits.sigmoid().gather(-1, new_indices)
    torch.testing.assert_close(new_weights, chosen / chosen.sum(-1, keepdim=True))


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_silencing_an_expert_touches_the_tokens_routed_to_it(small, prompt, checkpoint):
    model = small(checkpoint)
    moe, ids = model.layers[1].mlp, prompt(model)
    with model.trace(ids):
        shared = moe.shared_expert_output.save()
        weights = moe.expert_weights.save()
        indices = moe.expert_indices.save()
        clean = moe.mlp_output.save()
    uses = indices.flatten().bincount()
    expert = uses.where(uses > 0, uses.max() + 1).argmin()  # the one that fewest tokens chose
    with model.trace(ids):
        shared_after = moe.shared_expert_output.save()
        moe.expert_weights = moe.expert_weights.masked_fill(moe.expert_indices == expert, 0)
        weights_after = moe.expert_weights.save()
        ablated = moe.mlp_output.save()
    routed_to_it = (indices == expert).any(-1)
    assert routed_to_it.any()
    assert not routed_to_it.all()
    assert torch.equal((ablated != clean).any(-1), routed_to_it)
    assert torch.equal(weights_after[indices != expert], weights[indices != expert])
    assert torch.equal(shared_after, shared)


@pytest.mark.parametrize("checkpoint", [XS, M1])
def test_what_the_shared_expert_and_the_mixture_lack(small, prompt, checkpoint):
    model = small(checkpoint)
    moe, ids = model.layers[1].mlp, prompt(model)
    with pytest.raises(Unavailable, match="shared expert"), model.trace(ids):
        moe.shared_experts.mlp_output.save()
    for name in ("mlp_activation", "mlp_neurons"):
        assert "per expert" in moe.unavailable(name)
        assert model.layers[0].mlp.unavailable(name) is None
        assert moe.shared_experts.unavailable(name) is None


def test_each_invoke_reads_its_own_rows(small, prompt):
    model = small(XS)
    moe = model.layers[1].mlp
    names = ("router_logits", "expert_weights", "expert_indices", "expert_outputs", "routed_output")
    first, second = prompt(model, seed=1), prompt(model, batch=2, seed=2)
    alone: dict[tuple[str, str], torch.Tensor] = {}
    together: dict[tuple[str, str], torch.Tensor] = {}
    for label, ids in (("first", first), ("second", second)):
        with model.trace(ids):
            for name in names:
                alone[label, name] = getattr(moe, name).save()
    with model.trace() as tracer:
        for label, ids in (("first", first), ("second", second)):
            with tracer.invoke(ids):
                for name in names:
                    together[label, name] = getattr(moe, name).save()
    assert len(together) == 2 * len(names)
    for key, expected in alone.items():
        torch.testing.assert_close(together[key], expected)


@pytest.mark.parametrize("name", ["router_logits", "expert_weights", "expert_outputs", "routed_output"])
def test_a_write_in_one_invoke_leaves_the_other_alone(small, prompt, name):
    # The grouped kernels' rounding depends on all tokens of the call, the batched ones' does not.
    model = small(XS, experts_implementation="batched_mm")
    moe = model.layers[1].mlp
    first, second = prompt(model, seed=1), prompt(model, batch=2, seed=2)

    def run(factor: float) -> tuple[torch.Tensor, ...]:
        with model.trace() as tracer:
            with tracer.invoke(first):
                routed = moe.routed_output.save()
                logits = model.logits.save()
            with tracer.invoke(second):
                if factor != 1:
                    setattr(moe, name, getattr(moe, name) * factor)
                other = moe.mlp_output.save()
        return routed, logits, other

    (routed, logits, other), (routed_after, logits_after, other_after) = run(1), run(-1)
    assert torch.equal(routed, routed_after)
    assert torch.equal(logits, logits_after)
    assert not torch.allclose(other, other_after, atol=1e-3)


def test_a_write_leaves_the_other_rows_of_the_same_block_alone_under_grouped_kernels(small, prompt):
    model = small(XS)
    moe = model.layers[1].mlp
    first, second = prompt(model, seed=1), prompt(model, batch=2, seed=2)

    def run(factor: float) -> tuple[torch.Tensor, torch.Tensor]:
        with model.trace() as tracer:
            with tracer.invoke(first):
                routed = moe.routed_output.save()
                leaving = model.layers[1].layer_output.save()
            with tracer.invoke(second):
                moe.expert_weights = moe.expert_weights * factor
        return routed, leaving

    for clean, written in zip(run(1), run(0), strict=True):
        assert torch.equal(clean, written)


def test_eager_experts_lack_the_slots_and_nothing_else(small, prompt):
    model, default = small(XS, experts_implementation="eager"), small(XS)
    moe, ids = model.layers[1].mlp, prompt(model)
    with pytest.raises(Unavailable, match='experts_implementation="grouped_mm"'), model.trace(ids):
        moe.expert_outputs.save()
    for name, reason in default.layers[1].mlp.support().items():
        assert name == "expert_outputs" or moe.unavailable(name) == reason
    with model.trace(ids):
        shared = moe.shared_expert_output.save()
        weights = moe.expert_weights.save()
        routed = moe.routed_output.save()
        output = moe.mlp_output.save()
    same = default.layers[1].mlp
    with default.trace(ids):
        default_weights = same.expert_weights.save()
        default_output = same.mlp_output.save()
    torch.testing.assert_close(routed + shared, output)
    torch.testing.assert_close(weights, default_weights)
    torch.testing.assert_close(output, default_output, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("checkpoint", "rounding"), [
    (XS, 0), ("poolside/Laguna-S-2.1", 0), ("poolside/Laguna-XS.2", 50_000_000), (M1, 50_000_000),
])
def test_parameters_agree_with_the_published_counts(checkpoint, rounding):
    record = recorded(checkpoint)
    counted = counted_in(build_without_weights(record), "laguna")
    assert abs(counted.total - record.published_parameters.total) <= rounding
    # Active counts are published to the billion, M.1's to a tenth of it.
    assert abs(counted.active - record.published_parameters.active) <= 500_000_000


def test_xs_has_exactly_this_many_parameters():
    assert counted_in(build_without_weights(recorded(XS)), "laguna").total == 33_442_617_088


def test_the_shared_experts_neurons_are_one_prompts_own(small, prompt):
    model = small(XS)
    first, second = prompt(model, seed=1), prompt(model, seed=2)
    shared = model.layers[1].mlp.shared_experts
    with model.trace(second):
        alone = shared.mlp_neurons.save()
    with model.trace() as tracer:
        with tracer.invoke(first):
            shared.mlp_neurons[:] = 0
            silenced = model.layers[1].mlp.shared_expert_output.save()
        with tracer.invoke(second):
            beside = shared.mlp_neurons.save()
    assert alone.shape == (1, second.shape[1], shared._module.down_proj.in_features)
    torch.testing.assert_close(beside, alone)
    assert silenced.abs().max() == 0
