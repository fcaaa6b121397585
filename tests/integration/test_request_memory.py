"""When clients never finish large requests, the memory of all connections stays bounded."""

from __future__ import annotations

import socket
import struct
import threading
import time
from contextlib import ExitStack, suppress

import psutil
import pytest

from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.framing import FRAME_BYTES_MAX
from bridgehead.raw_client.blocking import Connection
from tests.integration.secured import Secured

ATTACKERS = 100
SENT_BYTES = 5 * 1024 * 1024
LIMIT_BYTES = FRAME_BYTES_MAX  # the default for all connections together
# A growing buffer takes an eighth more than its contents. The rest of the factor allows for bytes
# that clients sent before the node stopped reading, and for the node's own growth.
OVERHEAD = 1.5
RESPONSE_S = 0.1
WITHIN_S = 60
API_VERSIONS = 18
CLOSED, USED = "connections_closed_for_memory_count", "socketserver_memorypoolused"


def begin_request(client: socket.socket) -> None:
    """Announce a frame of the largest length. Send 5 MiB, or less if the connection is closed."""
    with suppress(OSError):
        client.sendall(struct.pack(">i", FRAME_BYTES_MAX) + bytes(SENT_BYTES))


def is_closed(client: socket.socket) -> bool:
    try:
        return client.recv(1, socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


@pytest.mark.long
def test_unfinished_requests_take_no_more_memory_than_the_limit() -> None:
    """The broker closes idle connections, one after another, until memory is free.

    Meanwhile it serves a normal client.
    """
    with Cluster(brokers=1) as cluster, ExitStack() as opened:
        address = cluster.bootstrap_server(1)
        host, _, port = address.rpartition(":")
        process = psutil.Process(cluster.brokers[1].pid)
        normal = opened.enter_context(Connection(address))
        attackers = [
            opened.enter_context(socket.create_connection((host, int(port))))
            for _ in range(ATTACKERS)
        ]
        before = largest = process.memory_info().rss
        senders = [
            threading.Thread(target=begin_request, args=(attacker,)) for attacker in attackers
        ]
        for sender in senders:
            sender.start()
        for sender in senders:
            opened.callback(sender.join)
        opened.callback(cluster.stop)  # ends the senders
        times = []
        began = time.monotonic()
        while any(thread.is_alive() for thread in senders) or not any(map(is_closed, attackers)):
            sent = time.monotonic()
            normal.call(API_VERSIONS, 0, {})
            times.append(time.monotonic() - sent)
            largest = max(largest, process.memory_info().rss)
            assert sent - began < WITHIN_S, (
                f"clients still send after {WITHIN_S} s, or none was closed"
            )
            time.sleep(0.01)
        closed = sum(map(is_closed, attackers))
        assert largest - before < LIMIT_BYTES * OVERHEAD
        # Only nine of ten responses must be fast: other tests may use the same processors.
        assert sorted(times)[len(times) * 9 // 10] < RESPONSE_S
        assert Secured.metric_of(cluster, 1, CLOSED) >= closed
        assert Secured.metric_of(cluster, 1, USED) < LIMIT_BYTES + FRAME_BYTES_MAX
        log = (cluster.data_dir / "nodes" / "1" / "node.log").read_text()
        assert "closed in the middle of a request" in log
        assert "Traceback" not in log
