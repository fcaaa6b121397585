"""Authorization on a real cluster: ACLs, evidence and the authorizer log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from bridgehead.authorizer import AccessControlEntry, ResourcePattern
from bridgehead.cluster import Cluster
from bridgehead.raw_client.blocking import Connection
from bridgehead.raw_client.codec import create_topic_body
from cluster_model.acls.authorizer import CLASS_NAME
from cluster_model.znodes.acls import AclChangeZnode, AclZnode
from judge.evidence.run_lookup import read_run
from judge.history import History
from judge.verdicts import Verdict, judge, worst
from tests.integration.processes import wait_until
from tests.integration.zookeeper_peers import kazoo_client

CONTROLLER, OTHER = 1, 2
LISTENER: Final = "SASL_PLAINTEXT"
# Clients and brokers have different addresses, so the tests detect a mix-up of the two.
CLIENTS_HOST: Final = "127.0.0.2"
TOPIC, LITERAL, PREFIXED, DENY, ALLOW = 2, 3, 4, 2, 3
CREATE, DESCRIBE = 5, 8
MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
PROPERTIES_OF_BROKERS: Final = {
    "listeners": f"PLAINTEXT://127.0.0.1:0,{LISTENER}://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        f'{MODULE} username="broker" password="broker-secret" user_broker="broker-secret" '
        'user_admin="admin-secret" user_alice="alice-secret" user_bob="bob-secret";'
    ),
    "authorizer.class.name": CLASS_NAME,
    "super.users": "User:admin;User:broker",
    "zookeeper.session.timeout.ms": "6000",
}


class Results(NamedTuple):
    """The results that the clients got."""

    created: list[int]  # error codes: alice's topic, bob's topic, alice's denied topic
    applied: bool  # whether the other broker applied the new ACL in time


def acl(kind: int, how: int, name: str, principal: str, operation: int, permission: int) -> Any:
    return {
        "resourceType": kind,
        "resourceName": name,
        "resourcePatternType": how,
        "principal": principal,
        "host": CLIENTS_HOST if principal == "User:alice" and permission == ALLOW else "*",
        "operation": operation,
        "permissionType": permission,
    }


@contextmanager
def client(cluster: Cluster, broker: int, user: str) -> Iterator[Callable[[int, int, Any], Any]]:
    """Log in to a broker, from an address that is not the brokers' own."""
    with Connection(cluster.bootstrap_server(broker, LISTENER), CLIENTS_HOST) as connection:
        assert connection.log_in(user, f"{user}-secret")
        yield connection.call


def create(cluster: Cluster, broker: int, user: str, name: str) -> int:
    with client(cluster, broker, user) as call:
        response = call(19, 4, create_topic_body(name))
    return int(response["topics"][0]["errorCode"])


def grant(cluster: Cluster, *rules: Any) -> list[int]:
    with client(cluster, CONTROLLER, "admin") as call:
        response = call(30, 2, {"creations": list(rules)})
    return [result["errorCode"] for result in response["results"]]


def sees(cluster: Cluster, user: str, name: str) -> bool:
    with client(cluster, OTHER, user) as call:
        response = call(3, 4, {"topics": [{"name": name}], "allowAutoTopicCreation": False})
    return bool(response["topics"][0]["errorCode"] == 0)


def use_rights(cluster: Cluster) -> Results:
    """Try what alice and bob may do.

    Alice may create topics a-*, except a-denied, from one host. Bob has no right at first, and may
    later describe one topic.
    """
    codes = grant(
        cluster,
        acl(TOPIC, PREFIXED, "a-", "User:alice", CREATE, ALLOW),
        acl(TOPIC, LITERAL, "a-denied", "User:alice", CREATE, DENY),
    )
    assert codes == [0, 0]
    created = [
        create(cluster, OTHER, "alice", "a-1"),
        create(cluster, OTHER, "bob", "b-1"),
        create(cluster, OTHER, "alice", "a-denied"),
    ]
    assert create(cluster, CONTROLLER, "admin", "seen") == 0
    assert not sees(cluster, "bob", "seen")
    assert grant(cluster, acl(TOPIC, LITERAL, "seen", "User:bob", DESCRIBE, ALLOW)) == [0]
    return Results(created, wait_until(lambda: sees(cluster, "bob", "seen")))


