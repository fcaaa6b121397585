"""A delegation token from any broker is valid at all brokers, and is removed when it expires."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from bridgehead.cluster import Cluster
from bridgehead.cluster.properties import parse_properties
from bridgehead.kafka_wire.errors import ErrorCode
from cluster_model.delegation_tokens import TokenSecret
from node.assembly.authorization import AUTHORIZER_CLASS
from tests.integration.login_clients import (
    EXPIRE,
    RENEW,
    Client,
    logs_in,
)
from tests.integration.processes import wait_until
from tests.integration.zookeeper_peers import kazoo_client

RECORDINGS = Path(__file__).parent.parent / "recordings"
KEY = "token-master-key"
BROKERS = (1, 2, 3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the cluster's data directory."""
    return tmp_path_factory.mktemp("tokens")


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[Cluster]:
    """A cluster with the recorded Kafka's properties, but with a check for expiry every 500 ms."""
    text = (RECORDINGS / "secured.properties").read_text(encoding="utf-8")
    properties = {n: v for n, v in parse_properties(text).items() if n != AUTHORIZER_CLASS}
    properties |= {
        "delegation.token.expiry.check.interval.ms": "500",
        "zookeeper.session.timeout.ms": "2000",
    }
    with Cluster(data_dir=folder, controller=1, properties=properties) as running:
        yield running


@pytest.fixture
def zookeeper(cluster: Cluster) -> Iterator[KazooClient]:
    with kazoo_client(cluster.zookeeper_connect) as client:
        yield client


def issued(cluster: Cluster, broker: int, *renewers: str, **more: Any) -> Any:
    with Client(cluster, broker).log_in("alice") as alice:
        result = alice.create(*renewers, **more)
    assert result["errorCode"] == 0
    return result


def test_a_token_of_any_broker_works_on_all(cluster: Cluster, zookeeper: KazooClient) -> None:
    """Broker 1 (the controller) and broker 2 (which forwards) give equal responses and znodes."""
    for broker in (1, 2):
        token = issued(cluster, broker, "bob")
        proof = base64.b64decode(token["hmac"])
        assert proof == TokenSecret(KEY).hmac(token["tokenId"])
        data, _ = zookeeper.get(f"/delegation_token/tokens/{token['tokenId']}")
        stored = json.loads(data)
        assert list(stored) == [
            *("issueTimestamp", "renewers", "tokenRequester", "tokenId", "owner"),
            *("expiryTimestamp", "maxTimestamp", "version"),
        ]
        assert (stored["owner"], stored["renewers"]) == ("User%3Aalice", ["User%3Abob"])
        for node in BROKERS:
            with Client(cluster, node).log_in("bob") as bob:
                wait_until(partial(knows, bob, token))
                assert bob.described()[token["tokenId"]]["hmac"] == token["hmac"]
            assert logs_in(cluster, node, token)
            assert not logs_in(cluster, node, {**token, "hmac": "x" * 88})


def knows(client: Client, token: dict[str, Any]) -> bool:
    return token["tokenId"] in client.described()


def does_not_know(client: Client, token: dict[str, Any]) -> bool:
    return not knows(client, token)


def cannot_log_in(cluster: Cluster, broker: int, token: dict[str, Any]) -> bool:
    return not logs_in(cluster, broker, token)


def test_a_client_with_a_token_acts_as_its_owner_and_cannot_create_another(
    cluster: Cluster,
) -> None:
    """The Envelope states that the client authenticated with a token."""
    token = issued(cluster, 2)
    wait_until(lambda: logs_in(cluster, 3, token))
    for broker in (1, 3):
        with Client(cluster, broker) as client:
            assert client.log_in_with_token(token["tokenId"], token["hmac"])
            result = client.create()
            assert ErrorCode(result["errorCode"]).name == "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"
            assert result["principalName"] == "alice"


def test_a_removed_token_is_rejected_by_every_broker(cluster: Cluster) -> None:
    token = issued(cluster, 2)
    for b in BROKERS:
        wait_until(partial(logs_in, cluster, b, token))
    with Client(cluster, 3).log_in("alice") as alice:
        gone = alice.call(EXPIRE, {"hmac": token["hmac"], "expiryTimePeriodMs": -1})
        assert gone["errorCode"] == 0
        again = alice.call(RENEW, {"hmac": token["hmac"], "renewPeriodMs": -1})
        assert ErrorCode(again["errorCode"]).name == "DELEGATION_TOKEN_NOT_FOUND"
    for b in BROKERS:
        wait_until(partial(cannot_log_in, cluster, b, token))


def test_an_expired_token_is_removed_by_the_controller(
    cluster: Cluster, zookeeper: KazooClient
) -> None:
    """The controller deletes the znode, and all brokers forget the token. Other tokens stay."""
    short, kept = issued(cluster, 2, lifetime_ms=1), issued(cluster, 2)
    path = "/delegation_token/tokens/"
    wait_until(lambda: zookeeper.exists(path + short["tokenId"]) is None)
    for broker in BROKERS:
        with Client(cluster, broker).log_in("alice") as alice:
            wait_until(partial(knows, alice, kept))
            wait_until(partial(does_not_know, alice, short))


def test_tokens_survive_a_failover(cluster: Cluster) -> None:
    """The next controller renews a token that its predecessor issued."""
    token = issued(cluster, 2)
    cluster.kill_node(1)
    with Client(cluster, 2).log_in("alice") as alice:
        renewed = alice.call(RENEW, {"hmac": token["hmac"], "renewPeriodMs": 3_600_000})
        assert renewed["errorCode"] == 0
        assert renewed["expiryTimestampMs"] > time.time() * 1000
        assert alice.create()["errorCode"] == 0
    cluster.start_node(1)
    wait_until(lambda: logs_in(cluster, 1, token))


def test_evidence_has_no_token_secrets(cluster: Cluster, folder: Path) -> None:
    """Logs, events and ZooKeeper's transactions have neither the key nor an HMAC.

    The transactions include the outcomes of requests.
    """
    tokens = [issued(cluster, broker) for broker in BROKERS]
    with Client(cluster, 2).log_in("alice") as alice:
        alice.call(RENEW, {"hmac": tokens[0]["hmac"], "renewPeriodMs": -1})
    secrets = [KEY.encode()]
    for token in tokens:
        proof = base64.b64decode(token["hmac"])
        secrets += [token["hmac"].encode(), proof.hex().encode(), proof]
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert {"nodes", "zookeeper"} <= {file.relative_to(folder).parts[0] for file in files}
    for file in files:
        if file.suffix != ".properties":  # The brokers' properties have the key.
            content = file.read_bytes()
            assert not [secret for secret in secrets if secret in content], file
