"""The health check of a container: exits with 0 if the service works, else with 1 and the reason.

A node is healthy if it knows the active controller. A ZooKeeper server is healthy if it serves
requests. A cluster is healthy if it is ready (docs/container.md#when-is-a-cluster-ready). The check
runs every second, so it imports little.
"""

from __future__ import annotations

import os
import socket
import sys

TIMEOUT_S = 2.0


def query(port: int, request: bytes) -> bytes:
    """Return everything that a local server sends until it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as connection:
        connection.sendall(request)
        response = b""
        while part := connection.recv(4096):
            response += part
    return response


def is_healthy_node() -> tuple[bool, str]:
    """Check the response to GET /health on the metrics port."""
    return _get_health(os.environ.get("KAFKA_BRIDGEHEAD_METRICS_LISTENER", "127.0.0.1:9404"))


def is_ready_cluster() -> tuple[bool, str]:
    """Check the response to GET /health of the control API."""
    return _get_health(os.environ.get("BRIDGEHEAD_CONTROL", "127.0.0.1:9091"))


def _get_health(listener: str) -> tuple[bool, str]:
    response = query(int(listener.rpartition(":")[2]), b"GET /health HTTP/1.0\r\n\r\n")
    head, _, body = response.partition(b"\r\n\r\n")
    return b" 200 " in head[:20], body.decode().strip()


def is_healthy_zookeeper() -> tuple[bool, str]:
    """Check the response to `srvr`. A ZooKeeper server without a quorum does not serve."""
    response = query(2181, b"srvr").decode()
    return "Mode: " in response, response.strip().splitlines()[
        -1
    ] if response.strip() else "no answer"


def main() -> int:
    """Print the result; return the exit status."""
    try:
        checks = {"zookeeper": is_healthy_zookeeper, "cluster": is_ready_cluster}
        healthy, report = checks.get("".join(sys.argv[1:]), is_healthy_node)()
    except OSError as error:
        healthy, report = False, str(error)
    sys.stdout.write(report + "\n")
    return 0 if healthy else 1


if __name__ == "__main__":
    sys.exit(main())
