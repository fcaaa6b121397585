"""Fault rules act on exactly the requests or Envelopes that they name, and leave evidence."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridgehead.cluster import Cluster, ClusterError
from bridgehead.cluster.control_socket import short_address
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.metadata import MetadataRequest
from bridgehead.kafka_wire.primitives import WireError
from bridgehead.raw_client.asynchronous import AsyncConnection
from bridgehead.raw_client.codec import create_topics, decode_message
from judge.verdicts import Verdict
from tests.integration.pipeline_runs import judged
from tests.integration.test_zombie_controller import events

ALLOWED = {"bridgehead.faults.allow": "true", "auto.create.topics.enable": "false"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with Cluster(brokers=2, controller=1, data_dir=folder, properties=ALLOWED) as cluster:
        yield cluster


@pytest.fixture
def cluster(running: Cluster) -> Iterator[Cluster]:
    yield running
    running.faults.remove()


async def create(cluster: Cluster, name: str, broker: int = 2) -> int:
    """Create a topic through a broker; return the error code."""
    connection = await AsyncConnection.open(cluster.bootstrap_server(broker))
    try:
        async with asyncio.timeout(30):
            response = await connection.exchange(create_topics([name]))
        return int(decode_message(19, 4, response).topics[0].error_code)
    finally:
        connection.close()


async def topics(cluster: Cluster) -> set[str]:
    connection = await AsyncConnection.open(cluster.bootstrap_server(1))
    response = await connection.call(3, 4, MetadataRequest(topics=None))
    connection.close()
    return {topic.name for topic in response.topics}


async def test_an_error_replaces_the_execution_once(cluster: Cluster) -> None:
    name = cluster.faults.add("error", error="NOT_CONTROLLER", api="CreateTopics", topic="t1")
    assert await create(cluster, "t2") == ErrorCode.NONE
    assert await create(cluster, "t1") == ErrorCode.NOT_CONTROLLER
    assert "t1" not in await topics(cluster)
    assert await create(cluster, "t1") == ErrorCode.NONE
    assert cluster.faults.hits(name) == 1
    acted = [event for event in events(cluster, 2, "fault_rule_acted") if event["rule"] == name]
    assert [(event["action"], event["side"]) for event in acted] == [("error", "client")]


async def test_a_response_can_be_lost_after_the_execution(cluster: Cluster) -> None:
    cluster.faults.add("close", phase="response", api="CreateTopics", nth=2)
    assert await create(cluster, "kept-1") == ErrorCode.NONE
    with pytest.raises(EOFError):
        await create(cluster, "kept-2")
    assert {"kept-1", "kept-2"} <= await topics(cluster)


async def test_a_dropped_request_is_not_executed_and_gets_no_response(cluster: Cluster) -> None:
    name = cluster.faults.add("drop", api="CreateTopics", topic="dropped")
    waiting = asyncio.create_task(create(cluster, "dropped"))
    async with asyncio.timeout(20):
        while not cluster.faults.hits(name):
            await asyncio.sleep(0.02)
    done, _ = await asyncio.wait((waiting,), timeout=0.5)
    waiting.cancel()
    assert not done
    assert "dropped" not in await topics(cluster)


async def test_a_truncated_response_is_malformed(cluster: Cluster) -> None:
    cluster.faults.add("truncate", phase="response", api="CreateTopics")
    with pytest.raises((WireError, EOFError, AssertionError)):
        await create(cluster, "cut-in-half")
    assert "cut-in-half" in await topics(cluster)


async def test_a_delay_holds_one_client_and_no_other(cluster: Cluster) -> None:
    cluster.faults.add("delay", delay_ms=1500, api="CreateTopics", topic="late")
    late = asyncio.create_task(create(cluster, "late"))
    assert await create(cluster, "prompt") == ErrorCode.NONE
    assert not late.done()
    assert await late == ErrorCode.NONE


@pytest.mark.parametrize(
    ("action", "fields"),
    [
        ("error", {"error": "NOT_CONTROLLER", "times": 3}),
        ("close", {"times": 2}),
        ("close", {"phase": "response", "times": 2}),
        ("duplicate", {}),
        ("delay", {"delay_ms": 300}),
    ],
)
async def test_the_broker_hides_a_fault_of_the_envelope_from_the_client(
    cluster: Cluster, action: str, fields: dict[str, Any]
) -> None:
    name = cluster.faults.add(action, side="envelope", broker=2, api="CreateTopics", **fields)
    topic = f"hidden-{action}-{'-'.join(map(str, fields.values()))}".lower().replace("_", "-")
    assert await create(cluster, topic) == ErrorCode.NONE
    assert cluster.faults.hits(name) == fields.get("times", 1)
    assert topic in await topics(cluster)


def test_an_invalid_or_unknown_rule_is_an_error_of_one_sentence(cluster: Cluster) -> None:
    with pytest.raises(ClusterError, match="`error` with the action error"):
        cluster.faults.add("error")
    with pytest.raises(ClusterError, match="has a fault rule"):
        cluster.faults.remove("rule-77")
    assert cluster.faults.list() == []


def http_request(path: Path, method: str, target: str, body: str = "") -> tuple[int, Any]:
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    with short_address(path) as address:
        connection.sock.connect(address)
    connection.request(method, target, body)
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def test_rules_are_served_over_http_on_the_control_socket(cluster: Cluster) -> None:
    node = cluster.data_dir / "nodes" / "2" / "control.sock"
    rule = json.dumps({"action": "close", "api": "DeleteTopics"})
    assert http_request(node, "POST", "/faults", rule) == (200, {"name": "rule-1"})
    status, listed = http_request(node, "GET", "/faults")
    assert (status, listed["rules"][0]["rule"]["api"]) == (200, "DeleteTopics")
    assert http_request(node, "DELETE", "/faults/rule-1") == (200, {"removed": 1})
    assert http_request(node, "DELETE", "/faults/rule-1")[0] == 400
    assert http_request(node, "POST", "/faults", "{")[0] == 400
    assert http_request(node, "GET", "/secrets")[0] == 404


@pytest.mark.long
async def test_rules_need_permission_and_leave_evidence(
    tmp_path: Path,
) -> None:
    with Cluster(brokers=1) as closed, pytest.raises(ClusterError, match=r"bridgehead\.faults"):
        closed.faults.add("close")
    with Cluster(brokers=2, controller=1, data_dir=tmp_path, properties=ALLOWED) as cluster:
        for action in ("close", "duplicate"):
            cluster.faults.add(action, side="envelope", times=5)
        for number in range(20):
            assert await create(cluster, f"judged-{number}") == ErrorCode.NONE
    verdicts = {of: judgement.row.verdict for of, judgement in judged(tmp_path).items()}
    assert Verdict.FAIL not in verdicts.values(), verdicts
    assert verdicts["D3"] is Verdict.PASS
