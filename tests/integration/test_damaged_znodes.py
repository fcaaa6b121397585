"""A running cluster survives deleted and overwritten znodes, and the end of sessions.

Each row of `DAMAGES` damages one znode; then the controller moves. No node fails, requests get
responses, and after the repair everything works. The run is judged at the end.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError, NoNodeError

from bridgehead.cluster import Cluster
from bridgehead.cluster.control_socket import call
from bridgehead.cluster.errors import ClusterError
from bridgehead.raw_client.blocking import Connection
from judge.evidence.run_lookup import read_run
from judge.history import History
from judge.verdicts import Verdict, judge

SESSION_TIMEOUT_S = 3
WITHIN_S = 30
ACTIVE_WITHIN_S = 5
BROKERS = (1, 2, 3)
PROPERTIES = {
    "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_S * 1000),
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS;User:broker",
    "delegation.token.secret.key": "secret",
    "default.replication.factor": "3",
}
METADATA, CREATE, DELETE, DESCRIBE_CONFIGS, ALTER_CONFIGS, INCREMENTAL = 3, 19, 20, 32, 33, 44
TOPIC = 2
NONE, NOT_ENOUGH_BROKERS = 0, 38
numbers = count()


class Harness:
    """A cluster with a topic `kept`, and a ZooKeeper session that damages znodes."""

    def __init__(self, cluster: Cluster, zookeeper: KazooClient) -> None:
        self.cluster = cluster
        self.zookeeper = zookeeper
        self.damaged = False

    def call(self, broker: int, key: int, version: int, body: Any) -> Any:
        with Connection(self.cluster.bootstrap_server(broker), timeout_s=WITHIN_S) as client:
            return client.call(key, version, body)

    def create(self, broker: int, name: str, replicas: int = 1) -> int:
        topic = {"name": name, "numPartitions": 1, "replicationFactor": replicas}
        topic |= {"assignments": [], "configs": []}
        body = {"topics": [topic], "timeoutMs": 30_000, "validateOnly": False}
        return int(self.call(broker, CREATE, 4, body)["topics"][0]["errorCode"])

    def delete(self, broker: int, name: str) -> int:
        body = {"topicNames": [name], "timeoutMs": 30_000}
        return int(self.call(broker, DELETE, 4, body)["responses"][0]["errorCode"])

    def alter(self, broker: int, topic: str, value: str, key: int = INCREMENTAL) -> int:
        config: dict[str, Any] = {"name": "retention.ms", "value": value}
        if key == INCREMENTAL:
            config |= {"configOperation": 0}
        resource = {"resourceType": TOPIC, "resourceName": topic, "configs": [config]}
        body = {"resources": [resource], "validateOnly": False}
        return int(self.call(broker, key, 0, body)["responses"][0]["errorCode"])

    def describe(self, broker: int, topic: str) -> tuple[int, str, str]:
        """Return error code, message and the topic's retention.ms."""
        resource = {"resourceType": TOPIC, "resourceName": topic, "configurationKeys": None}
        body = {"resources": [resource], "includeSynonyms": False}
        (result,) = self.call(broker, DESCRIBE_CONFIGS, 1, body)["results"]
        values = {config["name"]: config["value"] for config in result["configs"]}
        return result["errorCode"], result["errorMessage"], values.get("retention.ms", "")

    def leader_epoch(self, broker: int, topic: str) -> int:
        """Return the leader epoch of partition 0."""
        body = {"topics": [{"name": topic}], "allowAutoTopicCreation": False}
        described_topic = self.call(broker, METADATA, 7, body)["topics"][0]
        return int(described_topic["partitions"][0]["leaderEpoch"])

    def epoch(self) -> int:
        return int(self.cluster.status()["controller_epoch"])

    def wait_for_registrations(self) -> None:
        """Wait until every broker knows every broker."""
        wait(lambda: all(len(state["brokers"]) == 3 for state in self.states()))

    def states(self) -> list[Any]:
        return [self.command(broker, {"command": "state"}) for broker in BROKERS]

    def command(self, broker: int, message: dict[str, Any]) -> Any:
        path = self.cluster.data_dir / "nodes" / str(broker) / "control.sock"
        return call(path, message, timeout_s=WITHIN_S)

    def check(self) -> None:
        """Check that every broker forwards and that topics get three replicas."""
        self.cluster.wait_for_controller(timeout_s=WITHIN_S)
        self.wait_for_registrations()
        for broker in BROKERS:
            name = f"after-{next(numbers)}"
            assert self.create(broker, name, replicas=3) == NONE
            assert self.alter(broker, name, "1000") == NONE
            assert self.delete(broker, name) == NONE
        assert self.alter(1, "kept", "5000") == NONE
        assert [self.describe(broker, "kept") for broker in BROKERS] == [(NONE, "", "5000")] * 3

    def delete_controller(self) -> None:
        with suppress(NoNodeError):
            self.zookeeper.delete("/controller")

    def put(self, path: str, content: bytes | None) -> bytes | None:
        """Set or create a znode; if `content` is None, delete it. Return its earlier content."""
        self.damaged = True
        before: bytes | None
        try:
            before = self.zookeeper.get(path)[0]
        except NoNodeError:
            before = None
        if content is None:
            self.zookeeper.delete(path, recursive=True)
        else:
            # Without /controller_epoch, a new controller creates it at about the same time.
            try:
                self.zookeeper.create(path, content, makepath=True)
            except NodeExistsError:
                self.zookeeper.set(path, content)
        return before


