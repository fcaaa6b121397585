"""`python -m bench.pipeline_profile [--evidence DIR]`: the cost of each table.

Reads Spark's own event log. Tables are built one after another. The time without a running job is
therefore spent in the driver: analysis, planning, code generation, listing and committing files.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pipeline.evidence import find_runs, is_small
from pipeline.run import NEEDED, BuiltTable, Pipeline
from pipeline.session import open_session

_OTHERS_BELOW_SHARE: Final = 0.01  # of the total time; cheaper tables share a row


@dataclass(slots=True)
class Cost:
    """The cost of one table: seconds, bytes, and numbers of jobs and rows."""

    wall_s: float = 0.0
    codegen_s: float = 0.0
    jobs: int = 0
    running_s: float = 0.0  # the time in which a job is running
    tasks: int = 0
    task_s: float = 0.0
    rows_in: int = 0
    bytes_in: int = 0
    rows_out: int = 0
    bytes_out: int = 0
    shuffled: int = 0
    spilled: int = 0

    def add(self, other: Cost) -> None:
        """Add another table's cost."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def read_event_log(lines: Iterable[str]) -> dict[str, Cost]:
    """Return the cost of each job group: jobs, tasks, rows and bytes."""
    costs: dict[str, Cost] = defaultdict(Cost)
    group_of_stage: dict[int, str] = {}
    began: dict[int, tuple[str, int]] = {}
    for line in lines:
        event: Mapping[str, Any] = json.loads(line)
        match event["Event"]:
            case "SparkListenerJobStart":
                group = event.get("Properties", {}).get("spark.jobGroup.id", "")
                began[event["Job ID"]] = group, event["Submission Time"]
                group_of_stage.update(dict.fromkeys(event["Stage IDs"], group))
                costs[group].jobs += 1
            case "SparkListenerJobEnd":
                group, since_ms = began[event["Job ID"]]
                costs[group].running_s += (event["Completion Time"] - since_ms) / 1000
            case "SparkListenerTaskEnd":
                _add_task(costs[group_of_stage[event["Stage ID"]]], event.get("Task Metrics") or {})
    return costs


def _add_task(cost: Cost, metrics: Mapping[str, Any]) -> None:
    cost.tasks += 1
    cost.task_s += metrics.get("Executor Run Time", 0) / 1000
    read, written = metrics.get("Input Metrics", {}), metrics.get("Output Metrics", {})
    cost.rows_in += read.get("Records Read", 0)
    cost.bytes_in += read.get("Bytes Read", 0)
    cost.rows_out += written.get("Records Written", 0)
    cost.bytes_out += written.get("Bytes Written", 0)
    cost.shuffled += metrics.get("Shuffle Write Metrics", {}).get("Shuffle Bytes Written", 0)
    cost.spilled += metrics.get("Disk Bytes Spilled", 0)


def table(costs: Mapping[str, Cost]) -> Iterator[str]:
    """Yield a Markdown table with a row for each table of the pipeline, the most expensive first.

    Cheap tables share a row.
    """
    yield (
        "| table | seconds | driver | code generation | jobs | tasks | task time | rows in, out "
        "| bytes in, out | shuffled | spilled |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    total, others, cheap = Cost(), Cost(), 0
    for cost in costs.values():
        total.add(cost)
    for name, cost in sorted(costs.items(), key=lambda item: -item[1].wall_s):
        if cost.wall_s < _OTHERS_BELOW_SHARE * total.wall_s:
            others.add(cost)
            cheap += 1
        else:
            yield _row(name, cost)
    if cheap:
        yield _row(f"{cheap} others", others)
    yield _row("**all**", total)


def _row(name: str, cost: Cost) -> str:
    return (
        f"| {name} | {cost.wall_s:.2f} | {max(cost.wall_s - cost.running_s, 0):.2f} "
        f"| {cost.codegen_s:.2f} | {cost.jobs} | {cost.tasks} | {cost.task_s:.2f} "
        f"| {cost.rows_in:,}, {cost.rows_out:,} | {cost.bytes_in:,}, {cost.bytes_out:,} "
        f"| {cost.shuffled:,} | {cost.spilled:,} |"
    )


def _profile(evidence: Path, folder: Path) -> dict[str, Cost]:
    runs = find_runs(evidence)
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{folder}",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }
    small = is_small(runs)
    began = time.monotonic()
    spark = open_session(small=small, settings=settings, log=folder / "spark.log")
    assert spark.range(1000).filter("id % 2 = 0").count() == 500
    jvm: Any = spark._jvm
    generator = jvm.org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator
    sys.stdout.write(f"Spark and a first small job: {time.monotonic() - began:.1f} s\n\n")
    walls: dict[str, tuple[float, float]] = {}
    last = [time.monotonic(), generator.compileTime() / 1e9]

    def measure(done: BuiltTable) -> None:
        now = [time.monotonic(), generator.compileTime() / 1e9]
        walls[done.name] = now[0] - last[0], now[1] - last[1]
        last[:] = now

    pipeline = Pipeline(spark, runs, folder / "out", threads=1)
    pipeline.make(NEEDED, progress=measure)
    spark.sparkContext.setJobGroup("report", "report")
    pipeline.write_results(pipeline.verdicts())
    measure(BuiltTable("report", 0, 0, 0))
    application = spark.sparkContext.applicationId
    spark.stop()  # also closes the event log
    with (folder / application).open(encoding="utf-8") as log:
        costs = read_event_log(log)
    for name, (wall_s, codegen_s) in walls.items():
        costs[name].wall_s, costs[name].codegen_s = wall_s, codegen_s
    return {name: cost for name, cost in costs.items() if cost.wall_s}


def main(arguments: Sequence[str] | None = None) -> int:
    """Profile and print."""
    parser = argparse.ArgumentParser(prog="bench.pipeline_profile", description=__doc__)
    parser.add_argument("--evidence", type=Path, default=Path(".demo"), help="default: .demo")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="bridgehead-profile-") as name:
        sys.stdout.write("\n".join(table(_profile(options.evidence, Path(name)))) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
