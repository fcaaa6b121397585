"""`python -m bench [--only NAME] [--quick]`: runs the benchmarks one after another.

Results go to standard output, progress to standard error. A slow result is not an error.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from bench import (
    admin_clients,
    admin_writes,
    bulk_creates,
    bulk_deletes,
    default_client,
    failover,
    first_start,
    forwarding,
    growth,
    loading,
    pauses,
    pipeline_start,
    policies,
    real_kafka,
    records,
    small_creates,
    startup,
    ui_growth,
)
from bench.report import Plan, progress, record

BENCHMARKS: dict[str, Callable[[Plan], list[str]]] = {
    "forwarding": forwarding.run,
    "small-creates": small_creates.run,
    "admin-clients": admin_clients.run,
    "admin-writes": admin_writes.run,
    "bulk-creates": bulk_creates.run,
    "bulk-deletes": bulk_deletes.run,
    "startup": startup.run,
    "first-start": first_start.run,
    "failover": failover.run,
    "growth": growth.run,
    "loading": loading.run,
    "pipeline-start": pipeline_start.run,
    "records": records.run,
    "default-client": default_client.run,
    "policies": policies.run,
    "pauses": pauses.run,
    "ui-growth": ui_growth.run,
    "real-kafka": real_kafka.run,
}


def main() -> None:
    """Run the selected benchmarks."""
    parser = argparse.ArgumentParser(prog="bench", description="Runs the benchmarks.")
    parser.add_argument(
        "--only", choices=BENCHMARKS, action="append", help="one benchmark; repeatable"
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer rounds; a large state is smaller or left out"
    )
    parser.add_argument(
        "--record", action="store_true", help="keep the results for docs/benchmarks.md"
    )
    options = parser.parse_args()
    plan = Plan(quick=options.quick)
    for name in options.only or BENCHMARKS:
        progress(name)
        began = time.monotonic()
        lines = BENCHMARKS[name](plan)
        print(f"{name} ({time.monotonic() - began:.0f} s)", flush=True)
        for line in lines:
            print(f"  {line}", flush=True)
        if options.record:
            quick = " --quick" if options.quick else ""
            record(name, f'make bench ARGS="--only {name}{quick}"', lines)


if __name__ == "__main__":
    main()
