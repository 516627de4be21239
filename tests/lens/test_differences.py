"""Sentences about differences, on tensors that differ in exactly one known way."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from encyclopedia.lens.arrangement import arrangements
from encyclopedia.lens.differences import Here, error_of, explain, match

QUERIES = ("batch", "num_heads", "seq", "qk_head_dim")
KEYS = ("batch", "num_kv_heads", "seq", "qk_head_dim")


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def here(name: str, dims: tuple[str, ...], value: torch.Tensor, found: torch.Tensor, **more) -> Here:
    return Here(name, dims, value, found, **{"others": {}, "layers": {}, "factors": {}, **more})


def norm(width: int) -> nn.Module:
    made = nn.RMSNorm(width)
    made.requires_grad_(False)
    made.weight.copy_(1 + 0.3 * drawn(width, seed=5))
    return made


def rotated(tensor: torch.Tensor) -> torch.Tensor:
    """Pairs of the last axis turned by the position times a frequency."""
    half = tensor.shape[-1] // 2
    angles = torch.arange(tensor.shape[-2])[:, None] / torch.arange(1, half + 1)
    first, second = tensor[..., :half], tensor[..., half:]
    return torch.cat([first * angles.cos() - second * angles.sin(), second * angles.cos() + first * angles.sin()], -1)


def test_axes_are_named_in_the_order_of_the_other_tensor() -> None:
    value = drawn(2, 3, 5, 7)
    arrangement, error = match(value, value.transpose(1, 2))
    assert (arrangement.named(QUERIES), error) == ("[batch seq num_heads qk_head_dim]", 0.0)
    merged, _ = match(value, value.transpose(1, 2).flatten(2))
    assert merged.named(QUERIES) == "[batch seq (num_heads qk_head_dim)]"
    assert torch.equal(merged.undo(value.transpose(1, 2).flatten(2), value.shape), value)


def test_one_shape_is_laid_out_plainly_first() -> None:
    assert next(iter(arrangements((2, 3, 4, 4), (2, 3, 4, 4)))).plain
    assert not arrangements((2, 3), (2, 4))


def test_hidden_positions_are_alike_whatever_hides_them() -> None:
    value = drawn(1, 2, 4, 4).masked_fill(torch.ones(4, 4).triu(1).bool(), torch.finfo(torch.float32).min)
    assert error_of(value, value.masked_fill(value < -1e30, -math.inf)) == 0.0
    assert error_of(value, value.masked_fill(value < -1e30, 0.0)) == math.inf


def test_another_tensor_gets_no_sentence() -> None:
    assert explain(here("attention_queries", QUERIES, drawn(2, 3, 5, 8), drawn(2, 5, 3, 8, seed=1))) is None


RAW = drawn(2, 6, 5, 8)
KV = drawn(2, 2, 5, 8)
LOGITS = drawn(2, 6, 5, 5)
HIDDEN = LOGITS.masked_fill(torch.ones(5, 5).triu(1).bool(), torch.finfo(torch.float32).min)


@pytest.mark.parametrize(("case", "sentence"), [
    (here("attention_queries", QUERIES, rotated(RAW), RAW.transpose(1, 2)), "before the rotary embedding"),
    (here("attention_queries", QUERIES, rotated(1.5 * RAW), RAW, factors={"attention_factor": 1.5}),
     "before the rotary embedding and the factor attention_factor"),
    (here("attention_keys", KEYS, rotated(norm(8)(KV)), KV.transpose(1, 2), layers={"k_norm": norm(8)}),
     "before k_norm and the rotary embedding"),
    (here("attention_keys", KEYS, norm(8)(rotated(KV)), KV.transpose(1, 2), layers={"k_norm": norm(8)}),
     "before the rotary embedding and k_norm"),
    (here("attention_keys", KEYS, KV, KV.repeat_interleave(3, 1)), "repeated to the query heads"),
    (here("attention_queries", QUERIES, RAW, torch.stack([RAW, -RAW], 2).permute(0, 3, 1, 2, 4).flatten(2)),
     "with as many other numbers behind each head's"),
    (here("attention_queries", QUERIES, RAW, RAW * math.sqrt(8)), "the value times sqrt(qk_head_dim)"),
    (here("attention_scores", ("batch", "num_heads", "query", "key"), HIDDEN, LOGITS), "before the mask"),
    (here("attention_scores", ("batch", "num_heads", "query", "key"), HIDDEN / 3, LOGITS, factors={"scaling": 1 / 3}),
     "before the factor scaling and the mask"),
    (here("attention_scores", ("batch", "num_heads", "query", "key"), HIDDEN, HIDDEN.softmax(-1),
          others={"attention_probabilities": HIDDEN.softmax(-1)}), "attention_probabilities"),
    (here("attention_norm_output", ("batch", "seq", "hidden_size"), norm(8)(drawn(2, 5, 8)),
          nn.RMSNorm(8, elementwise_affine=False)(drawn(2, 5, 8)), layers={"input_layernorm": norm(8)}),
     "before the weight of input_layernorm"),
    (here("mlp_output", ("batch", "seq", "hidden_size"), norm(8)(drawn(2, 5, 8)), drawn(2, 5, 8),
          layers={"post_norm": norm(8)}), "before post_norm"),
    (here("token_embeddings", ("batch", "seq", "hidden_size"), drawn(2, 5, 8), norm(8)(drawn(2, 5, 8)),
          layers={"embed_norm": norm(8)}), "after embed_norm"),
    (here("layer_output", ("batch", "seq", "hidden_size"), drawn(2, 5, 8) + drawn(2, 5, 8, seed=1), drawn(2, 5, 8),
          others={"mlp_output": drawn(2, 5, 8, seed=1)}), "the value without mlp_output"),
    (here("attention_premix", ("batch", "seq", "num_heads", "head_dim"), RAW.transpose(1, 2),
          RAW.transpose(1, 2).reshape(2, 5, 12, 4)),
     "the same numbers, but its last two axes are not num_heads and head_dim"),
    (here("attention_queries", QUERIES, RAW, RAW.transpose(1, 2)[..., -3:]), "only the last part of each head"),
    (here("expert_weights", ("batch", "seq", "top_k"), torch.full((1, 2, 2), 0.5), torch.tensor(
        [[0.5, 0.0, 0.5], [0.0, 0.5, 0.5]]), others={"expert_indices": torch.tensor([[[0, 2], [1, 2]]])}),
     "a column for every expert in place of every slot, zero where it is not chosen"),
])
def test_the_one_difference_is_named(case: Here, sentence: str) -> None:
    assert explain(case) == sentence
