"""Attacks on ZooKeeper's data, by somebody who may write znodes.

They run on a cluster of their own, because the judge would rightly report foreign writes. What must
hold: revocations apply, some broker is an active controller, records stay, no node dies, and no log
has a traceback.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import yaml
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramMechanism,
    UserScramCredentialDeletion,
)
from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError, NoNodeError

from tests.hostile.family import Report
from tests.hostile.target import bridgehead

_BROKERS: Final = (1, 2, 3)
_PASSWORDS: Final = {"admin": "admin-secret", "alice": "alice-secret", "bob": "bob-secret"}
_DATA: Final = "alice-data"
RECORDS: Final = 100
SESSION_TIMEOUT_S: Final = 3
SERVES_WITHIN_S: Final = 60.0
_APPLIES_WITHIN_S: Final = 30.0
_ELECTIONS_MAX: Final = 3  # after one odd znode and one deletion of /controller
_REGISTRATION: Final = {
    "endpoints": ["CLIENT://localhost:9"],
    "listener_security_protocol_map": {"CLIENT": "SASL_PLAINTEXT"},
    "version": 5,
}


def _registered(**changes: Any) -> bytes:
    return json.dumps(_REGISTRATION | changes).encode()


# Valid JSON, odd values: a name, a path and a content for each.
ODD: Final[tuple[tuple[str, str, bytes], ...]] = (
    ("rack is a number", "/brokers/ids/77", _registered(rack=5)),
    ("rack is an object", "/brokers/ids/77", _registered(rack={"a": 1})),
    ("port 2^40", "/brokers/ids/77", _registered(endpoints=[f"CLIENT://h:{2**40}"])),
    ("a long host", "/brokers/ids/77", _registered(endpoints=[f"CLIENT://{'h' * 40_000}:9"])),
    (
        "protocol is a list",
        "/brokers/ids/77",
        _registered(listener_security_protocol_map={"CLIENT": [1]}),
    ),
    ("broker id 2^40", f"/brokers/ids/{2**40}", _registered()),
    ("outcome 10^23", f"/bridgehead/outcomes/{10**23 - 1}", b'{"outcomes":[]}'),
    ("floor of 5,000 digits", "/bridgehead/floors/1-zy", b"9" * 5_000),
    ("topic with a long name", f"/brokers/topics/{'x' * 40_000}", b'{"partitions":{"0":[1]}}'),
    ("replica 2^40", "/brokers/topics/odd", b'{"partitions":{"0":[1099511627776]}}'),
    ("no replicas", "/brokers/topics/odd", b'{"partitions":{"0":[]}}'),
    ("token of 10^30 ms", "/delegation_token/tokens/odd", b'{"version":3,"maxTimestamp":1e30}'),
    ("ACLs of a long name", f"/kafka-acl/Topic/{'x' * 40_000}", b'{"version":1,"acls":[]}'),
    ("a deep array", "/config/users/odd", b"[" * 100_000),
    ("outcome with a child", "/bridgehead/outcomes/0000000001/child", b""),
)  # fmt: skip
# Each sorts after the notifications of its folder.
STRAYS: Final = tuple(
    f"{folder}/{name}"
    for folder, word in (
        ("/config/changes", "config_change_"),
        ("/kafka-acl-changes", "acl_changes_"),
        ("/kafka-acl-extended-changes", "acl_changes_"),
    )
    for name in ("zzz", f"{word}9999999999")
)


class Scene:
    """The cluster, a session of the attacker at ZooKeeper, and the findings."""

    def __init__(self, data: Path, config: Path) -> None:
        self.data = data
        self._config = config
        self.findings: list[str] = []
        self.done: list[str] = []
        self.up()
        self.zookeeper = KazooClient(self.status()["zookeeper_connect"])
        self.zookeeper.start(timeout=30)

    def create_records(self) -> None:
        """Create `alice-data` with its records."""
        admin = AdminClient(self.client("admin"))
        admin.create_topics([NewTopic(_DATA, 1, 3)])[_DATA].result(timeout=60)
        producer = Producer(self.client("admin") | {"acks": "all"})
        for number in range(RECORDS):
            producer.produce(_DATA, b"%d" % number)
        producer.flush(30)
        self.expect(self.records() == RECORDS, "the records cannot be read")

    def pids(self) -> dict[int, int]:
        """Return the process of each broker."""
        return {broker["id"]: broker["pid"] for broker in self.status()["brokers"]}

    def expect_no_traceback(self) -> None:
        for log in sorted(self.data.glob("nodes/*/node.log")):
            _, word, trace = log.read_text(errors="replace").partition("Traceback")
            self.expect(not word, f"a traceback in {log.parent.name}/{log.name}: {trace[:2000]}")

    def up(self) -> None:
        started = bridgehead(
            *("up", "--json", "--ports", "auto", "--detach"),
            *("--config", str(self._config), "--data-dir", str(self.data)),
            check=False,
        )
        assert started.returncode == 0, started.stdout + started.stderr

    def down(self) -> None:
        bridgehead("down", "--data-dir", str(self.data), check=False)

    def status(self) -> Any:
        return json.loads(bridgehead("status", "--json", "--data-dir", str(self.data)).stdout)

    def client(self, user: str, broker: int | None = None) -> dict[str, Any]:
        brokers = self.status()["brokers"]
        addresses = [
            b["listeners"]["CLIENT"]
            for b in brokers
            if b["listeners"] and broker in (None, b["id"])
        ]
        return {
            "bootstrap.servers": ",".join(addresses),
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": user,
            "sasl.password": _PASSWORDS[user],
            "topic.metadata.refresh.interval.ms": 500,
            "log_level": 0,
        }

    def expect(self, holds: bool, finding: str) -> None:
        if not holds:
            self.findings.append(finding)

    def within(self, condition: Callable[[], bool], seconds: float, finding: str) -> bool:
        """Wait for a condition, which may raise errors of clients until it holds."""
        deadline = time.monotonic() + seconds
        while True:
            with suppress(KafkaException, NoNodeError):
                if condition():
                    return True
            if time.monotonic() > deadline:
                self.findings.append(finding)
                return False
            time.sleep(0.2)

    def serves(self, name: str) -> bool:
        """Check that a topic can be created, and that every broker lists it."""
        topic = "serves-" + str(time.monotonic_ns())

        def created() -> bool:
            admin = AdminClient(self.client("admin"))
            try:
                admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(timeout=10)
            except KafkaException as error:
                return bool(error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS)
            return True

        def listed() -> bool:
            lists = (AdminClient(self.client("admin", b)).list_topics(timeout=5) for b in _BROKERS)
            return all(topic in listing.topics for listing in lists)

        return self.within(
            created, SERVES_WITHIN_S, f"{name}: no topic can be created"
        ) and self.within(listed, SERVES_WITHIN_S, f"{name}: a broker does not list a new topic")

    def epoch(self) -> int:
        return int(self.zookeeper.get("/controller_epoch")[0])

    def write(self, path: str, content: bytes) -> bytes | None:
        """Write a znode; return its earlier content."""
        try:
            self.zookeeper.create(path, content, makepath=True)
        except NodeExistsError:
            before: bytes = self.zookeeper.get(path)[0]
            self.zookeeper.set(path, content)
            return before
        return None

    def move(self) -> None:
        with suppress(NoNodeError):
            self.zookeeper.delete("/controller")

    def records(self) -> int:
        """Return how many records of `alice-data` a consumer reads."""
        consumer = Consumer(
            self.client("admin") | {"group.id": "hostile", "enable.auto.commit": False}
        )
        consumer.assign([TopicPartition(_DATA, 0, 0)])
        count, deadline = 0, time.monotonic() + 30
        while count < RECORDS and time.monotonic() < deadline:
            message = consumer.poll(1.0)
            count += message is not None and message.error() is None
        consumer.close()
        return count


def odd_znodes(scene: Scene) -> None:
    for name, path, content in ODD:
        before, epoch = scene.write(path, content), scene.epoch()
        scene.move()
        scene.serves(name)
        time.sleep(1)
        elections = scene.epoch() - epoch
        scene.expect(elections <= _ELECTIONS_MAX, f"{name}: {elections} elections")
        if before is None:
            scene.zookeeper.delete(path, recursive=True)
        else:
            scene.zookeeper.set(path, before)
    scene.serves("after all odd znodes are gone")


def stray_notifications(scene: Scene) -> None:
    for path in STRAYS:
        scene.write(path, b"")
    admin = AdminClient(scene.client("admin"))
    everything = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, "User:alice", None,
        AclOperation.ANY, AclPermissionType.ANY,
    )  # fmt: skip
    (removed,) = admin.delete_acls([everything]).values()
    scene.expect(len(removed.result(timeout=30)) > 0, "no ACL was removed")
    deletion = UserScramCredentialDeletion("bob", ScramMechanism.SCRAM_SHA_256)
    admin.alter_user_scram_credentials([deletion])["bob"].result(timeout=30)
    for broker in _BROKERS:
        scene.within(
            lambda broker=broker: not _may_list(scene, broker, _DATA),  # type: ignore[misc]
            _APPLIES_WITHIN_S,
            f"stray notification: alice keeps her rights at broker {broker}",
        )
        scene.within(
            lambda broker=broker: not _logs_in(scene, "bob", broker),  # type: ignore[misc]
            _APPLIES_WITHIN_S,
            f"stray notification: bob's deleted password works at broker {broker}",
        )
    resource = ConfigResource("topic", _DATA)
    resource.add_incremental_config(
        ConfigEntry("max.message.bytes", "500", incremental_operation=AlterConfigOpType.SET)
    )
    admin.incremental_alter_configs([resource])[resource].result(timeout=30)
    scene.within(
        lambda: _produced(scene, b"x" * 5_000) == KafkaError.MSG_SIZE_TOO_LARGE,
        _APPLIES_WITHIN_S,
        "stray notification: max.message.bytes does not apply",
    )
    for path in STRAYS:
        scene.zookeeper.delete(path)


def _may_list(scene: Scene, broker: int, topic: str) -> bool:
    return topic in AdminClient(scene.client("alice", broker)).list_topics(timeout=5).topics


def _logs_in(scene: Scene, user: str, broker: int) -> bool:
    try:
        AdminClient(scene.client(user, broker)).list_topics(timeout=3)
    except KafkaException:
        return False
    return True


def _produced(scene: Scene, value: bytes) -> int:
    """Return the error code of one record of admin."""
    errors: list[int] = []
    producer = Producer(scene.client("admin") | {"message.timeout.ms": 10_000})
    producer.produce(
        _DATA, value, callback=lambda error, _: errors.append(error.code() if error else 0)
    )
    producer.flush(15)
    return errors[0] if errors else -1


def damaged_topic(scene: Scene) -> None:
    path = f"/brokers/topics/{_DATA}"
    sound = scene.write(path, b"{")
    scene.move()
    scene.serves("a damaged topic")
    time.sleep(2)
    assert sound is not None
    scene.write(path, sound)
    scene.move()
    scene.within(
        lambda: scene.records() == RECORDS, SERVES_WITHIN_S, "a damaged topic lost its records"
    )


FAMILIES: Final = (odd_znodes, damaged_topic, stray_notifications)


@contextmanager
def scene_in(folder: Path) -> Iterator[Scene]:
    """Start a cluster of three brokers and three ZooKeeper servers; stop it at the end."""
    document = {
        "brokers": len(_BROKERS),
        "zookeeper": {"members": 3},
        "listeners": {"CLIENT": {"protocol": "SASL_PLAINTEXT"}},
        "users": {
            name: {"password": word, "super": name == "admin"} for name, word in _PASSWORDS.items()
        },
        "acls": [
            {
                "principal": "User:alice",
                "operations": ["describe", "write", "read"],
                "resource": "topic:alice",
                "pattern": "prefixed",
            }
        ],
        "properties": {
            "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_S * 1000),
            "connection.failed.authentication.delay.ms": "1",
        },
    }
    config = folder / "cluster.yaml"
    config.write_text(yaml.safe_dump(document))
    scene = Scene(folder / "data", config)
    try:
        yield scene
    finally:
        scene.zookeeper.stop()
        scene.zookeeper.close()
        scene.down()


def attack_zookeeper(folder: Path, report: Report) -> None:
    """Run every attack on one cluster, and report which of them ran."""
    with scene_in(folder) as scene:
        scene.create_records()
        pids = scene.pids()
        for family in FAMILIES:
            family(scene)
            scene.done.append(family.__name__)
        scene.expect(scene.pids() == pids, f"brokers died: {pids} became {scene.pids()}")
        scene.expect_no_traceback()
    report.tries += len(scene.done)
    report.figures.append(f"ran: {', '.join(scene.done)}")
    report.findings += scene.findings
