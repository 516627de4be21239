"""Benchmark: what a family costs beside the floor, family by family and in all.

    python scripts/bench.py [--jobs N] [FAMILY ...]

For each family's reference checkpoint, two floors done bare, with PyTorch and transformers alone. ``build`` is the
config built on the meta device and printed. ``run`` is what the facts cannot be had without: that, one forward under
fake tensors for shapes, and the small twin built and run once. Capture takes in all checks; the page is rendered from
its facts. Families run in worker processes as in a build, so the total is a build's, but for its notes and the site
engine.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds that ``work`` takes, and what it returns."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def bare(record: Any) -> None:
    """Build and print a config's model, run it under fake tensors, and build and run its twin: the floor."""
    import torch
    from torch._subclasses import FakeTensorMode

    from encyclopedia.instantiate import build_without_weights
    from encyclopedia.model.rotary import settled_rotary
    from encyclopedia.twin import PROMPTS, prompt_for, twin_of_model

    full = build_without_weights(record)
    repr(full)
    ids = torch.zeros(1, 8, dtype=torch.long, device="meta")
    with torch.no_grad(), settled_rotary(full), FakeTensorMode(allow_non_fake_inputs=True):
        full(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False)
    twin = twin_of_model(full)
    prompt = prompt_for(twin, batch=PROMPTS)
    with torch.no_grad():
        twin(input_ids=prompt, attention_mask=torch.ones_like(prompt), use_cache=False)


def measure(family: str) -> dict[str, Any]:
    """Seconds by stage for one family, and the process's peak memory so far in GB."""
    from encyclopedia.build.worker import prepare

    prepare()
    from encyclopedia.capture.checkpoint import capture_or_fail
    from encyclopedia.capture.family import gather_family
    from encyclopedia.coverage import reference_record
    from encyclopedia.facts import NotesFacts
    from encyclopedia.instantiate import build_without_weights
    from encyclopedia.page.render import render_family

    record = reference_record(family)
    found: dict[str, Any] = {"family": family, "checkpoint": record.id, "floor": None}
    try:
        bare(record)
        found["build"] = timed(lambda: repr(build_without_weights(record)))[0]
        found["floor"] = timed(lambda: bare(record))[0]
    except Exception as error:
        found["why"] = f"{type(error).__name__}"
    found["capture"], facts = timed(lambda: capture_or_fail(record))
    whole = gather_family(family, [facts], record.id, NotesFacts(snippets=[]))
    found["page"], _ = timed(lambda: render_family(whole, "", ROOT / "templates"))
    found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return found


def results(families: list[str], jobs: int) -> Iterator[dict[str, Any]]:
    """Each family's figures as they come."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        for future in as_completed([pool.submit(measure, family) for family in families]):
            yield future.result()


def row(found: dict[str, Any]) -> str:
    """A family's row of the table."""
    floor = found["floor"]
    spent = found["capture"] + found["page"]
    ratio = "" if floor is None else f"{spent / floor:.1f}"
    floors = f"{found.get('why', '')} | " if floor is None else f"{found['build']:.2f} s | {floor:.2f} s"
    return (f"| {found['family']} | {found['checkpoint']} | {floors} | {found['capture']:.2f} s | "
            f"{found['page']:.2f} s | {ratio} |")


def main() -> None:
    """Print the table and the totals."""
    from encyclopedia.coverage import all_families

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    print("| family | checkpoint | build | run | capture and checks | page | over run |")
    print("|---|---|---|---|---|---|---|")
    wall, all_found = timed(lambda: [
        (print(row(found), flush=True), found)[1]
        for found in results(arguments.families or list(all_families()), arguments.jobs)])
    floors = [found for found in all_found if found["floor"] is not None]
    ratios = [(found["capture"] + found["page"]) / found["floor"] for found in floors]
    slowest = sorted(all_found, key=lambda found: -found["capture"])[:5]
    print()
    print(f"families: {len(all_found)}, {len(floors)} with a floor; wall clock with {arguments.jobs} workers, floors "
          f"twice included: {wall:.0f} s")
    spent = {stage: sum(found[stage] for found in all_found) for stage in ("capture", "page")}
    print(f"bare builds {sum(found['build'] for found in floors):.0f} s, bare runs "
          f"{sum(found['floor'] for found in floors):.0f} s, capture and checks {spent['capture']:.0f} s, "
          f"pages {spent['page']:.0f} s")
    print(f"over bare runs: median {statistics.median(ratios):.1f}, least {min(ratios):.1f}, most {max(ratios):.1f}")
    print("slowest: " + ", ".join(f"{found['family']} {found['capture']:.1f} s" for found in slowest))
    print(f"peak memory of a worker: {max(found['peak'] for found in all_found):.2f} GB")


if __name__ == "__main__":
    main()
