"""KIP-590's five metrics on real nodes, and KIP-511's client software.

Broker 1 is the controller. Broker 2 lacks CLUSTER_ACTION, broker 3 writes principals that the
controller cannot read, and broker 4 works normally.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from bridgehead.cluster import Cluster
from bridgehead.raw_client.blocking import Connection
from bridgehead.raw_client.codec import create_topic_body
from metrics.names import CLIENT_SOFTWARE, ENVELOPES_REJECTED
from tests.integration.test_forwarding_counts import metrics_at, metrics_of
from tests.integration.waiting import wait_until

FIND_COORDINATOR, API_VERSIONS, CREATE_TOPICS = 10, 18, 19
NONE, UNKNOWN_SERVER_ERROR = 0, -1
# KIP-590's names in Prometheus's form.
CLIENTS = "num_client_forwarding_to_controller_count"
CLIENTS_AS_SPELLED = "num_client_fowarding_to_controller_count"
REQUESTS = "bridgehead_client_requests_forwarded_total"
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
    """As in Kafka, the rates of both metrics are averages over the last 30 to 60 s.

    The broker's own request to create an internal topic is a message, but no client waits for it.
    """
    url = cluster.brokers[4].metrics_url  # `cluster.brokers` takes seconds while a node is frozen.

    def values() -> tuple[float, float]:
        metrics = metrics_at(url)
        assert metrics[CLIENTS] == metrics[CLIENTS_AS_SPELLED]
        assert metrics[REQUESTS] == min(metrics[REDIRECTED], 2)
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
            with Connection(cluster.bootstrap_server(4)) as client:
                client.call(FIND_COORDINATOR, 0, {"key": "group"})
            wait_until(values, lambda value: value == (2, 3))
            clients_rate, redirected_rate = rates()
            assert redirected_rate == pytest.approx(clients_rate * 3 / 2, rel=0.1)
        assert (first.result(), second.result()) == (NONE, NONE)
    wait_until(values, lambda value: value == (0, 3))
    assert all(0 < rate <= 3 / 30 for rate in rates())
    controller = metrics_of(cluster, 1)
    assert [controller[name] for name in (CLIENTS, CLIENTS_RATE, REQUESTS)] == [0, 0, 0]
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
        names = [name for name in rows if name.startswith(CLIENT_SOFTWARE.name)]
        return {name: rows[name] for name in names if 'listener="PLAINTEXT"' in name}

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
