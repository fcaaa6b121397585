"""`python -m bench.generated_evidence --events N --out DIR [--plant N]`: generate evidence."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.generated_evidence.planted import KINDS
from bench.generated_evidence.world import World

PLANTED = "planted.json"


def generate(
    folder: Path,
    events: int,
    *,
    seed: int = 1,
    plant: int = 0,
    run_id: str = "generated",
    busiest: float | None = None,
) -> World:
    """Write a sealed run of about `events` events below `folder`.

    Each kind of violation is planted `plant` times. `planted.json` beside the run lists them.
    `busiest` is the share of the requests that one of the three brokers receives.
    """
    run = folder / f"run={run_id}"
    shutil.rmtree(run, ignore_errors=True)
    run.mkdir(parents=True)
    world = World(run, seed, run_id, busiest)
    planted = [kind for kind in KINDS for _ in range(plant)]
    world.chance.shuffle(planted)
    every = events // (len(planted) + 1)
    for at, violate in enumerate([*planted, None], start=1):
        while world.events < min(at * every, events):
            world.step()
        if violate is not None:
            world.planted += list(violate(world))
    world.finish()
    (folder / PLANTED).write_text(json.dumps(world.planted, indent=1), encoding="utf-8")
    return world


def main(arguments: Sequence[str] | None = None) -> int:
    """Generate; print the size."""
    parser = argparse.ArgumentParser(prog="bench.generated_evidence", description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plant", type=int, default=0, help="times to plant each violation")
    options = parser.parse_args(arguments)
    world = generate(options.out, options.events, seed=options.seed, plant=options.plant)
    sys.stdout.write(f"{world.events} events, {world.log.zxid - 100} transactions\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