def verdicts(folder: Path) -> dict[str, Verdict]:
    rows = [judgement.row for judgement in judge(History(read_run(folder)))]
    return {row.property: row.verdict for row in rows} | {"run": worst(rows)}


def test_denials_are_logged_and_the_evidence_passes(tmp_path: Path) -> None:
    """The controller's authorizer log names principal and host, with control characters escaped."""
    options: dict[str, Any] = {"brokers": 2, "controller": CONTROLLER, "data_dir": tmp_path}
    with Cluster(**options, properties=PROPERTIES_OF_BROKERS) as cluster:
        assert use_rights(cluster) == Results([0, 29, 29], True)
        hostile = "User:e\nPrincipal = User:bob is Allowed\u0001\u2028\"\\'"
        assert grant(cluster, acl(TOPIC, LITERAL, "seen", hostile, DESCRIBE, ALLOW)) == [0]
        rejected = grant(cluster, acl(TOPIC, LITERAL, "a\nb", "User:x", DESCRIBE, ALLOW))
        assert rejected == [-1]
        assert create(cluster, OTHER, "bob", "x\n[2026] INFO Principal = User:bob is Allowed") == 29
        assert hostile in described(cluster, "seen")
    assert verdicts(tmp_path) == dict.fromkeys(verdicts(tmp_path), Verdict.PASS) | {
        name: verdict for name, verdict in verdicts(tmp_path).items() if verdict is Verdict.NODATA
    }
    lines = (tmp_path / "nodes/1/logs/kafka-authorizer.log").read_text().splitlines()
    denied = [line.partition(" INFO ")[2] for line in lines]
    assert (
        f"Principal = User:bob is Denied Operation = Create from host = {CLIENTS_HOST} on resource "
        "= Topic:LITERAL:b-1 for request = CreateTopics with resourceRefCount = 1 "
        "(kafka.authorizer.logger)"
    ) in denied
    assert not [line for line in lines if not line.startswith("[") or "is Allowed Op" in line]
    assert any("Topic:LITERAL:x\\u000a[2026]" in line for line in denied)


def test_acls_written_to_zookeeper_by_other_tools_apply(tmp_path: Path) -> None:
    """The test writes the ACL as Kafka's tools do. The controller and the other broker apply it."""
    with Cluster(
        brokers=2, controller=CONTROLLER, data_dir=tmp_path, properties=PROPERTIES_OF_BROKERS
    ) as cluster:
        assert create(cluster, OTHER, "bob", "by-hand") == 29
        pattern = ResourcePattern("TOPIC", "LITERAL", "by-hand")
        rule = AccessControlEntry("User:bob", "*", "CREATE", "ALLOW")
        with kazoo_client(cluster.zookeeper_connect) as zookeeper:
            zookeeper.create(AclZnode.path(pattern), AclZnode.encode((rule,)))
            change = AclChangeZnode.encode(pattern)
            zookeeper.create(AclChangeZnode.prefix(pattern), change, sequence=True)
            wait_until(lambda: create(cluster, OTHER, "bob", "by-hand") == 0)
            # The controller's next write of these ACLs must keep the one that the test wrote.
            more = acl(TOPIC, LITERAL, "by-hand", "User:bob", DESCRIBE, ALLOW)
            assert grant(cluster, more) == [0]
            data, _ = zookeeper.get(AclZnode.path(pattern))
        assert AclZnode.decode("/p", data)[0] == rule
        wait_until(lambda: sees(cluster, "bob", "by-hand"))


def described(cluster: Cluster, name: str) -> list[str]:
    """Return the principals of a topic's ACLs once the other broker has applied them."""
    wanted = {
        "resourceTypeFilter": TOPIC,
        "resourceNameFilter": name,
        "patternTypeFilter": LITERAL,
        "principalFilter": None,
        "hostFilter": None,
        "operation": 1,
        "permissionType": 1,
    }

    def now() -> list[str]:
        with client(cluster, OTHER, "admin") as call:
            resources = call(29, 2, wanted)["resources"]
        return [rule["principal"] for resource in resources for rule in resource["acls"]]

    wait_until(lambda: len(now()) > 1)
    return now()
