"""Benchmark: what capturing, checking and rendering a checkpoint cost beside the floor.

    python scripts/bench.py [CHECKPOINT ...]

The floor is the same config built bare on the meta device and printed, in the same process. Each checkpoint runs in a
process of its own, so that its peak memory is its own; the floor comes second there, after one build to warm up.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
COLUMNS = ("floor", "capture", "check", "page", "peak")


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds that ``work`` takes, and what it returns."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def measure(checkpoint: str) -> dict[str, float]:
    """Seconds by stage for one checkpoint, and peak memory in GB, in this process."""
    from encyclopedia.build.worker import prepare

    prepare()
    from encyclopedia.capture.checkpoint import capture_checkpoint, check_on_twin
    from encyclopedia.capture.family import gather_family
    from encyclopedia.checkpoints import recorded
    from encyclopedia.facts import NotesFacts
    from encyclopedia.families import family
    from encyclopedia.model.build import build_without_weights
    from encyclopedia.page.render import render_family

    record = recorded(checkpoint)
    model_type = str(record.config["model_type"])
    build_without_weights(record)
    floor, _ = timed(lambda: repr(build_without_weights(record)))
    everything, facts = timed(lambda: capture_checkpoint(record))
    full = build_without_weights(record, attn_implementation="eager")
    default = build_without_weights(record).config._attn_implementation
    check, _ = timed(lambda: check_on_twin(full, family(model_type), default))
    whole = gather_family(model_type, [facts], checkpoint, NotesFacts(snippets=[]))
    page, _ = timed(lambda: render_family(whole, "", ROOT / "templates"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {"floor": floor, "capture": everything - check, "check": check, "page": page, "peak": peak}


def main(chosen: list[str]) -> int:
    """Print the table."""
    from encyclopedia.checkpoints import families_recorded, read_family

    shown = [record.id for name in families_recorded() for record in read_family(name)[0] if record.reason is None]
    print("| checkpoint | floor | capture | check | page | (capture + check + page) / floor | check / capture | peak |")
    print("|---|---|---|---|---|---|---|---|")
    failed = 0
    for checkpoint in chosen or shown:
        result = subprocess.run([sys.executable, __file__, "--one", checkpoint], capture_output=True, text=True,
                                cwd=ROOT, check=False)
        if result.returncode:
            print(f"| {checkpoint} | failed: {result.stderr.strip().splitlines()[-1]} |")
            failed = 1
            continue
        found = json.loads(result.stdout.splitlines()[-1])
        times = " | ".join(f"{found[name]:.2f} s" for name in COLUMNS[:4])
        ratio = (found["capture"] + found["check"] + found["page"]) / found["floor"]
        print(f"| {checkpoint} | {times} | {ratio:.1f} | {found['check'] / found['capture']:.2f} | "
              f"{found['peak']:.2f} GB |", flush=True)
    return failed


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(sys.argv[2])))
    else:
        sys.exit(main(sys.argv[1:]))
