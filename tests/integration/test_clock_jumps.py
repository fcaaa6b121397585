"""The cluster serves requests while the wall clock of one process is an hour off.

Tokens expire as in Kafka (docs/kafka/delegation-tokens.md). The controller computes the time of
expiry with its own clock. When a client logs in, the broker compares that time with its own clock.
"""

from __future__ import annotations

import json
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from bridgehead.application import module_command
from bridgehead.cluster import Cluster
from bridgehead.cluster.java import find_java
from bridgehead.cluster.properties import parse_properties
from bridgehead.raw_client.blocking import Connection
from bridgehead.raw_client.codec import create_topics, decode_message
from chaos.clocked_node import libfaketime, set_clock
from judge.evidence.run_lookup import read_run
from judge.history import History
from judge.verdicts import Verdict, judge, worst
from node.assembly.authorization import AUTHORIZER_CLASS
from tests.integration.login_clients import Client
from tests.integration.processes import wait_until

RECORDINGS = Path(__file__).parents[1] / "recordings"
BROKERS = CONTROLLER, BROKER, THIRD = (1, 2, 3)
ZOOKEEPER = "zookeeper"
HOUR_S = 3600
HALF_AN_HOUR_MS = 30 * 60 * 1000
RESPONDED_WITHIN_S = 10.0
SEEN_WITHIN_S = 120.0  # longer than any delay in the test, shorter than the jump


class Clocks:
    """Sets the clock offsets of the nodes and of ZooKeeper."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in (*BROKERS, ZOOKEEPER):
            self.set(name, 0)

    @property
    def options(self) -> tuple[str, ...]:
        return ("--clocks", str(self.folder), "--libfaketime", str(libfaketime()))

    def set(self, name: int | str, offset_s: int) -> None:
        set_clock(self.folder, name, offset_s)


@pytest.fixture
def clocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clocks:
    library = libfaketime()
    if library is None:
        pytest.skip("NOT TESTED: libfaketime is not installed (apt-get install faketime)")
    folder = tmp_path / "clocks"
    folder.mkdir()
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        "#!/bin/sh\n"
        f"export LD_PRELOAD={library} FAKETIME_TIMESTAMP_FILE={folder}/{ZOOKEEPER}\n"
        "export FAKETIME_DONT_FAKE_MONOTONIC=1 FAKETIME_CACHE_DURATION=1\n"
        f'exec {find_java()} "$@"\n'
    )
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("JAVA_HOME", str(java.parents[1]))
    return Clocks(folder)


@pytest.fixture
def cluster(clocks: Clocks, tmp_path: Path) -> Iterator[Cluster]:
    text = (RECORDINGS / "secured.properties").read_text(encoding="utf-8")
    properties = {n: v for n, v in parse_properties(text).items() if n != AUTHORIZER_CLASS}
    # With a faked clock, ZooKeeper takes several times as long to start.
    properties["zookeeper.connection.timeout.ms"] = "60000"
    with Cluster(
        brokers=len(BROKERS),
        controller=CONTROLLER,
        data_dir=tmp_path / "data",
        properties=properties,
        node_command=module_command("chaos.clocked_node", *clocks.options),
    ) as running:
        yield running


def create(cluster: Cluster, broker: int, name: str) -> None:
    began = time.monotonic()
    with Connection(cluster.bootstrap_server(broker)) as connection:
        response = connection.exchange(create_topics([name]))
    assert isinstance(response, bytes), response
    assert decode_message(19, 4, response).topics[0].error_code == 0
    assert time.monotonic() - began < RESPONDED_WITHIN_S


def usable_at(cluster: Cluster, token: dict[str, Any]) -> set[int]:
    """Return the brokers that serve a request after a login with the token."""
    usable = set()
    for broker in BROKERS:
        with Client(cluster, broker) as client:
            if client.log_in_with_token(token["tokenId"], token["hmac"]):
                described = client.call(60, {"includeClusterAuthorizedOperations": False})
                usable |= {broker} if described is not None else set()
    return usable


def wall_s(cluster: Cluster, name: int | str, topic: str) -> float:
    """Return the seconds since 1970 according to a process's clock.

    A node's time is that of its last event. ZooKeeper's time is the creation time of the topic's
    znode.
    """
    if name == ZOOKEEPER:
        client = KazooClient(cluster.zookeeper_connect)
        client.start()
        try:
            return float(client.exists(f"/brokers/topics/{topic}").ctime) / 1000
        finally:
            client.stop()
            client.close()
    files = (cluster.evidence_dir / f"node={name}").glob("*.jsonl")
    newest = max(files, key=lambda file: file.stat().st_mtime_ns)
    return float(json.loads(newest.read_text().splitlines()[-1])["wall_ms"]) / 1000


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_cluster_serves_requests_after_a_clock_jumps_by_an_hour(
    cluster: Cluster, clocks: Clocks
) -> None:
    with Client(cluster, THIRD).log_in("admin") as admin:
        token = admin.create(lifetime_ms=HALF_AN_HOUR_MS)
    wait_until(lambda: usable_at(cluster, token) == set(BROKERS))
    for name in (CONTROLLER, BROKER, ZOOKEEPER):
        for offset_s in (HOUR_S, -HOUR_S):
            clocks.set(name, offset_s)
            topics = (f"jump-{name}-{offset_s}-{number}" for number in range(1000))

            def jumped(name: int | str = name, expected: int = offset_s) -> bool:
                topic = next(topics)  # noqa: B023
                for broker in BROKERS:
                    create(cluster, broker, f"{topic}-{broker}")
                seen = wall_s(cluster, name, f"{topic}-{THIRD}") - time.time()
                return abs(seen - expected) < SEEN_WITHIN_S

            wait_until(jumped)
            with Client(cluster, BROKER).log_in("admin") as admin:  # A password does not expire.
                fresh = admin.create(lifetime_ms=HALF_AN_HOUR_MS)
            ahead = {name} if offset_s > 0 else set()
            assert usable_at(cluster, token) == set(BROKERS) - ahead
            # If the controller's clock is an hour behind, `fresh` has expired at other brokers.
            if name == CONTROLLER and offset_s < 0:
                wait_until(lambda: usable_at(cluster, fresh) == {CONTROLLER})  # noqa: B023
            clocks.set(name, 0)
            wait_until(lambda: usable_at(cluster, token) == set(BROKERS))
    folder = cluster.data_dir
    cluster.stop()
    assert worst(judgement.row for judgement in judge(History(read_run(folder)))) is Verdict.PASS
    for log in folder.glob("nodes/*/node.log"):
        assert "Traceback" not in log.read_text(encoding="utf-8")
