"""`python -m bench.pipeline_scale [--millions 1,4,16] [--rounds 3] [--busiest 0.9]`: its growth.

Each generated history is judged in its own process. Sizes alternate; the results are medians of the
rounds. Prints events per second and core, from JSON to silver and for all tables; the memory of the
JVM; and the exponent of growth: time is proportional to this power of the size (1 is linear). For
comparison, the same process first reads the events with Spark's JSON reader and counts their kinds.
With `--busiest 0.9`, one of the three brokers reads 90 % of the requests.
"""

from __future__ import annotations

import argparse
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
import psutil

began = time.monotonic()
runs = find_runs(Path(sys.argv[1]))
log = Path(sys.argv[2]) / "spark-events"
log.mkdir()
spark = open_session("local[*]", settings={
    "spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file://{log}",
    "spark.eventLog.rolling.enabled": "false", "spark.eventLog.compress": "false"})
spark.range(1000).count()
bare = time.monotonic()
files = [(run.folder / file.path).uri for run in runs for file in run.files(*EVENT_SOURCES)]
lines = spark.read.schema(schemas.line_schema()).json(files)
kinds = lines.groupBy("kind").count().collect()
ready = time.monotonic()
marks = []
pipeline = Pipeline(spark, runs, Path(sys.argv[2]))
pipeline.make(progress=lambda done: marks.append((done.name, time.monotonic() - ready)))
done = time.monotonic() - ready
peak = 0
for child in psutil.Process().children(recursive=True):
    for line in open(f"/proc/{child.pid}/status"):
        if line.startswith("VmHWM"):
            peak = max(peak, int(line.split()[1]) // 1024)
verdicts = {row.property: row.verdict for rows in pipeline.verdicts().values() for row in rows}
silver = dict(marks)["silver/events"]
events = pipeline.read("silver/events").count()
spark.stop()
event_bytes = sum(file.bytes for run in runs for file in run.files(*EVENT_SOURCES))
with next(log.iterdir()).open() as opened:
    shuffled = sum(cost.shuffled for cost in read_event_log(opened).values())
print(json.dumps({"events": events, "silver_s": silver, "all_s": done, "peak_mb": peak,
                  "start_s": bare - began, "bare_s": ready - bare,
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
    found: dict[str, Any] = json.loads(child.stdout.strip().splitlines()[-1])
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.pipeline_scale", description=__doc__)
    parser.add_argument("--millions", default="1,4,16")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--busiest", type=float, help="share of the requests that one broker reads")
    options = parser.parse_args(arguments)
    sizes = [float(each) for each in options.millions.split(",")]
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
                found = _measure(folder / str(size))
                results[size].append(found)
                print(f"{size:g} M: {found}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    medians = {}
    for size in sizes:
        rounds = results[size]
        events = rounds[0]["events"]
        silver = statistics.median(each["silver_s"] for each in rounds)
        whole = statistics.median(each["all_s"] for each in rounds)
        peak = max(each["peak_mb"] for each in rounds)
        medians[size] = whole
        print(
            f"{size:5g} M  JSON to silver {events / silver / cores:9,.0f}/s/core"
            f"  all {events / whole / cores:9,.0f}/s/core  {whole:6.0f} s  JVM {peak} MB"
        )
        bare = statistics.median(each["bare_s"] for each in rounds)
        shuffled = statistics.median(each["shuffled"] for each in rounds)
        print(
            f"         counting kinds {events / bare / cores:9,.0f}/s/core, all tables take "
            f"{whole / bare:.1f} times as long; {shuffled:.2f} bytes shuffled per byte of events"
        )
    if len(sizes) > 1:
        ratio = math.log(medians[sizes[-1]] / medians[sizes[0]]) / math.log(sizes[-1] / sizes[0])
        print(f"growth exponent {ratio:.2f} from {sizes[0]:g} M to {sizes[-1]:g} M")
    return 0


if __name__ == "__main__":
    sys.exit(main())
