"""SmolLM2-135M-Instruct with its real weights: it works, the identity is exact, and the data is what it gives."""

from __future__ import annotations

import pytest
import torch

from encyclopedia.checkpoints import recorded
from encyclopedia.measure.quantities import PROMPT, QUANTITIES, QUESTION
from encyclopedia.measure.records import find_measured, read_measured
from encyclopedia.measure.run import matching_checkpoint, measure_model, token_ids
from encyclopedia.weights import describe_weights

SMOLLM2 = "HuggingFaceTB/SmolLM2-135M-Instruct"


def test_answers_paris(smollm2):
    with smollm2.trace(QUESTION):
        probabilities = smollm2.next_token_probs.save()
    assert smollm2.tokenizer.decode([int(probabilities[0].argmax())]) == " Paris"


def test_config_is_the_recorded_one(smollm2):
    record = recorded(SMOLLM2)
    assert matching_checkpoint(smollm2.config, [record], SMOLLM2) is record
    for key in ("bos_token_id", "eos_token_id", "pad_token_id", "max_position_embeddings", "tie_word_embeddings"):
        assert getattr(smollm2.config, key) == record.config[key]
    assert smollm2.config.rope_parameters == record.config["rope_parameters"]
    assert smollm2.config.rms_norm_eps == pytest.approx(record.config["rms_norm_eps"])
    assert sum(weight.numel() for weight in smollm2._module.parameters()) == record.published_parameters.total


def test_tokenizer_puts_nothing_in_front(smollm2):
    ids = smollm2.tokenizer(QUESTION)["input_ids"]
    assert smollm2.tokenizer.decode(ids) == QUESTION
    assert ids[0] != smollm2.config.bos_token_id
    assert smollm2.tokenizer.decode([smollm2.config.bos_token_id]) == "<|im_start|>"


def test_plain_sum_is_exact_on_every_block(smollm2):
    terms = []
    with smollm2.trace(PROMPT):
        for block in smollm2.layers:
            terms.append((block.layer_input.save(), block.self_attn.attention_output.save(),
                          block.mlp.mlp_output.save(), block.layer_output.save()))
    assert len(terms) == 30
    for entering, attention, mlp, leaving in terms:
        assert torch.equal(entering + attention + mlp, leaving)


def test_softmax_of_the_scores_is_the_pattern(smollm2):
    pairs = []
    with smollm2.trace(PROMPT):
        for block in smollm2.layers:
            pairs.append((block.self_attn.attention_scores.save(), block.self_attn.attention_probabilities.save()))
    for scores, pattern in pairs:
        assert torch.equal(scores.softmax(-1), pattern)


def test_standard_names_change_nothing(smollm2):
    ids = token_ids(smollm2, PROMPT)
    with smollm2.trace(ids):
        logits = smollm2.logits.save()
    assert torch.equal(logits, smollm2._module(ids).logits)


def test_confident_lens_is_wrong_before_the_end(smollm2):
    """The notes say so of block 19."""
    with smollm2.trace(QUESTION):
        early = smollm2.layers[19].layer_output.save()
        logits = smollm2.logits.save()
    lens = smollm2.project_on_vocab(early)[0, -1].softmax(-1)
    assert lens.max() > 0.9
    assert lens.argmax() != logits[0, -1].argmax()


def test_committed_data_is_what_the_command_writes(smollm2, smollm2_file):
    committed = read_measured("llama")
    command = find_measured(committed, "lens-settles", SMOLLM2).command
    for record in measure_model(smollm2, SMOLLM2, describe_weights(smollm2_file), command):
        expected = find_measured(committed, record.quantity, SMOLLM2)
        assert record.model_dump(exclude={"values", "versions"}) == expected.model_dump(exclude={"values", "versions"})
        if isinstance(record.values, str):
            assert record.values == expected.values
        else:
            assert record.values == pytest.approx(expected.values, rel=2e-3, abs=1e-6)
    assert len([entry for entry in committed if entry.checkpoint == SMOLLM2]) == len(QUANTITIES)
