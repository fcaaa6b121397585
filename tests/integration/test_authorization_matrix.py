"""APIs that need a right but no data plane: with and without the right, at both brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from bridgehead.authorizer import AccessControlEntry, ResourcePattern
from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.apis import Route
from bridgehead.raw_client.blocking import Connection
from bridgehead.raw_client.codec import topic_body
from broker_proxy.requests.routing import SHIPPED, WITHOUT_DATA_PLANE
from cluster_model.acls.authorization import CLUSTER_NAME
from cluster_model.acls.authorizer import CLASS_NAME
from cluster_model.acls.bindings import AclBinding
from cluster_model.acls.codes import (
    OPERATION_CODES,
    PATTERN_TYPE_CODES,
    PERMISSION_CODES,
    RESOURCE_TYPE_CODES,
)
from tests.integration.authorization_matrix import ROWS, Row
from tests.integration.login_clients import CREATE, Client, logs_in
from tests.integration.processes import wait_until

CONTROLLER, OTHER = 1, 2
PATHS: Final = {"direct": CONTROLLER, "forwarded": OTHER}
PERSONAS: Final = ("allowed", "denied", "describe", "super", "anonymous", "token")
USERS: Final = ("admin", "broker", "describe", "denied", "owner")
LISTENER: Final = "SASL_PLAINTEXT"
MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
# These APIs have no row. Some need no right. Others would list groups or transactions, and this
# cluster has none. Envelope (58) is tested by test_client_envelopes.py.
NO_RIGHT_NEEDED: Final = {16, 17, 18, 36, 58, 66, 68, 69}


def user_of(row: Row) -> str:
    """Return the user whose only right is that of this row."""
    return f"may{ROWS.index(row)}"


def name_of(row: Row, persona: str, path: str) -> str:
    return f"m{ROWS.index(row)}-{persona}-{path}"


@pytest.fixture(scope="module")
def cluster(new_chroot: Callable[[], str]) -> Iterator[Cluster]:
    """Start two brokers with the users, ACLs, topics and token that the rows need."""
    users = (*USERS, *map(user_of, ROWS))
    words = " ".join(f'user_{user}="{user}-secret"' for user in users)
    properties = {
        "listeners": f"PLAINTEXT://127.0.0.1:0,{LISTENER}://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f'{MODULE} username="broker" password="broker-secret" {words};'
        ),
        "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        "authorizer.class.name": CLASS_NAME,
        "super.users": "User:admin;User:broker",
        "delegation.token.secret.key": "key",
        "zookeeper.session.timeout.ms": "6000",
    }
    with Cluster(zookeeper=new_chroot(), brokers=2, controller=1, properties=properties) as running:
        prepare(running)
        yield running


def creation(binding: AclBinding) -> dict[str, Any]:
    pattern, entry = binding
    return {
        "resourceType": RESOURCE_TYPE_CODES[pattern.resource_type],
        "resourceName": pattern.name,
        "resourcePatternType": PATTERN_TYPE_CODES[pattern.pattern_type],
        "principal": entry.principal,
        "host": entry.host,
        "operation": OPERATION_CODES[entry.operation],
        "permissionType": PERMISSION_CODES[entry.permission],
    }


def bindings() -> Iterator[AclBinding]:
    """Yield two ACLs per row, both for clients on 127.0.0.1 only.

    The first gives the row's right to the row's user. The second gives DESCRIBE to user `describe`.
    """
    for row in ROWS:
        pattern = ResourcePattern(row.resource_type, "PREFIXED", f"m{ROWS.index(row)}-")
        if row.resource_type == "CLUSTER":
            pattern = ResourcePattern("CLUSTER", "LITERAL", CLUSTER_NAME)
        if row.resource_type == "USER":
            # The name of a USER resource is a whole principal, so `User:` is the prefix.
            pattern = pattern._replace(name="User:")
        entry = AccessControlEntry(f"User:{user_of(row)}", "127.0.0.1", row.operation, "ALLOW")
        yield AclBinding(pattern, entry)
        describing = entry._replace(principal="User:describe", operation="DESCRIBE")
        yield AclBinding(pattern, describing)


def prepare(cluster: Cluster) -> None:
    admin = Connection(cluster.bootstrap_server(CONTROLLER, LISTENER))
    assert admin.log_in("admin", "admin-secret")
    created = admin.call(30, 2, {"creations": list(map(creation, dict.fromkeys(bindings())))})
    assert {result["errorCode"] for result in created["results"]} == {0}
    names = {
        name_of(row, persona, path): broker
        for row in ROWS
        if row.topic
        for persona in PERSONAS
        for path, broker in PATHS.items()
    }
    topics = [topic_body(name, assignments={0: [at]}) for name, at in names.items()]
    response = admin.call(19, 4, {"topics": topics, "timeoutMs": 30000, "validateOnly": False})
    assert {topic["errorCode"] for topic in response["topics"]} == {0}
    with Client(cluster, CONTROLLER).log_in("owner") as owner:
        assert owner.create()["errorCode"] == 0
    for broker in PATHS.values():
        wait_until(lambda broker=broker: knows_all(cluster, broker, len(names)))  # type: ignore[misc]


def knows_all(cluster: Cluster, broker: int, topics: int) -> bool:
    """Return whether the broker has applied all topics, ACLs and tokens."""
    connection = Connection(cluster.bootstrap_server(broker, LISTENER))
    assert connection.log_in("admin", "admin-secret")
    every = {
        "resourceTypeFilter": 1,
        "resourceNameFilter": None,
        "patternTypeFilter": 1,
        "principalFilter": None,
        "hostFilter": None,
        "operation": 1,
        "permissionType": 1,
    }
    acls = connection.call(29, 2, every)["resources"]
    known_topics = connection.call(3, 4, {"topics": None, "allowAutoTopicCreation": False})[
        "topics"
    ]
    tokens = connection.call(41, 2, {"owners": None})["tokens"]
    connection.close()
    count = sum(len(acl["acls"]) for acl in acls)
    return count == len(set(bindings())) and len(known_topics) >= topics and len(tokens) == 1


def connect(cluster: Cluster, persona: str, row: Row, broker: int) -> Connection:
    if persona == "anonymous":
        return Connection(cluster.bootstrap_server(broker, "PLAINTEXT"))
    user = {"allowed": user_of(row), "super": "admin"}.get(persona, persona)
    connection = Connection(cluster.bootstrap_server(broker, LISTENER))
    assert connection.log_in(user, f"{user}-secret")
    return connection


def expected(row: Row, persona: str) -> Any:
    if persona in row.special:
        return row.special[persona]
    describes = persona == "describe" and row.operation == "DESCRIBE"
    return row.allowed if describes or persona in ("allowed", "super", "token") else row.denied


def token_client(cluster: Cluster, row: Row, broker: int) -> Client:
    with Client(cluster, CONTROLLER).log_in(user_of(row)) as own_client:
        token = own_client.create()
    wait_until(lambda: logs_in(cluster, broker, token))
    client = Client(cluster, broker)
    assert client.log_in_with_token(token["tokenId"], token["hmac"])
    return client


@pytest.mark.parametrize("row", ROWS, ids=[row.label for row in ROWS])
def test_each_principal_gets_the_expected_response(cluster: Cluster, row: Row) -> None:
    """Six clients send the request to the controller and to another broker."""
    results: dict[tuple[str, str], Any] = {}
    for persona in PERSONAS:
        for path, broker in PATHS.items():
            name = name_of(row, persona, path)
            body = row.filled(name, broker)
            if persona == "token":
                with token_client(cluster, row, broker) as client:
                    response = client.call_version(row.key, row.version, body)
            else:
                connection = connect(cluster, persona, row, broker)
                response = connection.call(row.key, row.version, body)
                connection.close()
            results[persona, path] = row.observe(response, name)
    want = {cell: expected(row, cell[0]) for cell in results}
    assert results == want


def test_every_served_api_that_needs_no_data_plane_has_a_row() -> None:
    """The APIs in NO_RIGHT_NEEDED have no row.

    APIs that need a data plane have none either; see tests/recordings/data-plane-secured.jsonl.gz.
    """
    assert {row.key for row in ROWS} | NO_RIGHT_NEEDED == set(WITHOUT_DATA_PLANE["shipped"])
    assert len(ROWS) * len(PERSONAS) * len(PATHS) >= 300
    forwarded = {key for key, route in SHIPPED.items() if route is Route.FORWARD}
    assert forwarded <= {row.key for row in ROWS}
    assert CREATE in forwarded
