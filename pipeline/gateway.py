"""The Java that Spark's driver is, started by us.

PySpark starts it with a function to run in the child before the program (`preexec_fn`), which
makes Python fork as if the child were to go on. With gRPC in the process one such child in ten
dies of a signal (JAVA_GATEWAY_EXITED). Started plainly, none does; and what Java says when it
cannot start can be told.
"""

from __future__ import annotations

import os
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyspark

_START_TIMEOUT_S: Final = 300  # A busy machine; nobody waits longer for nothing.
_POLL_S: Final = 0.05
_started: list[subprocess.Popen[bytes]] = []  # Java ends when its standard input is closed.


class GatewayError(Exception):
    """Java could not be started. Its text is one sentence."""


@contextmanager
def gateway(settings: Mapping[str, str]) -> Iterator[None]:
    """Within, PySpark finds a Java to connect to. The first one serves until this process ends.

    Raises:
        GatewayError: Java ended, or said nothing for five minutes.
    """
    if _started or "PYSPARK_GATEWAY_PORT" in os.environ:
        yield
        return
    port, secret = _start(settings)
    # Only for PySpark, now: a process that is started later shall not find our Java.
    os.environ.update(PYSPARK_GATEWAY_PORT=str(port), PYSPARK_GATEWAY_SECRET=secret)
    try:
        yield
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]


def _start(settings: Mapping[str, str]) -> tuple[int, str]:
    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    confs = [f"--conf={name}={value}" for name, value in settings.items()]
    with tempfile.TemporaryDirectory(prefix="bridgehead-gateway-") as folder:
        told = Path(folder) / "connection"
        program = home / "bin" / "spark-submit"
        try:
            java = subprocess.Popen(
                [str(program), *confs, "pyspark-shell"],
                stdin=subprocess.PIPE,
                env={
                    **os.environ,
                    "SPARK_CONNECT_MODE": "0",
                    "_PYSPARK_DRIVER_CONN_INFO_PATH": str(told),
                },
                start_new_session=True,  # Ctrl-C is ours to answer.
            )
        except OSError as wrong:
            raise GatewayError(
                f"{program} cannot be started ({wrong.strerror}): install PySpark again."
            ) from wrong
        _started.append(java)
        deadline_s = time.monotonic() + _START_TIMEOUT_S
        while not told.exists():  # It appears whole, by a rename.
            if java.poll() is not None or time.monotonic() > deadline_s:
                _started.remove(java)
                java.kill()
                raise GatewayError(
                    f"Java ended with {java.wait()} before Spark was up: what it says stands above."
                )
            time.sleep(_POLL_S)
        port, length = struct.unpack(">ii", told.read_bytes()[:8])
        return port, told.read_bytes()[8 : 8 + length].decode()
