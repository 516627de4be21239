"""The page of one's own config, made by the command and opened from disk."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.fuzz.tiny import TINY

ROOT = Path(__file__).parents[2]


def made(folder: Path, *options: str, **changes) -> subprocess.CompletedProcess:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**TINY["llama"], **changes}))
    return subprocess.run([sys.executable, "-m", "encyclopedia", "page", str(folder), "--output", f"{folder}/page.html",
                           *options], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("own") / "own-model"
    result = made(folder, "--site", "https://example.org/site", auto_map={"AutoConfig": "modeling.Evil"})
    assert result.returncode == 0, result.stderr
    assert "left out of its config: auto_map" in result.stderr
    return folder / "page.html"


def test_it_opens_from_disk_and_asks_for_nothing_else(file: Path, browser: Browser):
    page = browser.new_page(reduced_motion="reduce")
    asked, errors = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.goto(f"file://{file}#ckpt=local/own-model&block=1&pin=value.self_attn.attention_scores")
    card = page.locator("[data-card]")
    assert card.get_attribute("data-pinned") == "value.self_attn.attention_scores"
    assert card.locator("[data-card-expression]").inner_text().replace("\n", "") == (
        "model.layers[1].self_attn.attention_scores")
    page.locator("[data-block-slider]").focus()
    page.keyboard.press("Home")
    expect(page).to_have_url(re.compile("block=0"))
    page.keyboard.press("Escape")
    page.locator('[data-node="sublayer.mlp"]:visible').first.hover()
    assert "mlp" in card.locator("[data-card-expression]").inner_text()
    assert [url for url in asked if not url.startswith("data:")] == [page.url.partition("#")[0]]
    assert errors == []
    page.close()


def test_a_file_that_is_no_page_of_the_command_is_left_alone(tmp_path: Path):
    folder = tmp_path / "own"
    assert made(folder).returncode == 0
    assert made(folder).returncode == 0, "a page that it wrote itself is written again"
    notes = folder / "page.html"
    notes.write_text("<p>mine</p>")
    refused = made(folder)
    assert refused.returncode == 1
    assert "no page of this command" in refused.stderr
    assert notes.read_text() == "<p>mine</p>"
    refused = made(folder, "--output", str(tmp_path / "missing" / "page.html"))
    assert "no such folder" in refused.stderr
    assert not (tmp_path / "missing").exists()


def test_with_its_charts_it_draws_them_and_asks_for_nothing_either(tmp_path: Path, browser: Browser):
    assert made(tmp_path / "charted", "--charts").returncode == 0
    page = browser.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"file://{tmp_path}/charted/page.html")
    chart = page.locator("[data-region=depth] [data-depth-chart]").first
    chart.scroll_into_view_if_needed()
    expect(chart).to_have_attribute("data-drawn", "", timeout=20_000)
    assert chart.locator(".bars path").count() > 1
    assert [url for url in asked if not url.startswith(("data:", "blob:"))] == [page.url]
    page.close()


def test_every_link_on_it_leads_somewhere(file: Path, browser: Browser):
    page = browser.new_page()
    page.goto(f"file://{file}")
    links = page.evaluate("[...document.querySelectorAll('a[href]')].map((link) => link.getAttribute('href'))")
    within = [link[1:] for link in links if link.startswith("#") and "=" not in link]
    assert within
    assert page.evaluate("(names) => names.filter((name) => !document.getElementById(decodeURIComponent(name)))",
                         within) == []
    beyond = [link for link in links if not link.startswith("#")]
    assert "https://example.org/site/families/llama/" in beyond
    assert all(link.startswith("https://") for link in beyond)
    page.close()


@pytest.mark.parametrize(("changes", "said"), [
    ({"num_hidden_layers": 1_000_000}, "more than the 1,000"), ({"model_type": "lama"}, "the nearest is 'llama'"),
    ({"hidden_act": "<script>"}, "local/own")])
def test_what_cannot_be_shown_is_one_line(changes, said, tmp_path):
    result = made(tmp_path / "own", **changes)
    assert result.returncode == 1
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "own" / "page.html").exists()
