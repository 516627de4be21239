"""The command line, run as a user runs it, on a copy of the project."""

from __future__ import annotations

import importlib.metadata
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.build.conftest import DERIVED, FAILING, FAMILIES

Run = Callable[..., Any]


def test_help_names_every_command(run: Run) -> None:
    result = run("--help")
    assert result.returncode == 0
    for name in ("build", "serve", "list", "check"):
        assert re.search(rf"^\W*{name}\b", result.stdout, re.MULTILINE)
    assert "--jobs" in run("build", "--help").stdout


def test_a_wrong_family_is_one_line_with_the_nearest(run: Run) -> None:
    result = run("build", "dog")
    assert result.returncode == 2
    assert len(result.stderr.strip().splitlines()) == 1
    assert "'dog'" in result.stderr
    assert "'doge'" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(("arguments", "said", "help_of"), [
    (("nonsense",), "'nonsense'", "encyclopedia"), (("diff", "a"), "'new'", "encyclopedia diff"),
    (("build", "-j", "0"), "--jobs", "encyclopedia build"), (("build", "--engine", "hugo"), "'mkdocs', 'zensical'",
                                                               "encyclopedia build"),
    (("list", "x"), "x", "encyclopedia list"), (("page", "--nothing", "y"), "--nothing", "encyclopedia page")])
def test_a_wrong_call_is_one_line(run: Run, arguments: tuple[str, ...], said: str, help_of: str) -> None:
    result = run(*arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert len(result.stderr.strip().splitlines()) == 1
    assert said in result.stderr
    assert f"`{help_of} --help`" in result.stderr


def test_the_version_and_the_help(run: Run) -> None:
    said = run("--version")
    assert (said.returncode, said.stdout.strip()) == (0, importlib.metadata.version("encyclopedia"))
    assert run().returncode == 2
    assert "serve" in run().stdout


@pytest.mark.parametrize("address", ["", "example.org", "ftp://example.org/", "https:///x", "https://[", "https://a/?b"])
def test_an_address_that_no_site_can_have_is_one_line(run: Run, address: str) -> None:
    result = run("build", "--site-url", address)
    assert result.returncode == 2
    assert len(result.stderr.strip().splitlines()) == 1
    assert repr(address) in result.stderr
    assert "https://example.org/encyclopedia/" in result.stderr


def test_list_shows_every_checkpoint(run: Run) -> None:
    result = run("list")
    assert result.returncode == 0
    assert "SmallDoge/Doge-260M" in result.stdout
    assert "poolside/Laguna-M.1-base" in result.stdout
    assert re.search(rf"^{DERIVED} +class defaults", result.stdout, re.MULTILINE)


def test_check_says_what_was_covered_and_what_failed(run: Run) -> None:
    result = run("check", FAILING, DERIVED)
    assert result.returncode == 0, result.stderr
    lines = {line.partition(":")[0]: line for line in result.stdout.splitlines()}
    assert lines[FAILING].startswith(f"{FAILING}: structure: ")
    assert re.match(rf"{DERIVED}: (\d+) of \1 values read, identity held on \d+ blocks", lines[DERIVED])


def test_outside_a_project_the_installed_one_is_used_or_it_is_said(tmp_path: Path) -> None:
    from encyclopedia.build.project import find_project

    assert (find_project(tmp_path).root / "mkdocs.yml").is_file()


def test_a_second_build_captures_nothing_and_writes_the_same(run: Run, project: Path) -> None:
    first = run("build")
    assert first.returncode == 0, first.stderr
    pages = {path: path.read_bytes() for path in (project / "site").rglob("*.html")}
    assert set(FAMILIES) <= {path.parent.name for path in pages}
    assert {path.parent.parent.name for path in pages if path.parent.name == "checks"} == {
        "site", "doge", "laguna", DERIVED}
    second = run("build")
    assert "0 checkpoints captured" in second.stderr
    assert {path: path.read_bytes() for path in (project / "site").rglob("*.html")} == pages


def test_a_forced_build_of_one_family_captures_it_again(run: Run, project: Path) -> None:
    result = run("pages", "doge", "--force", "--jobs", "1")
    assert result.returncode == 0, result.stderr
    assert re.search(r"capturing \d+/\d+: SmallDoge/Doge-260M", result.stderr)
    assert not (project / "site_src" / "families" / "laguna").exists()
    data = json.loads((project / "site_src" / "data" / "doge.json").read_text())
    assert data["schema"] == 1


BROKEN = {
    "missing key": (lambda config: config.pop("hidden_size"), "hidden_size"),
    "wrong type": (lambda config: config.update(num_hidden_layers="eight"), "num_hidden_layers"),
    "wrong type of a flag": (lambda config: config.update(tie_word_embeddings="perhaps"), "tie_word_embeddings"),
    "negative size": (lambda config: config.update(intermediate_size=-4), "intermediate_size"),
    "zero size": (lambda config: config.update(vocab_size=0), "vocab_size"),
    "heads that do not divide": (lambda config: config.update(num_attention_heads=7), "num_attention_heads"),
    "markup for a class": (lambda config: config.update(architectures=["<b>Doge</b>"]), "architectures"),
    "unknown type": (lambda config: config.update(model_type="dogge"), "model_type"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_config_is_one_line_and_costs_no_other_page(run: Run, project: Path, case: str) -> None:
    change, key = BROKEN[case]
    path = project / "encyclopedia" / "checkpoints" / "doge.json"
    recorded = json.loads(path.read_text())
    target = next(entry for entry in recorded["checkpoints"] if entry["id"] == "SmallDoge/Doge-40M")
    change(target["config"])
    path.write_text(json.dumps(recorded))
    result = run("build")
    assert result.returncode == 1
    lines = [line for line in result.stderr.splitlines() if "Doge-40M'" in line]
    assert len(lines) == 1, result.stderr
    assert repr(key) in lines[0]
    assert "Traceback" not in result.stderr
    assert (project / "site" / "families" / "laguna" / "index.html").is_file()
    assert not (project / "site" / "families" / "doge").exists()


def test_markup_in_an_id_is_one_line_and_reaches_no_page(run: Run, project: Path) -> None:
    path = project / "encyclopedia" / "checkpoints" / "doge.json"
    recorded = json.loads(path.read_text())
    recorded["checkpoints"][1]["id"] = "SmallDoge/<script>alert(1)</script>"
    path.write_text(json.dumps(recorded))
    result = run("build")
    assert result.returncode == 1
    lines = [line for line in result.stderr.splitlines() if "<script>" in line]
    assert len(lines) == 1
    assert "'id'" in lines[0]
    assert (project / "site" / "families" / "laguna" / "index.html").is_file()
    for page in (project / "site").rglob("*.html"):
        assert "<script>alert(1)" not in page.read_text()
