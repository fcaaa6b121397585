"""Time of `pipeline run` on small evidence, compared with starting Spark for one small job.

Why: most runs are small, and nearly all of their time is fixed cost. Each measurement starts a new
process with its own Java; the two kinds alternate. At the end, one application judges ten runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.generated_evidence.__main__ import PLANTED, generate
from bench.report import Plan, median, progress, spread
from bridgehead.cluster.java import find_java
from pipeline.session import ARCHIVES, class_archive, java_home

DEMO: Final = Path(".demo")
_EVENTS: Final = 2_500
_RUNS: Final = 10
_ARCHIVE_S: Final = 300
# PySpark's own defaults.
_BARE: Final = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[*]").getOrCreate()
assert spark.range(1000).filter("id % 2 = 0").count() == 500
spark.stop()
"""


def _seconds(*arguments: str) -> tuple[float, float]:
    """Run Python; return the seconds until its first line of output, and until its end."""
    began = time.monotonic()
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            [sys.executable, *arguments],
            env={**os.environ, "JAVA_HOME": str(java_home(find_java()))},
            stdout=subprocess.PIPE,
            stderr=errors,
        ) as process,
    ):
        assert process.stdout is not None
        process.stdout.readline()
        first = time.monotonic() - began
        process.stdout.read()
        if process.wait() != 0:
            errors.seek(0)
            ended = f"{arguments[:4]} ended with {process.returncode}"
            raise RuntimeError(f"{ended}: {errors.read()[-2000:]}")
        return first, time.monotonic() - began


def _bare() -> float:
    return _seconds("-c", _BARE)[1]


def _pipeline(evidence: Path, out: Path) -> tuple[float, float]:
    """Return the seconds until the first verdict, which is the first output, and until the end."""
    return _seconds("-m", "pipeline", "run", "--evidence", str(evidence), "--out", str(out))


def _wait_for_archive() -> None:
    """Wait until the Java process of an earlier run has written its archive of classes."""
    deadline = time.monotonic() + _ARCHIVE_S
    while "ArchiveClassesAtExit" in class_archive(find_java(), ARCHIVES):
        if time.monotonic() > deadline:
            raise TimeoutError(f"no archive of classes in {ARCHIVES} after {_ARCHIVE_S} s")
        time.sleep(0.2)


def _evidence(folder: Path) -> tuple[str, Path]:
    """Return the evidence that `make demo` left, or generated evidence of the same size."""
    if (DEMO / "evidence").is_dir():
        return "the demo's evidence", DEMO
    generate(folder / "one", _EVENTS)
    (folder / "one" / PLANTED).unlink()
    return f"{_EVENTS:,} generated events", folder / "one"


def run(plan: Plan) -> list[str]:
    """Measure in turns: a bare start, then the pipeline on one run."""
    bare, verdicts, one = [], [], []
    with tempfile.TemporaryDirectory(prefix="bridgehead-bench-") as name:
        folder = Path(name)
        label, evidence = _evidence(folder)
        progress("pipeline: a run that is not measured, after which Java archives its classes")
        _pipeline(evidence, folder / "out")
        _wait_for_archive()
        for at in range(plan.rounds(3)):
            progress(f"pipeline: round {at + 1}")
            bare.append(_bare())
            verdict, whole = _pipeline(evidence, folder / f"out-{at}")
            verdicts.append(verdict)
            one.append(whole)
        for at in range(_RUNS):
            generate(folder / "ten", _EVENTS, seed=at + 1, run_id=f"generated-{at}")
        _, ten = _pipeline(folder / "ten", folder / "out-ten")
    return [
        f"{median(verdicts) / median(bare):.2f} x a bare Spark start until the verdicts: {label}",
        f"{median(one) / median(bare):.2f} x a bare Spark start with one small job: {label}",
        f"{ten / median(bare):.2f} x a bare start: {_RUNS} runs of {_EVENTS:,} events in one call",
        f"bare start {spread(bare, 's', 1)}; one run {spread(one, 's', 1)}; ten {ten:.1f} s",
    ]
