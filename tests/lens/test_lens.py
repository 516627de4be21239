"""What is recorded of TransformerLens's names holds on the installed releases, family by family."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from typer.testing import CliRunner

from encyclopedia.cli import app
from encyclopedia.lens import LensName, LensRecord, families_named, lens_names, lens_record
from encyclopedia.lens.bridge import installed
from encyclopedia.lens.records import write_names
from encyclopedia.vocabulary import VOCABULARY

#: Families whose records a reader relies on most; a record that is lost shows here.
WELL_KNOWN = ("gpt2", "gpt_neox", "llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3_text", "mixtral", "phi3",
              "olmo2", "falcon", "bloom", "opt", "mamba")

needs_bridge = pytest.mark.skipif(
    installed() is None, reason="TransformerLens is not installed: pip install 'encyclopedia[lens]'")


def broken_claims(recorded: LensRecord, found: LensRecord) -> list[str]:
    """What a record says and a comparison does not find, in words."""
    def said(name: LensName) -> tuple:
        return name.same, name.difference, name.acts

    now = {(name.host, name.value, name.hook): said(name) for name in found.names}
    broken = [f"{name.host}.{name.value} at {name.hook}: recorded {said(name)}, found {now.get(key)}"
              for name in recorded.names
              if now.get(key := (name.host, name.value, name.hook)) != said(name)]
    if recorded.eager_only != found.eager_only:
        broken.append(f"only under eager attention: recorded {recorded.eager_only}, found {found.eager_only}")
    return broken


@needs_bridge
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model_type", families_named())
def test_what_is_recorded_still_holds(model_type: str) -> None:
    from encyclopedia.lens.compare import compare_family

    recorded = lens_record(model_type)
    assert recorded is not None
    assert broken_claims(recorded, compare_family(model_type)) == []


@pytest.mark.parametrize("change", [{"same": False}, {"difference": "before the mask"}, {"acts": False},
                                    {"hook": "blocks.{i}.hook_out"}])
def test_a_claim_that_is_not_so_is_named(change: dict[str, Any]) -> None:
    record = lens_record("gpt2")
    assert record is not None
    wrong = record.model_copy(update={"names": [record.names[0].model_copy(update=change), *record.names[1:]]})
    assert broken_claims(record, record) == []
    assert len(broken_claims(wrong, record)) == 1


def test_well_known_families_are_recorded() -> None:
    assert set(WELL_KNOWN) <= set(families_named())


@pytest.mark.parametrize("model_type", families_named())
def test_names_are_of_standard_values(model_type: str) -> None:
    known = {(value.host, value.name) for value in VOCABULARY}
    for name in lens_names(model_type):
        assert (name.host, name.value) in known
        assert name.same or name.difference
        assert not name.same or (name.error is not None and name.error <= 1e-5)


def test_a_family_without_a_record_has_no_names() -> None:
    assert lens_names("doge") == []


def test_a_record_is_read_as_it_was_written(tmp_path) -> None:
    record = lens_record("llama")
    assert record is not None
    write_names("llama", record, tmp_path)
    assert lens_record("llama", tmp_path) == record
    assert families_named(tmp_path) == ("llama",)


def test_names_are_read_without_torch() -> None:
    code = "import sys; from encyclopedia.lens import lens_names; lens_names('gpt2')[0]; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_a_family_that_the_bridge_does_not_take_is_said() -> None:
    result = CliRunner().invoke(app, ["names", "doge"])
    assert result.exit_code == 1
    assert "no adapter for DogeForCausalLM" in result.output or "not installed" in result.output
