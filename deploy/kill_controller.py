"""`python -m deploy.kill_controller`: kills the container of the active controller.

The program asks each broker's /health until one names the active controller. If no broker names it,
nothing is killed and the exit code is 4. (The shell command `docker compose kill $(...)` would kill
every container if the command in its parentheses printed nothing.)
"""

from __future__ import annotations

import http.client
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from typing import Final

from bridgehead.exit_codes import ExitCode

_BROKERS: Final = (1, 2, 3)
_FIRST_METRICS_PORT: Final = 9404
_TIMEOUT_S: Final = 3.0
_ACTIVE: Final = re.compile(r"broker (\d+) is controller")


def metrics_ports(environment: Mapping[str, str]) -> list[int]:
    """Return the published metrics ports of the project's brokers."""
    names = (f"BRIDGEHEAD_METRICS_PORT_{broker}" for broker in _BROKERS)
    return [
        int(environment.get(name, _FIRST_METRICS_PORT + index)) for index, name in enumerate(names)
    ]


def active_controller(health: str) -> str | None:
    """Return the compose service that /health names as the active controller."""
    match = _ACTIVE.search(health)
    return match and f"kafka-{match[1]}"


def main() -> int:
    """Kill the service of the active controller; return the exit code."""
    for port in metrics_ports(os.environ):
        service = active_controller(_health(port))
        if service is not None:
            return subprocess.run(["docker", "compose", "kill", service], check=False).returncode
    print(
        "No broker names an active controller: nothing was killed. Is the project up "
        "(`docker compose ps`)? After a failover, wait for the session timeout and run this again.",
        file=sys.stderr,
    )
    return ExitCode.CANNOT_RUN


def _health(port: int) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", "/health")
        response = connection.getresponse()
        return response.read().decode() if response.status == http.client.OK else ""
    except (OSError, http.client.HTTPException):
        return ""
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main())
