"""`python -m pipeline.generated --events N --out DIR [--plant N]`: a history to try things on."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from pipeline.generated.planted import KINDS
from pipeline.generated.world import World

PLANTED = "planted.json"


def generate(folder: Path, events: int, *, seed: int = 1, plant: int = 0) -> World:
    """Write a sealed run of about so many events below `folder`.

    Each kind of breach is planted `plant` times; what must be found stands in `planted.json` beside
    the run.
    """
    run = folder / "run=generated"
    shutil.rmtree(run, ignore_errors=True)
    run.mkdir(parents=True)
    world = World(run, seed)
    breaches = [kind for kind in KINDS for _ in range(plant)]
    world.chance.shuffle(breaches)
    every = events // (len(breaches) + 1)
    for at, breach in enumerate([*breaches, None], start=1):
        while world.events < min(at * every, events):
            world.step()
        if breach is not None:
            world.planted += list(breach(world))
    world.finish()
    (folder / PLANTED).write_text(json.dumps(world.planted, indent=1), encoding="utf-8")
    return world


def main(arguments: Sequence[str] | None = None) -> int:
    """Generate; say what was made."""
    parser = argparse.ArgumentParser(prog="pipeline.generated", description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plant", type=int, default=0, help="how often each kind of breach")
    options = parser.parse_args(arguments)
    world = generate(options.out, options.events, seed=options.seed, plant=options.plant)
    sys.stdout.write(f"{world.events} events, {world.log.zxid - 100} transactions\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
