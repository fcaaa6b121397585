"""KIP-590's five metrics on real nodes, and KIP-511's client software.

Broker 1 is the controller. Broker 2 lacks CLUSTER_ACTION, broker 3 writes principals that the
controller cannot read, and broker 4 works normally.
"""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bridgehead.cluster import Cluster
from bridgehead.raw_client.blocking import Connection
from bridgehead.raw_client.codec import create_topic_body
from metrics.names import CLIENT_SOFTWARE, ENVELOPES_REJECTED
from tests.integration.admin_clients import ConfluentAdmin
from tests.integration.conftest import StartCluster
from tests.integration.processes import wait_until

API_VERSIONS, CREATE_TOPICS = 18, 19
NONE, UNKNOWN_SERVER_ERROR = 0, -1
# KIP-590's names in Prometheus's form.
CLIENTS = "num_client_forwarding_to_controller_count"
CLIENTS_RATE = "num_client_forwarding_to_controller_rate"
REDIRECTED = "num_messages_redirected_count_total"
REDIRECTED_RATE = "num_messages_redirected_rate"
AUTHORIZATION_FAILED = "request_forwarding_to_controller_authorization_fail_count_total"
REJECTED = ENVELOPES_REJECTED.name
BUILDER = "tests.integration.principal_builders.Teams"
CODE = """
from bridgehead.authorizer import Verdict


class NotBroker2:
    def __init__(self, properties):
        pass

    def authorize(self, requester, action, acls):
        is_broker_2 = requester.client_id == "2"
        return Verdict(not (is_broker_2 and action.operation == "CLUSTER_ACTION"))

    def authorize_by_resource_type(self, requester, operation, resource_type, acls):
        return Verdict(True)
"""


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, new_chroot: Callable[[], str]
) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("authorizer")
    (folder / "their_authorizer.py").write_text(CODE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        running = Cluster(
            zookeeper=new_chroot(),
            brokers=4,
            controller=1,
            properties={"authorizer.class.name": "their_authorizer.NotBroker2"},
            node_properties={3: {"principal.builder.class": BUILDER}},
        )
        with running:
            yield running


@contextmanager
def frozen(cluster: Cluster, broker: int) -> Iterator[None]:
    """Pause a broker's process."""
    process = cluster.brokers[broker].pid
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def create(cluster: Cluster, broker: int, name: str) -> int:
    with Connection(cluster.bootstrap_server(broker)) as client:
        response = client.call(CREATE_TOPICS, 1, create_topic_body(name))
    (topic,) = response["topics"]
    return int(topic["errorCode"])


def test_metrics_count_the_client_and_the_message_of_an_envelope_without_a_reply(
    cluster: Cluster,
) -> None:
    """As in Kafka, the rates of both metrics are averages over the last 30 to 60 s."""
    url = cluster.brokers[4].metrics_url  # `cluster.brokers` takes seconds while a node is frozen.

    def values() -> tuple[float, float]:
        metrics = metrics_at(url)
        return metrics[CLIENTS], metrics[REDIRECTED]

    def rates() -> list[float]:
        metrics = metrics_at(url)
        return [metrics[CLIENTS_RATE], metrics[REDIRECTED_RATE]]

    assert values() == (0, 0)
    assert rates() == [0, 0]
    with ThreadPoolExecutor(2) as clients:
        with frozen(cluster, 1):
            first = clients.submit(create, cluster, 4, "first")
            wait_until(values, lambda value: value == (1, 1))
            assert all(1 / 60 < rate <= 1 / 30 for rate in rates())
            second = clients.submit(create, cluster, 4, "second")
            wait_until(values, lambda value: value == (2, 2))
            assert all(2 / 60 < rate <= 2 / 30 for rate in rates())
        assert (first.result(), second.result()) == (NONE, NONE)
    wait_until(values, lambda value: value == (0, 2))
    assert all(0 < rate <= 2 / 30 for rate in rates())
    controller = metrics_of(cluster, 1)
    assert [controller[name] for name in (CLIENTS, CLIENTS_RATE)] == [0, 0]
    assert [controller[name] for name in (REDIRECTED, REDIRECTED_RATE)] == [0, 0]


def test_only_a_missing_right_is_counted_as_an_authorization_failure(cluster: Cluster) -> None:
    """Rejected Envelopes cause UNKNOWN_SERVER_ERROR (KIP-590 §EnvelopeResponse Handling)."""

    def counted() -> tuple[float, float]:
        metrics = metrics_of(cluster, 1)
        return metrics[AUTHORIZATION_FAILED], metrics[REJECTED]

    assert counted() == (0, 0)
    assert create(cluster, 2, "by-2") == UNKNOWN_SERVER_ERROR
    assert counted() == (1, 1)
    assert create(cluster, 3, "by-3") == UNKNOWN_SERVER_ERROR
    assert counted() == (1, 2)
    assert create(cluster, 4, "by-4") == NONE
    assert counted() == (1, 2)
    assert {metrics_of(cluster, broker)[AUTHORIZATION_FAILED] for broker in (2, 3, 4)} == {0}


def test_a_client_that_sends_no_software_name_is_unknown(cluster: Cluster) -> None:
    """Clients from before KIP-511 send no name."""

    def software() -> dict[str, float]:
        rows = metrics_of(cluster, 4)
        return {name: rows[name] for name in rows if name.startswith(CLIENT_SOFTWARE.name)}

    def row(name: str, version: str) -> str:
        labels: dict[str, Any] = {"client_software_name": name, "client_software_version": version}
        text = ",".join(f'{label}="{value}"' for label, value in labels.items())
        return f'{CLIENT_SOFTWARE.name}{{{text},listener="PLAINTEXT"}}'

    wait_until(software, lambda value: value == {})
    with Connection(cluster.bootstrap_server(4)) as client:
        client.call(API_VERSIONS, 0, {})
        assert software() == {row("unknown", "unknown"): 1}
        names = {"clientSoftwareName": "probe", "clientSoftwareVersion": "1.0"}
        client.call(API_VERSIONS, 3, names)
        assert software() == {row("probe", "1.0"): 1}


# Each forwarded write has one Envelope, and brokers report the configured controller id.

NAME = "bridgehead.metadata.controller.id"
WRITES_PER_BROKER = 5
METADATA, CREATE_TOPICS = 3, 19


def metrics_of(cluster: Cluster, broker_id: int) -> dict[str, float]:
    return metrics_at(cluster.brokers[broker_id].metrics_url)


def metrics_at(url: str) -> dict[str, float]:
    with urllib.request.urlopen(url) as response:
        lines = [line.rpartition(" ") for line in response.read().decode().splitlines()]
    return {name: float(value) for name, _, value in lines if not name.startswith("#")}


def events_of(data_dir: Path, broker_id: int) -> list[dict[str, Any]]:
    files = sorted((data_dir / "evidence").glob(f"run=*/node={broker_id}/*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_every_forwarded_write_has_one_envelope(
    start_brokers: StartCluster, tmp_path: Path
) -> None:
    """Each broker reports itself as the controller: a client may send its writes to any of them."""
    cluster = start_brokers(data_dir=tmp_path, controller=1, properties={NAME: "self"})
    for broker in (1, 2, 3):
        admin, name = ConfluentAdmin(cluster.bootstrap_server(broker)), f"by-{broker}"
        admin.create(name, 1, 1, {})
        admin.create_partitions(name, 2)
        admin.alter(name, {"retention.ms": "1000"}, legacy=False)
        admin.alter(name, {"retention.ms": "2000"}, legacy=True)
        admin.delete(name)
        admin.close()
    metrics = {broker: metrics_of(cluster, broker) for broker in (1, 2, 3)}
    latency = "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms"
    assert all(metric[f'{latency}{{quantile="0.5"}}'] > 0 for metric in metrics.values())
    cluster.stop()
    routes, forwarded = Counter[str](), Counter[int]()
    for broker in (1, 2, 3):
        events = events_of(tmp_path, broker)
        received = [e for e in events if e["kind"] == "request_received"]
        routes.update(e["route"] for e in received)
        to_forward = [e["request_id"] for e in received if e["route"] == "FORWARD"]
        sent = [e for e in events if e["kind"] == "forward_sent"]
        assert [e["request_id"] for e in sent] == to_forward
        assert {e["attempt"] for e in sent} <= {1}
        assert {e["controller_id"] for e in sent} <= {1}
        assert {e["local"] for e in sent} <= {broker == 1}
        in_envelopes = sum(not e["local"] for e in sent)
        assert metrics[broker]["num_messages_redirected_count_total"] == in_envelopes
        assert metrics[broker]["not_controller_responses_count_total"] == 0
        forwarded[broker] = len(sent)
    assert "NOT_CONTROLLER" not in routes
    assert routes["FORWARD"] == 3 * WRITES_PER_BROKER
    assert forwarded[2] + forwarded[3] > 0


def test_brokers_report_the_configured_controller(
    start_brokers: StartCluster,
) -> None:
    cluster = start_brokers(
        controller=3, node_properties={1: {NAME: "random"}, 2: {NAME: "99"}, 3: {NAME: "actual"}}
    )
    controllers: dict[int, set[int]] = {}
    for broker in (1, 2, 3):
        connection = Connection(cluster.bootstrap_server(broker))
        responses = [connection.call(METADATA, 1, {"topics": []}) for _ in range(200)]
        controllers[broker] = {response["controllerId"] for response in responses}
        created = connection.call(CREATE_TOPICS, 1, create_topic_body(f"through-{broker}"))
        assert [topic["errorCode"] for topic in created["topics"]] == [0]
        connection.close()
    assert controllers == {1: {1, 2, 3}, 2: {99}, 3: {3}}
