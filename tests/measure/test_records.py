"""The measured numbers as data, and what the notes make of them."""

from __future__ import annotations

import pytest

from encyclopedia.checkpoints import read_family, recorded
from encyclopedia.facts import CheckpointFacts, FamilyFacts
from encyclopedia.instantiate import config_of
from encyclopedia.measure.quantities import QUANTITIES
from encyclopedia.measure.records import MeasuredRecord, find_measured, read_measured, write_measured
from encyclopedia.measure.run import MeasureError, matching_checkpoint, rounded
from encyclopedia.notes import Measurement, NotesError, fill

SMOLLM2 = "HuggingFaceTB/SmolLM2-135M-Instruct"


def record(checkpoint: str = "a/one", quantity: str = "norm", values: object = (1.5, None, 3)) -> MeasuredRecord:
    return MeasuredRecord(
        checkpoint=checkpoint, quantity=quantity, description="norm of the stream", prompt="Hello there",
        values=list(values) if isinstance(values, tuple) else values, unit="norm", weights="some weights",
        versions={"torch": "2"}, command="encyclopedia measure a --weights w")


def test_written_and_read_again(tmp_path):
    path = write_measured("a", [record(), record(quantity="token", values=" “é”")], tmp_path)
    assert read_measured("a", tmp_path) == [record(), record(quantity="token", values=" “é”")]
    before = path.read_bytes()
    write_measured("a", read_measured("a", tmp_path), tmp_path)
    assert path.read_bytes() == before


def test_another_checkpoints_records_are_kept(tmp_path):
    write_measured("a", [record("a/two"), record("a/one")], tmp_path)
    write_measured("a", [record("a/one", values=7)], tmp_path)
    assert read_measured("a", tmp_path) == [record("a/one", values=7), record("a/two")]


def test_no_file_is_no_record(tmp_path):
    assert read_measured("a", tmp_path) == []


def test_found_by_id_or_name():
    records = [record(), record("a/two")]
    assert find_measured(records, "norm", "one") == find_measured(records, "norm", "a/one") == records[0]
    with pytest.raises(LookupError, match="a/one, a/two"):
        find_measured(records, "norm", "three")
    with pytest.raises(LookupError, match="there are norm"):
        find_measured(records, "norms", "one")


def test_five_significant_digits():
    assert rounded([123456.7, 0.000123456789, 0.0, 7, None]) == [123460.0, 0.00012346, 0.0, 7, None]
    assert rounded(0.987654321) == 0.98765
    assert rounded(" Paris") == " Paris"


def test_checkpoint_is_told_by_its_sizes():
    records = read_family("llama")[0]
    config = config_of(recorded(SMOLLM2))
    assert matching_checkpoint(config, records, None).id == SMOLLM2
    assert matching_checkpoint(config, records, "SmolLM2-135M-Instruct").id == SMOLLM2
    with pytest.raises(MeasureError, match="hidden_size is 576, not 960"):
        matching_checkpoint(config, records, "SmolLM2-360M-Instruct")
    with pytest.raises(MeasureError, match="no checkpoint 'SmolLM3'"):
        matching_checkpoint(config, records, "SmolLM3")
    config.vocab_size += 1
    with pytest.raises(MeasureError, match="sizes of none"):
        matching_checkpoint(config, records, None)
    with pytest.raises(MeasureError, match="say which"):
        matching_checkpoint(config_of(recorded(SMOLLM2)), [recorded(SMOLLM2)] * 2, None)


def test_committed_data_covers_every_quantity():
    records = read_measured("llama")
    assert [entry.quantity for entry in records if entry.checkpoint == SMOLLM2] == [
        quantity.slug for quantity in QUANTITIES]
    depth = recorded(SMOLLM2).config["num_hidden_layers"]
    assert all(len(entry.values) == depth for entry in records if isinstance(entry.values, list))
    assert not any("/" in entry.command.replace(SMOLLM2, "") or "/" in entry.weights for entry in records)


def test_number_in_a_note_carries_its_provenance():
    seen = []
    measurement = Measurement(record(), lambda number: seen.append(number) or f"<{number.value}>")
    assert measurement[0] == "<1.5>"
    assert measurement[-1, "%.2f"] == "<3.00>"
    assert seen[-1].on == "a/one"
    assert "block 2" in seen[-1].of
    assert "Hello there" in seen[-1].of
    assert "encyclopedia measure a --weights w" in seen[-1].known_from
    assert "some weights" in seen[-1].known_from
    assert measurement.over(0, 3) == "<1.5 to 3>"
    assert measurement.noted("norm") == "<norm>"
    assert measurement.bare(2) == "3"
    assert Measurement(record(values=0.0), lambda number: number.value).shown("%.0e") == "0"
    assert str(Measurement(record(values=" Paris"), lambda number: number.value)) == " Paris"


@pytest.mark.parametrize(("use", "said"), [
    (lambda measurement: measurement[3], "no block 3"),
    (lambda measurement: measurement[1], "has not got"),
    (str, "say which"),
])
def test_wrong_use_in_a_note_says_what_is_there(use, said):
    with pytest.raises(ValueError, match=said):
        use(Measurement(record(), lambda number: number.value))


def notes(text: str) -> str:
    checkpoint = CheckpointFacts.model_construct(id=SMOLLM2)
    facts = FamilyFacts.model_construct(model_type="llama", reference=SMOLLM2, checkpoints=[checkpoint])
    return fill(text, facts)


def test_notes_read_the_committed_data():
    depth = recorded(SMOLLM2).config["num_hidden_layers"]
    text = '{{ measure("lens-settles", "SmolLM2-135M-Instruct") }}, {{ measure("lens-entropy", ref.id)[-1] }}'
    settles, entropy = notes(text).split(", ")
    assert 0 <= int(settles) < depth
    assert float(entropy) > 0


@pytest.mark.parametrize(("text", "said"), [
    ('{{ measure("lens-entropy", ref.id)[99] }}', "no block 99"),
    ('{{ measure("nothing", ref.id)[0] }}', "no single 'nothing'"),
    ('{{ measure("lens-entropy", "Llama-3.1-8B")[0] }}', "nothing was measured on 'Llama-3.1-8B'"),
])
def test_note_with_a_number_that_was_not_measured_is_an_error(text, said):
    with pytest.raises(NotesError, match=said):
        notes(f"### A note\n\n{text}")
