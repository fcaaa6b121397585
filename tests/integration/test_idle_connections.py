"""Idle connections do not use up the file descriptors of a node."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from bridgehead.cluster import Cluster
from bridgehead.raw_client.blocking import Connection
from bridgehead.raw_client.codec import create_topic_body
from tests.integration.processes import wait_until

LIMIT = 500  # descriptors of the node
IDLE = 700  # connections
# The soft limit is lower: the node raises it.
NODE = ("bash", "-c", f'ulimit -Sn 200; ulimit -Hn {LIMIT}; exec "$0" -m node "$@"', sys.executable)


@pytest.fixture
def cluster(tmp_path: Path, new_chroot: Callable[[], str]) -> Iterator[Cluster]:
    with Cluster(
        brokers=1, data_dir=tmp_path / "c", zookeeper=new_chroot(), node_command=NODE
    ) as running:
        yield running


def connect(cluster: Cluster) -> socket.socket:
    host, _, port = cluster.bootstrap_server(1).rpartition(":")
    return socket.create_connection((host, int(port)), timeout=10)


def test_a_node_serves_others_while_idle_clients_fill_its_descriptors(cluster: Cluster) -> None:
    process = psutil.Process(cluster.brokers[1].pid)
    log = cluster.data_dir / "nodes" / "1" / "node.log"
    with ExitStack() as open_ones, Connection(cluster.bootstrap_server(1)) as earlier:
        assert earlier.call(19, 4, create_topic_body("earlier"))["topics"][0]["errorCode"] == 0
        for _ in range(IDLE):
            open_ones.enter_context(connect(cluster))
        wait_until(process.num_fds, lambda count: count < LIMIT - 100)
        began = time.monotonic()
        with Connection(cluster.bootstrap_server(1)) as late:
            for number in range(20):
                body = create_topic_body(f"late-{number}")
                assert late.call(19, 4, body)["topics"][0]["errorCode"] == 0
        assert time.monotonic() - began < 20
        assert process.num_fds() < LIMIT - 100
    text = log.read_text()
    assert "Too many open files" not in text
    assert "the file descriptors of this process suffice for" in text
    assert len(text) < 100_000
