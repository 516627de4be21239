"""What is particular to Doge, on small random models with every parameter moved off its initial value."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from encyclopedia import StandardizedTransformer, Unavailable
from encyclopedia.checkpoints import read_family, recorded
from encyclopedia.instantiate import build_without_weights
from tests.families.counting import counted_in

DENSE = ("SmallDoge/Doge-260M", "SmallDoge/Doge-20M", "SmallDoge/Doge-40M")
MIXTURES = ("SmallDoge/Doge-40M-MoE", "SmallDoge/Doge-180M-MoE")
SHOWN = (*DENSE, *MIXTURES)

#: Those whose configs describe what their weights have and transformers' classes do not.
OTHER_LAYOUT = [record for record in read_family("doge")[0] if record.reason is not None]

MIXTURE_VALUES = (
    "router_logits", "expert_weights", "expert_indices", "expert_outputs", "routed_output", "shared_expert_output",
)


def test_the_notes_run(run_notes):
    for snippet in run_notes("doge"):
        assert snippet.ran_on or "downloads" in snippet.reason, f"line {snippet.line}"


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_stream_is_gated_and_contributions_are_not(small, prompt, checkpoint):
    model = small(checkpoint)
    for block in model.layers:
        with model.trace(prompt(model)):
            entering = block.layer_input.save()
            attention = block.self_attn.attention_output.save()
            middle = block.layer_mid.save()
            mlp = block.mlp.mlp_output.save()
            leaving = block.layer_output.save()
        native = block._module
        torch.testing.assert_close(native.input_residual * entering + attention, middle)
        torch.testing.assert_close(native.post_attention_residual * middle + mlp, leaving)
        off = (entering + attention + mlp - leaving).abs().max()
        assert off > 0.01 * leaving.abs().max()


@pytest.mark.parametrize("checkpoint", DENSE)
def test_dynamic_mask_is_rebuilt_from_the_values(small, prompt, checkpoint):
    model = small(checkpoint)
    ids = prompt(model)[:, :model.config.keep_window_size]  # no key is dropped
    for block in model.layers:
        attn = block.self_attn
        with model.trace(ids):
            queries = attn.attention_queries.save()
            keys = attn.attention_keys.save()
            values = attn.attention_values.save()
            scores = attn.attention_scores.save()
        lowest = torch.finfo(scores.dtype).min
        future = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).triu(1)
        group = attn.num_heads // attn.num_kv_heads
        product = queries @ keys.repeat_interleave(group, dim=1).mT * attn.head_dim**-0.5
        causal = torch.zeros_like(product).masked_fill(future, lowest)
        steps = F.softplus(attn._module.dt_proj(values.transpose(1, 2).flatten(2)))
        bias = torch.exp(attn._module.A * steps).transpose(1, 2).repeat_interleave(group, dim=1)
        rest = scores - (product + causal)
        torch.testing.assert_close(rest[..., ~future], bias.unsqueeze(2).expand_as(rest)[..., ~future])
        assert (bias - bias.mean()).abs().max() > 0.01
        assert (scores[..., future] == lowest).all()


def test_bias_is_made_before_the_interface_reads_the_values(small, prompt):
    model = small("SmallDoge/Doge-260M")
    attn = model.layers[0].self_attn
    ids = prompt(model)
    with model.trace(ids):
        scores = attn.attention_scores.save()
    with model.trace(ids):
        attn.attention_values = attn.attention_values * 2
        late = attn.attention_scores.save()
    with model.trace(ids):
        attn.v_proj.output = attn.v_proj.output * 2
        early = attn.attention_scores.save()
    assert torch.equal(late, scores)
    assert not torch.equal(early, scores)


@pytest.mark.parametrize("checkpoint", DENSE)
def test_only_the_keys_with_the_largest_bias_are_kept(small, prompt, checkpoint):
    model = small(checkpoint)
    ids = prompt(model)
    seq = ids.shape[1]
    kept_keys = model.config.keep_window_size
    assert kept_keys < seq
    attn = model.layers[0].self_attn
    with model.trace(ids):
        values = attn.attention_values.save()
        scores = attn.attention_scores.save()
        pattern = attn.attention_probabilities.save()
    steps = F.softplus(attn._module.dt_proj(values.transpose(1, 2).flatten(2)))
    bias = torch.exp(attn._module.A * steps).transpose(1, 2)
    bias = bias.repeat_interleave(attn.num_heads // attn.num_kv_heads, dim=1)
    dropped_somewhere = False
    for query in range(seq):
        kept = pattern[:, :, query] > 0
        assert (kept.sum(-1) == min(kept_keys, query + 1)).all()
        seen = torch.arange(seq) <= query
        # Two biases may be alike up to rounding, and then either key may be kept.
        least_kept = bias.masked_fill(~kept, torch.inf).amin(-1)
        most_dropped = bias.masked_fill(kept | ~seen, -torch.inf).amax(-1)
        assert (least_kept >= most_dropped - 1e-6).all()
        assert (scores[:, :, query][~kept] == torch.finfo(scores.dtype).min).all()
        assert (pattern[:, :, query][~kept] == 0).all()
        dropped_somewhere |= query + 1 > kept_keys
    assert dropped_somewhere


def test_sdpa_computes_the_same_and_lacks_the_interior(small, prompt):
    eager, default = small("SmallDoge/Doge-260M"), small("SmallDoge/Doge-260M", attn_implementation="sdpa")
    ids = prompt(eager)
    torch.testing.assert_close(default._module(ids).logits, eager._module(ids).logits, rtol=1e-4, atol=1e-4)
    reason = default.layers[0].self_attn.unavailable("attention_scores")
    assert 'attn_implementation="eager"' in reason
    assert eager.layers[0].self_attn.unavailable("attention_scores") is None


@pytest.mark.parametrize("checkpoint", MIXTURES)
def test_mixture_output_is_dense_plus_routed(small, prompt, checkpoint):
    model = small(checkpoint)
    ids = prompt(model)
    moe, native = model.layers[1].mlp, model.layers[1].mlp._module
    with model.trace(ids):
        entering = moe.input.save()
        activation = moe.mlp_activation.save()
        neurons = moe.mlp_neurons.save()
        output = moe.mlp_output.save()
    gate = native.act_fn(native.gate_proj(entering))
    torch.testing.assert_close(activation, gate)
    torch.testing.assert_close(neurons, gate * native.up_proj(entering))

    flat = entering.flatten(0, 1)
    first, second = native.router_gate(entering).view(2, len(flat), native.num_keys)
    scores = (first.unsqueeze(-1) + second.unsqueeze(-2)).flatten(1)
    best, experts = scores.topk(native.top_k)
    weights = best.softmax(-1)
    read = native.act_fn(torch.einsum("tkh,th->tk", native.down_embed(experts), flat))
    routed = torch.einsum("tk,tkh->th", read * weights, native.up_embed(experts)).view_as(output)
    dense = native.down_proj(neurons)
    torch.testing.assert_close(output, dense + routed)
    assert not torch.allclose(output, dense, atol=1e-2)


@pytest.mark.parametrize("name", MIXTURE_VALUES)
def test_mixture_values_say_why_they_are_unavailable(small, prompt, name):
    model = small(MIXTURES[0])
    with pytest.raises(Unavailable, match="rows of two embedding tables"), model.trace(prompt(model)):
        getattr(model.layers[0].mlp, name).save()


def test_routing_depends_on_the_rest_of_the_call(small, prompt):
    model = small(MIXTURES[0])
    ids = prompt(model)
    moe = model.layers[0].mlp
    with model.trace(ids):
        alone = moe.mlp_output.save()
    with model.trace(torch.cat([ids, ids.flip(1)])):
        together = moe.mlp_output.save()
    with model.trace(ids[:, :8]):
        prefix = moe.mlp_output.save()
    assert not torch.allclose(together[:1], alone, atol=1e-3)
    assert not torch.allclose(alone[:, :8], prefix, atol=1e-3)


@pytest.mark.parametrize("checkpoint", SHOWN)
def test_head_is_the_embedding_table(small, prompt, checkpoint):
    model = small(checkpoint)
    with model.trace(prompt(model)):
        stream = model.layers[-1].layer_output.save()
        head = model.lm_head_output.save()
        logits = model.logits.save()
    assert torch.equal(head, logits)
    torch.testing.assert_close(model.project_on_vocab(stream), logits)
    assert model.lm_head._module.weight is model.embed_tokens._module.weight


def test_parameters_agree_with_the_published_counts():
    checked = 0
    for checkpoint in SHOWN:
        published = recorded(checkpoint).published_parameters
        if published is None:
            continue
        counted = counted_in(build_without_weights(recorded(checkpoint)), "doge")
        # Published counts are rounded to a tenth of a million.
        assert abs(counted.total - published.total) <= 50_000
        checked += 1
    assert checked


def test_active_parameters_leave_out_the_experts_not_retrieved():
    record = recorded(MIXTURES[0])
    config = record.config
    counted = counted_in(build_without_weights(record), "doge")
    idle = config["num_experts"] - config["num_experts_per_tok"]
    assert counted.total - counted.active == config["num_hidden_layers"] * idle * 2 * config["hidden_size"]


def test_other_layouts_are_listed_with_the_reason():
    assert OTHER_LAYOUT
    for record in OTHER_LAYOUT:
        assert "dt_proj" in record.reason


def test_full_size_shapes_without_weights():
    full = StandardizedTransformer.from_recorded("SmallDoge/Doge-260M", attn_implementation="eager")
    with full.scan(torch.zeros(1, 8, dtype=torch.long)):
        queries = full.layers[-1].self_attn.attention_queries.shape.save()
        keys = full.layers[-1].self_attn.attention_keys.shape.save()
    assert queries == (1, 6, 8, 128)
    assert keys == (1, 3, 8, 128)