def wait(condition: Callable[[], bool], within_s: float = WITHIN_S) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    folder = tmp_path_factory.mktemp("damaged")
    with Cluster(brokers=3, data_dir=folder, properties=PROPERTIES) as cluster:
        zookeeper = KazooClient(cluster.zookeeper_connect)
        zookeeper.start(timeout=30)
        try:
            result = Harness(cluster, zookeeper)
            assert result.create(1, "kept", replicas=3) == NONE
            assert result.alter(1, "kept", "5000") == NONE
            yield result
        finally:
            session = zookeeper.client_id[0]
            zookeeper.stop()
            zookeeper.close()
    check_run(folder, session if result.damaged else None)


def read_log(folder: Path, broker: int) -> str:
    return (folder / "nodes" / str(broker) / "node.log").read_text()


def check_run(folder: Path, session: int | None) -> None:
    """Check that no node failed, and that only expected changes violate properties.

    The expected changes are the writes of `session`, and changes of the epoch back to 1.
    """
    for broker in BROKERS:
        log = read_log(folder, broker)
        assert "Traceback" not in log
        assert "an unexpected error ends" not in log
    judgements = {
        judgement.row.property: judgement for judgement in judge(History(read_run(folder)))
    }
    failed = {
        name for name, judgement in judgements.items() if judgement.row.verdict is Verdict.FAIL
    }
    assert ("W6" in failed) == (session is not None)
    assert failed <= {"W1", "W2", "W4", "W5", "W6"}
    assert {
        judgement.row.verdict for name, judgement in judgements.items() if name not in failed
    } <= {
        Verdict.PASS,
        Verdict.NODATA,
    }
    # If /controller_epoch is deleted, epochs begin at 1 again, as in Kafka.
    by_hand = re.compile(rf"zxid \d+: session (0x{session or 0:x} |0x\w+ set epoch 1 after epoch)")
    for name in failed:
        for violation in judgements[name].violations:
            assert by_hand.match(violation.sentence), violation


@pytest.mark.parametrize("parent", ["/brokers/ids", "/bridgehead/nodes"])
@pytest.mark.parametrize("content", [None, b"{"])
def test_a_broker_registers_again(harness: Harness, parent: str, content: bytes | None) -> None:
    """The broker's registration is deleted or overwritten, but its session still exists."""
    for broker in BROKERS:
        path = f"{parent}/{broker}"
        held = harness.put(path, content)
        assert held
        began = time.monotonic()
        while harness.zookeeper.exists(path) is None or harness.zookeeper.get(path)[0] in (
            b"",
            b"{",
        ):
            assert time.monotonic() - began < SESSION_TIMEOUT_S
        harness.wait_for_registrations()
    harness.check()


def logs_its_epoch(cluster: Cluster, broker: int) -> bool:
    return "/controller_epoch" in read_log(cluster.data_dir, broker)


