"""`python -m containers.spark master | worker`: a daemon of Spark's standalone cluster.

Read first: these are Spark's own classes out of PySpark's jars, in the foreground; the Java under
them is the one that the driver takes too.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import pyspark

from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.java import find_java
from pipeline.session import java_home

MASTER = "spark://spark-master:7077"
MASTER_PORT, WORKER_PORT = "7077", "7078"
_PACKAGE = "org.apache.spark.deploy"


def command(role: str, host: str, environment: Mapping[str, str]) -> list[str]:
    """What spark-class is told.

    Raises:
        ClusterError: there is no such role.
    """
    if role == "master":
        return [f"{_PACKAGE}.master.Master", "--host", host, "--port", MASTER_PORT]
    if role == "worker":
        offers = (
            *("--cores", environment.get("SPARK_WORKER_CORES") or "1"),
            *("--memory", environment.get("SPARK_WORKER_MEMORY") or "1g"),
        )
        address = ("--host", host, "--port", WORKER_PORT)
        # Executors' files and logs: the root is read-only.
        folder = ("--work-dir", "/tmp/spark-work")  # noqa: S108 - a file system of this container
        return [f"{_PACKAGE}.worker.Worker", *address, *offers, *folder, MASTER]
    raise ClusterError(f"{role} is no part of a Spark cluster: say master or worker.")


def become(told: Sequence[str], java_home: Path) -> NoReturn:
    """Replace this process by Spark's."""
    home = Path(pyspark.__file__).parent
    environment = {**os.environ, "SPARK_HOME": str(home), "JAVA_HOME": str(java_home)}
    program = home / "bin" / "spark-class"
    os.execve(program, [str(program), *told], environment)  # noqa: S606 - no shell


def main(arguments: Sequence[str]) -> int:
    """Become the daemon; return the exit status when that is impossible."""
    try:
        told = command(" ".join(arguments), socket.gethostname(), os.environ)
        become(told, java_home(find_java()))
    except (ClusterError, OSError) as wrong:
        sys.stderr.write(f"{wrong}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
