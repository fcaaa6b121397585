"""Starts the Java process of Spark's driver.

PySpark starts it with a `preexec_fn`, for which Python must fork. If gRPC runs in the Python
process, a signal kills one in ten of the forked processes (JAVA_GATEWAY_EXITED). So we start Java
ourselves, without `preexec_fn`.
"""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final

import pyspark

_START_TIMEOUT_S: Final = 300
_POLL_S: Final = 0.05
_started: list[subprocess.Popen[bytes]] = []  # kept, because Java ends when its input is closed


class GatewayError(Exception):
    """Java could not be started. The message is one sentence."""


@contextlib.contextmanager
def gateway(settings: Mapping[str, str], log: Path | None = None) -> Iterator[None]:
    """Let PySpark connect to our Java, which runs until this process ends.

    Java's output goes to the file `log`, by default to our own output.

    Raises:
        GatewayError: Java exited, or did not start within five minutes.
    """
    if _started or "PYSPARK_GATEWAY_PORT" in os.environ:
        yield
        return
    with contextlib.ExitStack() as stack:
        output = None if log is None else stack.enter_context(log.open("ab"))
        port, secret = _start(settings, output, "above" if log is None else f"in {log}")
    # PySpark reads these variables. Other child processes must not inherit them.
    os.environ.update(PYSPARK_GATEWAY_PORT=str(port), PYSPARK_GATEWAY_SECRET=secret)
    try:
        yield
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]


def _start(settings: Mapping[str, str], output: BinaryIO | None, output_is: str) -> tuple[int, str]:
    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    confs = [f"--conf={name}={value}" for name, value in settings.items()]
    with tempfile.TemporaryDirectory(prefix="bridgehead-gateway-") as folder:
        connection = Path(folder) / "connection"
        program = home / "bin" / "spark-submit"
        try:
            java = subprocess.Popen(
                [str(program), *confs, "pyspark-shell"],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env={
                    **os.environ,
                    "SPARK_CONNECT_MODE": "0",
                    # For the first, short Java process, which composes the command of the second.
                    "SPARK_LAUNCHER_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
                    "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection),
                },
                start_new_session=True,  # Ctrl-C must not end Java first.
            )
        except OSError as error:
            raise GatewayError(
                f"{program} cannot be started ({error.strerror}): install PySpark again."
            ) from error
        _started.append(java)
        deadline_s = time.monotonic() + _START_TIMEOUT_S
        # Java writes a temporary file and renames it when it is complete.
        while not connection.exists():
            if java.poll() is not None or time.monotonic() > deadline_s:
                _started.remove(java)
                java.kill()
                raise GatewayError(
                    f"Java did not start Spark and ended with {java.wait()}: see its output "
                    f"{output_is}."
                )
            time.sleep(_POLL_S)
        port, length = struct.unpack(">ii", connection.read_bytes()[:8])
        return port, connection.read_bytes()[8 : 8 + length].decode()
