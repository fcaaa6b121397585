"""The pipeline on a standalone cluster: a master and two workers out of the PySpark wheel.

Each is a process of its own, on loopback; our code goes to them as `--py-files` would send it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from bridgehead.cluster.java import find_java
from bridgehead.cluster.plan import Ports
from pipeline.generated.__main__ import generate
from pipeline.session import ROOT

pytestmark = pytest.mark.timeout(900)

_DIGESTS = """
import json, sys
from pathlib import Path
from pipeline.evidence import find_runs
from pipeline.folders import digests
from pipeline.run import TABLES, Pipeline
from pipeline.session import SMALL, open_session

master, evidence, out = sys.argv[1:]
settings = {**SMALL, "spark.executor.memory": "1g", "spark.cores.max": "2",
            "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
spark = open_session(master, memory="1g", settings=settings)
pipeline = Pipeline(spark, find_runs(Path(evidence)), Path(out))
tables = [t for t in TABLES if t.name.split("/")[0] in ("bronze", "silver")]
pipeline.make(tables)
executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
where = spark.sparkContext.parallelize(range(2), 2).map(
    lambda _: __import__("pipeline").__file__).collect()
print(json.dumps({"executors": executors, "where": where, "digests": {
    t.name: digests(pipeline.read(t.name)) for t in tables if t.name.startswith("silver/")}}))
"""


def _start(folder: Path, name: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start one of Spark's own daemons, as its scripts would."""
    jars = Path(pyspark.__file__).parent / "jars"
    command = [
        *(str(find_java()), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*"),
        *(f"org.apache.spark.deploy.{name}", *arguments),
    ]
    with (folder / f"{name}-{len(list(folder.iterdir()))}.log").open("wb") as log:
        return subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            cwd=folder,
            env={**os.environ, "SPARK_HOME": str(jars.parent), "SPARK_LOCAL_IP": "127.0.0.1"},
        )


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """A master that two workers have joined; its address."""
    folder = tmp_path / "spark"
    folder.mkdir()
    ports = Ports()
    port, web = ports.choose(), ports.choose()
    own = ("--host", "127.0.0.1")
    address = f"spark://127.0.0.1:{port}"
    processes = [
        _start(folder, "master.Master", *own, "--port", str(port), "--webui-port", str(web))
    ]
    try:
        _wait_for_workers(web, 0)
        for number in (1, 2):
            options = (*own, "--webui-port", "0", "--cores", "1", "--memory", "1g")
            work = ("--work-dir", str(folder / f"work-{number}"))
            processes.append(_start(folder, "worker.Worker", *options, *work, address))
        _wait_for_workers(web, 2)
        yield address
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(30)


def _wait_for_workers(web: int, count: int) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{web}/json/", timeout=5) as answer:
                if json.load(answer)["aliveworkers"] == count:
                    return
        except (urllib.error.URLError, ConnectionError, json.JSONDecodeError):
            pass
        time.sleep(0.2)
    raise AssertionError(f"no master with {count} workers within a minute")


def _run(master: str, evidence: Path, out: Path, folder: Path) -> dict[str, object]:
    child = subprocess.run(
        [sys.executable, "-c", _DIGESTS, master, str(evidence), str(out)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
        timeout=240,
    )
    assert child.returncode == 0, child.stderr[-3000:]
    found: dict[str, object] = json.loads(child.stdout.strip().splitlines()[-1])
    return found


def test_a_cluster_makes_the_same_tables_as_one_process(master: str, tmp_path: Path) -> None:
    """Two executors, each with our code from the archive, and the same digests of every table."""
    generate(tmp_path / "evidence", 3_000, plant=1)
    (tmp_path / "empty").mkdir()
    far = _run(master, tmp_path / "evidence", tmp_path / "far", tmp_path / "empty")
    near = _run("local[2]", tmp_path / "evidence", tmp_path / "near", tmp_path / "empty")
    assert far["executors"] == 2
    assert far["digests"] == near["digests"]
    assert len(far["digests"]) > 8  # type: ignore[arg-type]
    archives = far["where"]
    assert isinstance(archives, list)
    assert all("bridgehead_pipeline.zip" in each for each in archives), archives
