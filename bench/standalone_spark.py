"""A standalone Spark cluster on this machine: a master and workers from PySpark's wheel."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyspark

from bridgehead.cluster.java import find_java
from bridgehead.cluster.ports import Ports
from pipeline.session import LOOPBACK, java_home

_START_TIMEOUT_S = 300
_PACKAGE = "org.apache.spark.deploy"


@contextmanager
def standalone_spark(folder: Path, *, workers: int) -> Iterator[str]:
    """Start a master and workers with one core each; yield the master's address when all run."""
    bound = ("--host", LOOPBACK)
    with Ports() as ports, ExitStack() as stack:
        port, web_port = ports.choose(), ports.choose()
        master = f"spark://{LOOPBACK}:{port}"
        stack.enter_context(
            _process(
                folder / "master.log",
                *(f"{_PACKAGE}.master.Master", *bound, "--port", str(port)),
                *("--webui-port", str(web_port)),
            )
        )
        for at in range(workers):
            stack.enter_context(
                _process(
                    folder / f"worker-{at}.log",
                    *(f"{_PACKAGE}.worker.Worker", *bound, "--cores", "1", "--memory", "1g"),
                    *("--webui-port", "0", "--work-dir", str(folder / f"work-{at}"), master),
                )
            )
        deadline = time.monotonic() + _START_TIMEOUT_S
        while _alive(web_port) < workers:
            if time.monotonic() > deadline:
                logs = "".join(log.read_text("utf-8") for log in folder.glob("*.log"))
                raise TimeoutError(f"fewer than {workers} workers registered in time: {logs}")
            time.sleep(0.1)
        yield master


@contextmanager
def _process(log: Path, *arguments: str) -> Iterator[None]:
    program = Path(pyspark.__file__).parent / "bin" / "spark-class"
    environment = {
        **os.environ,
        "JAVA_HOME": str(java_home(find_java())),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_DAEMON_MEMORY": "256m",
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(program), *arguments], stdout=output, stderr=output, env=environment
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _alive(web_port: int) -> int:
    try:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{web_port}/json/", timeout=5) as page:
            status: dict[str, Any] = json.load(page)
    except OSError:
        return 0
    return int(status["aliveworkers"])