def test_no_controller_is_elected_until_the_epoch_is_repaired(harness: Harness) -> None:
    stored = harness.put("/controller_epoch", b"not a number")
    assert stored is not None
    harness.cluster.expire_controller()
    for broker in BROKERS:
        wait(partial(logs_its_epoch, harness.cluster, broker))
    assert harness.cluster.controller_id() is None
    harness.put("/controller_epoch", stored)
    harness.cluster.wait_for_controller(timeout_s=ACTIVE_WITHIN_S)
    harness.check()


@pytest.mark.parametrize("key", [INCREMENTAL, ALTER_CONFIGS])
@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("content", [b"{", b'{"version":1,"config":[1]}'])
def test_invalid_topic_configs_are_repaired_through_the_api(
    harness: Harness, content: bytes, moved: bool, key: int
) -> None:
    """Before the repair the topic has no configs, as in Kafka. DescribeConfigs returns NONE and a
    message that names the znode.
    """
    harness.put("/config/topics/kept", content)
    if moved:
        harness.cluster.expire_controller()
        harness.cluster.wait_for_controller(timeout_s=WITHIN_S)
    for broker in BROKERS:
        error, message, value = harness.describe(broker, "kept")
        assert (error, value) == (NONE, "604800000")
        assert "/config/topics/kept" in message
    assert harness.alter(2, "kept", "5000", key) == NONE
    harness.check()


def test_an_edited_partition_state_is_published_by_the_next_controller(harness: Harness) -> None:
    """The next controller gets the state from its own broker, and checks it against ZooKeeper.

    Operators of Kafka edit states, and then delete /controller so that all states are loaded.
    """
    assert harness.create(1, "edited", replicas=3) == NONE
    path = "/brokers/topics/edited/partitions/0/state"
    state = json.loads(harness.zookeeper.get(path)[0])
    harness.put(path, json.dumps(state | {"leader_epoch": 100}).encode())
    harness.delete_controller()
    wait(lambda: [harness.leader_epoch(broker, "edited") for broker in BROKERS] == [100] * 3)
    assert harness.delete(2, "edited") == NONE
    harness.check()


@dataclass(frozen=True)
class Damage:
    """A change of one znode. If `content` is None, the znode is deleted.

    If `stops_elections`, no controller is active until the repair. If not `has_higher_epoch`, the
    next controller has a lower epoch, so brokers reject it until the repair, as in Kafka. In both
    cases the test sends no writes before the repair.
    """

    name: str
    path: str
    content: bytes | None
    stops_elections: bool = False
    has_higher_epoch: bool = True

    @property
    def is_repaired_by_hand(self) -> bool:
        """False for ephemeral znodes, which the nodes repair."""
        is_registration = self.path.startswith(("/brokers/ids/", "/bridgehead/nodes/"))
        return self.path != "/controller" and not (is_registration and self.path[-1].isdecimal())


