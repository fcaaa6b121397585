"""Start a cluster, attack it with all attempts and mutated frames, then run the other families.

python -m tests.hostile [--frames N] [--seed N] [--only FAMILY,...]
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.hostile.campaign import run, table
from tests.hostile.families import FAMILIES
from tests.hostile.family import Family, Report
from tests.hostile.target import started

FRAMES = "frames"  # the attempts and mutated frames, as a name for --only


def main() -> int:
    """Return 0 if there is no finding."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--folder", type=Path, help="the folder of the cluster's files, to keep")
    names = [FRAMES, *(family.name for family in FAMILIES)]
    parser.add_argument("--only", default=",".join(names), help=f"some of: {', '.join(names)}")
    args = parser.parse_args()
    chosen = args.only.split(",")
    if unknown := set(chosen) - set(names):
        parser.error(f"there is no family {', '.join(sorted(unknown))}")
    findings = _attack_frames(args) if FRAMES in chosen else 0
    for family in FAMILIES:
        if family.name in chosen:
            findings += run_family(family)
    return 1 if findings else 0


def _attack_frames(args: argparse.Namespace) -> int:
    print(f"seed {args.seed}, {args.frames} frames", flush=True)
    with tempfile.TemporaryDirectory(prefix="hostile-") as temporary:
        folder = args.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        with started(folder) as target:
            result = run(target, args.frames, args.seed)
    print(table(result), flush=True)
    return len(result.findings)


def run_family(family: Family) -> int:
    """Run one family in a new folder and print its row; return the number of findings."""
    report, began = Report(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hostile-") as temporary:
        try:
            family.attack(Path(temporary), report)
        except Exception as error:
            report.findings.append(f"the attack raised {type(error).__name__}: {error}")
    wrong = len(report.findings)
    seconds = time.monotonic() - began
    print(f"{family.name:38} {report.tries:>8}  {wrong} findings, {seconds:.0f} s")
    for line in report.figures:
        print(f"  {line}")
    for finding in report.findings:
        print(f"  FINDING {finding!r}")
    sys.stdout.flush()
    return wrong


if __name__ == "__main__":
    sys.exit(main())
