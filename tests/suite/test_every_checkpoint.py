"""Every recorded checkpoint that is no reference, lightly: it builds, counts as published, its blocks have labels."""

from __future__ import annotations

import pytest

from encyclopedia.capture.labels import labels_of
from encyclopedia.capture.parameters import count_parameters
from encyclopedia.checkpoints import RecordedCheckpoint, families_recorded, read_family
from encyclopedia.families import family
from encyclopedia.instantiate import build_without_weights
from encyclopedia.structure.derive import structure_of
from tests.suite.failed import FAILED
from tests.suite.test_every_family import agrees_with_published, reference

OTHERS = {record.id: record for name in families_recorded() if name not in FAILED
          for record in read_family(name)[0] if record.reason is None and record.id != reference(name).id}


@pytest.mark.parametrize("record", OTHERS.values(), ids=OTHERS)
def test_it_builds_and_its_structure_is_derived(record: RecordedCheckpoint) -> None:
    declared = family(str(record.config["model_type"]))
    model = build_without_weights(record)
    structure = structure_of(model)
    agrees_with_published(record, count_parameters(model, structure, declared))
    blocks = [block for kind in structure.kinds for block in kind.blocks]
    assert sorted(blocks) == list(range(structure.depth))
    labels = labels_of(structure.kinds)
    assert all(labels)
    assert len(set(labels)) == len(structure.kinds)
    assert all(kind.sublayers for kind in structure.kinds)


def test_no_recorded_file_is_broken() -> None:
    assert {name: [str(problem) for problem in read_family(name)[1]] for name in families_recorded()
            if read_family(name)[1]} == {}