KEPT, TOKEN, STATE = "/brokers/topics/kept", "/delegation_token/tokens/x", "partitions/0/state"
DAMAGES = (
    Damage("controller deleted", "/controller", None),
    Damage("controller not JSON", "/controller", b"{"),
    Damage("controller names another broker", "/controller", b'{"version":1,"brokerid":9}'),
    Damage("epoch not a number", "/controller_epoch", b"x", True),
    Damage("epoch empty", "/controller_epoch", b"", True),
    Damage("epoch deleted", "/controller_epoch", None, has_higher_epoch=False),
    Damage("epoch negative", "/controller_epoch", b"-5", True),
    Damage("commit counter deleted", "/bridgehead/commit", None),
    Damage("commit counter not a number", "/bridgehead/commit", b"x"),
    Damage("outcomes not JSON", "/bridgehead/outcomes/0000000001", b"{"),
    Damage("outcomes with a wrong name", "/bridgehead/outcomes/x", b'{"outcomes":[]}'),
    Damage("new outcomes not JSON", "/bridgehead/outcomes/y", b"{"),
    Damage("floor not a number", "/bridgehead/floors/1-x", b"x"),
    Damage("floor with a wrong name", "/bridgehead/floors/x", b"1"),
    Damage("registration not JSON", "/brokers/ids/1", b"{"),
    Damage("registration is an array", "/brokers/ids/2", b"[]"),
    Damage("registration with a name that is not a number", "/brokers/ids/x", b"{}"),
    Damage("node address not JSON", "/bridgehead/nodes/3", b"{"),
    Damage("topic not JSON", KEPT, b"{"),
    Damage("topic empty", KEPT, b""),
    Damage("topic is an array", KEPT, b"[]"),
    Damage("topic without partition 0", KEPT, b'{"version":3,"partitions":{"1":[1]}}'),
    Damage("partition state not JSON", f"{KEPT}/{STATE}", b"{"),
    Damage("partition state deleted", f"{KEPT}/{STATE}", None),
    Damage("topic config not JSON", "/config/topics/kept", b"{"),
    Damage("topic config deleted", "/config/topics/kept", None),
    Damage("broker config not JSON", "/config/brokers/1", b"{"),
    Damage("cluster default not an object", "/config/brokers/<default>", b"3"),
    Damage("user config not JSON", "/config/users/u", b"{"),
    Damage("user's client config not JSON", "/config/users/u/clients/c", b"{"),
    Damage("ip config not JSON", "/config/ips/127.0.0.9", b"{"),
    Damage("config change not JSON", "/config/changes/config_change_9999999990", b"{"),
    Damage("config change without a number", "/config/changes/x", b"{}"),
    Damage("deletion of an unknown topic", "/admin/delete_topics/none", b""),
    Damage("ACLs not JSON", "/kafka-acl/Topic/kept", b"{"),
    Damage("ACL not an object", "/kafka-acl/Topic/kept", b'{"version":1,"acls":["x"]}'),
    Damage("ACL change not a pattern", "/kafka-acl-changes/acl_changes_9999999990", b"x"),
    Damage(
        "extended ACL change not JSON", "/kafka-acl-extended-changes/acl_changes_9999999990", b"{"
    ),
    Damage("token not JSON", TOKEN, b"{"),
    Damage(
        "token change not UTF-8", "/delegation_token/token_changes/token_change_9999999990", b"\xff"
    ),
    Damage("feature not JSON", "/feature", b"{"),
    Damage("feature deleted", "/feature", None),
    Damage("cluster id not JSON", "/cluster/id", b"{"),
)


# These rows always run. The others are marked long, because they are many.
SHORT = {
    "controller not JSON",
    "commit counter deleted",
    "topic not JSON",
    "partition state deleted",
    "user config not JSON",
    "ACL not an object",
}


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(damage, id=damage.name, marks=() if damage.name in SHORT else pytest.mark.long)
        for damage in DAMAGES
    ],
)
def test_everything_works_after_a_repair(harness: Harness, damage: Damage) -> None:
    path = damage.path
    before = harness.put(path, damage.content)
    if path != "/controller":
        harness.cluster.expire_controller()
    if damage.stops_elections:
        wait(lambda: harness.cluster.controller_id() is None)
    elif damage.has_higher_epoch:
        harness.cluster.wait_for_controller(timeout_s=WITHIN_S)
        name = f"during-{next(numbers)}"
        assert harness.create(1, name) == NONE
        assert harness.delete(2, name) == NONE
    for broker in BROKERS:
        harness.describe(broker, "kept")
    if damage.is_repaired_by_hand:
        harness.put(path, before)
        wait(lambda: harness.zookeeper.exists("/controller") is not None)
        harness.delete_controller()
    harness.check()


def expire_broker_session(harness: Harness, broker: int) -> None:
    wait(lambda: harness.command(broker, {"command": "state"})["session"] == "connected")
    harness.command(broker, {"command": "expire", "session": "broker"})


def expire_controller_if_active(harness: Harness) -> bool:
    """Expire the active controller's session. Return False if no controller is active."""
    try:
        harness.cluster.expire_controller()
    except ClusterError:
        return False
    return True


@pytest.mark.parametrize("times", [1, pytest.param(3, marks=pytest.mark.long)])
@pytest.mark.parametrize("sessions", ["controller", "brokers", "both"])
def test_everything_works_after_sessions_end(harness: Harness, sessions: str, times: int) -> None:
    for _ in range(times):
        if sessions != "brokers":
            wait(lambda: expire_controller_if_active(harness))
        if sessions != "controller":
            for broker in BROKERS:
                expire_broker_session(harness, broker)
    harness.check()
