"""The table of standard values is consistent with itself, and imports no model."""

from __future__ import annotations

import subprocess
import sys

from encyclopedia.vocabulary import HOSTS, PARTS, VOCABULARY, Layout, Role, values_of


def test_a_name_means_one_thing() -> None:
    for host in HOSTS:
        names = [value.name for value in VOCABULARY if value.host == host]
        assert len(names) == len(set(names))
        assert list(values_of(host)) == names
    assert {value.host for value in VOCABULARY} == set(HOSTS)


def test_a_layout_means_one_thing() -> None:
    layouts: dict[str, Layout] = {}
    for value in VOCABULARY:
        if value.layout is not None:
            assert layouts.setdefault(value.layout.name, value.layout) == value.layout
            assert value.layout.dims[0] == "batch"
            assert len(set(value.layout.dims)) == len(value.layout.dims)
            assert value.layout.dtype in ("float", "int")
    assert str(layouts["Queries"]) == "Queries [batch num_heads seq qk_head_dim]"


def test_values_are_made_from_values_of_their_own_host() -> None:
    for value in VOCABULARY:
        table = values_of(value.host)
        assert set(value.made_from) <= set(table)
        assert value.name not in value.made_from
        if value.by is not None:
            assert value.made_from


def test_no_value_is_made_from_itself_by_a_detour() -> None:
    for host in HOSTS:
        left = {name: set(value.made_from) for name, value in values_of(host).items()}
        while ready := [name for name, sources in left.items() if not sources]:
            left = {name: sources - set(ready) for name, sources in left.items() if name not in ready}
        assert not left


def test_roles_and_parts_are_known() -> None:
    for value in VOCABULARY:
        assert value.role in Role
        assert value.part is None or (value.part in PARTS and value.host == "mlp")


def test_descriptions_are_single_phrases() -> None:
    for value in VOCABULARY:
        assert value.description[0].isupper()
        assert not value.description.endswith(".")
        assert "\n" not in value.description
        assert not set("<>&") & set(value.description)


def test_only_computed_values_are_read_only() -> None:
    assert {value.name for value in VOCABULARY if not value.writable} == {"next_token_probs", "input_size"}


def test_reading_the_table_imports_no_model() -> None:
    code = "import sys, encyclopedia.vocabulary, encyclopedia.location, encyclopedia.facts, encyclopedia.checkpoints;" \
           "sys.exit(sorted({'torch', 'transformers', 'nnsight'} & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
