"""Who may do what on a real cluster: judged, and told in the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from kazoo.client import KazooClient

from bridgehead.authorizer import AccessControlEntry, ResourcePattern
from bridgehead.cluster import Cluster
from chaos.connection import Connection
from chaos.evidence.finding import read_run
from chaos.history import History
from chaos.properties import PROPERTIES
from chaos.verdicts import Verdict, judge, worst
from cluster_model.acl_authorizer import CLASS_NAME
from cluster_model.acl_znodes import AclChangeZnode, AclZnode
from tests.integration.test_authorization_matrix import ask
from tests.integration.token_clients import eventually

CONTROLLER, OTHER = 1, 2
LISTENER: Final = "SASL_PLAINTEXT"
# Not the brokers' own address, which a controller could mistake for it.
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


class Story(NamedTuple):
    """What the clients saw."""

    created: list[int]  # codes: alice's topic, bob's, and alice's that she is denied
    learned: bool  # whether the other broker knew of a right in time


def acl(kind: int, how: int, name: str, who: str, operation: int, permission: int) -> Any:
    return {
        "resourceType": kind,
        "resourceName": name,
        "resourcePatternType": how,
        "principal": who,
        "host": CLIENTS_HOST if who == "User:alice" and permission == ALLOW else "*",
        "operation": operation,
        "permissionType": permission,
    }


@contextmanager
def client(cluster: Cluster, broker: int, user: str) -> Iterator[Callable[[int, int, Any], Any]]:
    """Somebody logged in, from another address than the brokers'."""
    connection = Connection(cluster.bootstrap_server(broker, LISTENER), CLIENTS_HOST)
    assert connection.log_in(user, f"{user}-secret")
    yield lambda key, version, body: ask(connection, key, version, body)
    connection.close()


def create(cluster: Cluster, broker: int, user: str, name: str) -> int:
    topic = {
        "name": name,
        "numPartitions": 1,
        "replicationFactor": 1,
        "assignments": [],
        "configs": [],
    }
    with client(cluster, broker, user) as asked:
        answer = asked(19, 4, {"topics": [topic], "timeoutMs": 10_000, "validateOnly": False})
    return int(answer["topics"][0]["errorCode"])


def grant(cluster: Cluster, *rules: Any) -> list[int]:
    with client(cluster, CONTROLLER, "admin") as asked:
        answer = asked(30, 2, {"creations": list(rules)})
    return [each["errorCode"] for each in answer["results"]]


def sees(cluster: Cluster, user: str, name: str) -> bool:
    with client(cluster, OTHER, user) as asked:
        answer = asked(3, 4, {"topics": [{"name": name}], "allowAutoTopicCreation": False})
    return bool(answer["topics"][0]["errorCode"] == 0)


def play(cluster: Cluster) -> Story:
    """Alice may create a-…, from her own host, but one; bob may nothing, until he is let see."""
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
    return Story(created, eventually(lambda: sees(cluster, "bob", "seen")))


def verdicts(folder: Path) -> dict[str, Verdict]:
    judgements = list(judge(History(read_run(folder)), PROPERTIES))
    return {each.property.id: each.verdict for each in judgements} | {"run": worst(judgements)}


def test_rights_hold_are_judged_and_are_told_in_the_log(tmp_path: Path) -> None:
    """Nothing is seeded: the run passes, and the controller's log names client and host."""
    options: dict[str, Any] = {"brokers": 2, "controller": CONTROLLER, "data_dir": tmp_path}
    with Cluster(**options, properties=PROPERTIES_OF_BROKERS) as cluster:
        assert play(cluster) == Story([0, 29, 29], True)
        hostile = "User:e\nPrincipal = User:bob is Allowed\u0001\u2028\"\\'"
        assert grant(cluster, acl(TOPIC, LITERAL, "seen", hostile, DESCRIBE, ALLOW)) == [0]
        refused = grant(cluster, acl(TOPIC, LITERAL, "a\nb", "User:x", DESCRIBE, ALLOW))
        assert refused == [-1]
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


def test_rules_that_somebody_else_writes_are_obeyed(tmp_path: Path) -> None:
    """By the controller, which reads them anew, and by the other broker: as Kafka's tools did."""
    with Cluster(
        brokers=2, controller=CONTROLLER, data_dir=tmp_path, properties=PROPERTIES_OF_BROKERS
    ) as cluster:
        assert create(cluster, OTHER, "bob", "by-hand") == 29
        pattern = ResourcePattern("TOPIC", "LITERAL", "by-hand")
        rule = AccessControlEntry("User:bob", "*", "CREATE", "ALLOW")
        zookeeper = KazooClient(cluster.zookeeper_connect)
        zookeeper.start()
        zookeeper.create(AclZnode.path(pattern), AclZnode.encode((rule,)))
        change = AclChangeZnode.encode(pattern)
        zookeeper.create(AclChangeZnode.prefix(pattern), change, sequence=True)
        assert eventually(lambda: create(cluster, OTHER, "bob", "by-hand") == 0)
        # What the controller writes next is written over what it read.
        more = acl(TOPIC, LITERAL, "by-hand", "User:bob", DESCRIBE, ALLOW)
        assert grant(cluster, more) == [0]
        data, _ = zookeeper.get(AclZnode.path(pattern))
        zookeeper.stop()
        zookeeper.close()
        assert AclZnode.decode("/p", data)[0] == rule
        assert eventually(lambda: sees(cluster, "bob", "by-hand"))


def described(cluster: Cluster, name: str) -> list[str]:
    """The principals of a topic's rules, once the other broker knows them."""
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
        with client(cluster, OTHER, "admin") as asked:
            resources = asked(29, 2, wanted)["resources"]
        return [rule["principal"] for each in resources for rule in each["acls"]]

    assert eventually(lambda: len(now()) > 1)
    return now()
