"""How the pipeline's time grows with the number of events.

    python -m bench.pipeline_scale [--millions 1,4,16] [--rounds 3] [--busiest 0.9]

Each generated history is judged in its own process. Sizes alternate; the results are medians of the
rounds. Prints the events per second and core, from JSON to the silver tables and for all tables;
the highest memory of the JVM; and how the time grows from each size to the next, as an exponent of
the size (1 is linear growth). For comparison, the same process first reads the events with Spark's
JSON reader and counts the events of each kind. On a busy machine the JVM's processor time is more
reliable than the elapsed time.
With `--busiest 0.9`, one of the three brokers receives 90 % of the requests.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.generated_evidence.__main__ import generate

_CHILD = """
import json, sys, time
from pathlib import Path
from bench.pipeline_profile import read_event_log
from event_log.evidence import EVENT_SOURCES
from pipeline import schemas
from pipeline.evidence import find_runs
from pipeline.run import Pipeline
from pipeline.session import open_session
from pipeline.silver.events import OF_KINDS
import psutil

def processor_s():
    times = [child.cpu_times() for child in psutil.Process().children(recursive=True)]
    return sum(measured.user + measured.system for measured in times)

began = time.monotonic()
runs = find_runs(Path(sys.argv[1]))
log = Path(sys.argv[2]) / "spark-events"
log.mkdir()
spark = open_session("local[*]", settings={
    "spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file://{log}",
    "spark.eventLog.rolling.enabled": "false", "spark.eventLog.compress": "false"})
spark.range(1000).count()
bare, bare_cpu = time.monotonic(), processor_s()
files = [(run.folder / file.path).uri for run in runs for file in run.files(*EVENT_SOURCES)]
lines = spark.read.schema(schemas.line_schema()).json(files)
kinds = lines.groupBy("kind").count().collect()
ready, ready_cpu = time.monotonic(), processor_s()
marks = []
pipeline = Pipeline(spark, runs, Path(sys.argv[2]))
pipeline.make(progress=lambda done: marks.append((done.name, time.monotonic() - ready)))
done, done_cpu = time.monotonic() - ready, processor_s() - ready_cpu
peak = 0
for child in psutil.Process().children(recursive=True):
    for line in open(f"/proc/{child.pid}/status"):
        if line.startswith("VmHWM"):
            peak = max(peak, int(line.split()[1]) // 1024)
verdicts = {row.property: row.verdict for rows in pipeline.verdicts().values() for row in rows}
of_kinds = {table.name for table in OF_KINDS}
silver = max(at for name, at in marks if name in of_kinds)
events = pipeline.read("silver/events").count()
spark.stop()
event_bytes = sum(file.bytes for run in runs for file in run.files(*EVENT_SOURCES))
with next(log.iterdir()).open() as opened:
    shuffled = sum(cost.shuffled for cost in read_event_log(opened).values())
print(json.dumps({"events": events, "silver_s": silver, "all_s": done, "peak_mb": peak,
                  "start_s": bare - began, "bare_s": ready - bare,
                  "bare_cpu_s": ready_cpu - bare_cpu, "all_cpu_s": done_cpu,
                  "shuffled": shuffled / event_bytes, "bad": [k for k, v in verdicts.items()
                  if v not in ("PASS", "NODATA")]}))
"""


def _measure(evidence: Path) -> dict[str, Any]:
    """Judge one history in a new process; return its measurements."""
    out = Path(tempfile.mkdtemp(prefix="bridgehead-bench-"))
    try:
        child = subprocess.run(
            [sys.executable, "-c", _CHILD, str(evidence), str(out)],
            stdout=subprocess.PIPE,  # Errors go to our own stderr.
            text=True,
            check=True,
        )
    finally:
        shutil.rmtree(out, ignore_errors=True)
    figures: dict[str, Any] = json.loads(child.stdout.strip().splitlines()[-1])
    return figures


def _medians(rounds: Sequence[dict[str, Any]]) -> dict[str, float]:
    numbers = [key for key, value in rounds[0].items() if isinstance(value, int | float)]
    return {key: statistics.median(round_[key] for round_ in rounds) for key in numbers}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.pipeline_scale", description=__doc__)
    parser.add_argument("--millions", default="1,4,16")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--busiest", type=float, help="share of the requests to one broker")
    options = parser.parse_args(arguments)
    sizes = [float(text) for text in options.millions.split(",")]
    cores = os.cpu_count() or 1
    folder = Path(tempfile.mkdtemp(prefix="bridgehead-bench-"))
    results: dict[float, list[dict[str, Any]]] = {size: [] for size in sizes}
    try:
        for size in sizes:
            began = time.monotonic()
            generate(folder / str(size), int(size * 1e6), busiest=options.busiest)
            print(f"{size:g} M events generated in {time.monotonic() - began:.0f} s", flush=True)
        for _ in range(options.rounds):
            for size in sizes:
                figures = _measure(folder / str(size))
                results[size].append(figures)
                print(f"{size:g} M: {figures}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for size in sizes:
        median = _medians(results[size])
        events, whole = median["events"], median["all_s"]
        peak = max(result["peak_mb"] for result in results[size])
        print(
            f"{size:5g} M  JSON to silver {events / median['silver_s'] / cores:9,.0f}/s/core"
            f"  all {events / whole / cores:9,.0f}/s/core  {whole:6.0f} s  JVM {peak} MB"
        )
        print(
            f"         counting kinds {events / median['bare_s'] / cores:9,.0f}/s/core, all tables "
            f"take {whole / median['bare_s']:.1f} times as long, "
            f"{median['all_cpu_s'] / median['bare_cpu_s']:.1f} times the processor time "
            f"({median['all_cpu_s']:.0f} s); {median['shuffled']:.2f} bytes shuffled per byte"
        )
    for smaller, larger in itertools.pairwise(sizes):
        before, after = _medians(results[smaller]), _medians(results[larger])
        elapsed, processor = (
            math.log(after[key] / before[key]) / math.log(larger / smaller)
            for key in ("all_s", "all_cpu_s")
        )
        print(
            f"growth exponent from {smaller:g} M to {larger:g} M: "
            f"time {elapsed:.2f}, processor time {processor:.2f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
