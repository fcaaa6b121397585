"""What a container's health check runs: exit 0 when this service does its work, else 1 and why.

A node: some controller is in office, and this node knows it. ZooKeeper: it serves requests.
It runs every second: the standard library only, and little of it.
"""

from __future__ import annotations

import os
import socket
import sys

TIMEOUT_S = 2.0


def ask(port: int, question: bytes) -> bytes:
    """What a server on this machine says, until it closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as connection:
        connection.sendall(question)
        answer = b""
        while part := connection.recv(4096):
            answer += part
    return answer


def is_healthy_node() -> tuple[bool, str]:
    """GET /health of the metrics port."""
    listener = os.environ.get("KAFKA_BRIDGEHEAD_METRICS_LISTENER", "127.0.0.1:9404")
    answer = ask(int(listener.rpartition(":")[2]), b"GET /health HTTP/1.0\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    return b" 200 " in head[:20], body.decode().strip()


def is_healthy_zookeeper() -> tuple[bool, str]:
    """The four-letter word `srvr`: a member without a quorum says that it does not serve."""
    answer = ask(2181, b"srvr").decode()
    return "Mode: " in answer, answer.strip().splitlines()[-1] if answer.strip() else "no answer"


def main() -> int:
    """Ask, say, and return the exit status."""
    try:
        check = is_healthy_zookeeper if sys.argv[1:] == ["zookeeper"] else is_healthy_node
        healthy, why = check()
    except OSError as error:
        healthy, why = False, str(error)
    sys.stdout.write(why + "\n")
    return 0 if healthy else 1


if __name__ == "__main__":
    sys.exit(main())
