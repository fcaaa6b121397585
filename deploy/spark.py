"""`python -m deploy.spark master | worker`: a daemon of Spark's standalone cluster.

The daemon runs in the foreground. It uses the classes in PySpark's jars and the same Java as the
driver.
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
from bridgehead.exit_codes import ExitCode
from pipeline.session import java_home

MASTER = "spark://spark-master:7077"
MASTER_PORT, WORKER_PORT = "7077", "7078"
_PACKAGE = "org.apache.spark.deploy"


def command(role: str, host: str, environment: Mapping[str, str]) -> list[str]:
    """Return the arguments for spark-class.

    Raises:
        ClusterError: the role is unknown.
    """
    if role == "master":
        return [f"{_PACKAGE}.master.Master", "--host", host, "--port", MASTER_PORT]
    if role == "worker":
        offers = (
            *("--cores", environment.get("SPARK_WORKER_CORES") or "1"),
            *("--memory", environment.get("SPARK_WORKER_MEMORY") or "1g"),
        )
        address = ("--host", host, "--port", WORKER_PORT)
        # Executors write files and logs here, because the root file system is read-only.
        folder = ("--work-dir", "/tmp/spark-work")  # noqa: S108 - private to this container
        return [f"{_PACKAGE}.worker.Worker", *address, *offers, *folder, MASTER]
    raise ClusterError(f"{role!r} is not a role in a Spark cluster: use master or worker.")


def become(arguments: Sequence[str], java_home: Path) -> NoReturn:
    """Replace this process with Spark."""
    home = Path(pyspark.__file__).parent
    environment = {**os.environ, "SPARK_HOME": str(home), "JAVA_HOME": str(java_home)}
    program = home / "bin" / "spark-class"
    os.execve(program, [str(program), *arguments], environment)  # noqa: S606 - no shell


def main(arguments: Sequence[str]) -> int:
    """Become the daemon. Return the exit status only if that fails."""
    try:
        daemon = command(" ".join(arguments), socket.gethostname(), os.environ)
        become(daemon, java_home(find_java()))
    except (ClusterError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return ExitCode.CANNOT_RUN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
