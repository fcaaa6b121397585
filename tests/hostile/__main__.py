"""Start a cluster, attack it with all attempts and mutated frames, and print a table.

python -m tests.hostile [--frames N] [--seed N]
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.hostile.campaign import run, table
from tests.hostile.target import started
from tests.hostile.zookeeper import attack_zookeeper


def main() -> int:
    """Return 0 if there is no finding."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--folder", type=Path, help="the folder of the cluster's files, to keep")
    args = parser.parse_args()
    print(f"seed {args.seed}, {args.frames} frames", flush=True)
    with tempfile.TemporaryDirectory(prefix="hostile-") as temporary:
        folder = args.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        with started(folder) as target:
            result = run(target, args.frames, args.seed)
        print(table(result), flush=True)
        families, findings = attack_zookeeper(folder / "zookeeper")
    print(f"attacks on ZooKeeper: {', '.join(families)}")
    for finding in findings:
        print(f"FINDING {finding}")
    print(f"{len(findings)} findings")
    return 1 if result.findings or findings else 0


if __name__ == "__main__":
    sys.exit(main())
