"""Three released clients produce, consume and manage a group while brokers are killed.

A producer and the members of a group run during the first three kills. Then the members leave, and
the empty group is administered during three more kills. Each step begins when a broker has just
been killed (SIGKILL); the broker is restarted after the step. A call that fails with a retriable
error is repeated until a deadline; any other error fails the test.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from bridgehead.cluster import Cluster
from cluster_model.topic_names import GROUP_METADATA_TOPIC
from judge.verdicts import Verdict
from tests.integration.login_clients import Login, confluent_options
from tests.integration.pipeline_runs import failed, judged
from tests.integration.processes import wait_until
from tests.integration.record_clients import RECORD_CLIENTS
from tests.integration.record_clients.client import (
    DEADLINE_S,
    Consumer,
    RecordClient,
    RetriableError,
    retried,
)
from tests.integration.record_clients.confluent_kafka_ import translated

pytestmark = pytest.mark.long
TOPIC: Final = "orders"
GROUP: Final = "billing"
PARTITIONS: Final = 3
SILENT_S: Final = 30.0
DELETED: Final = 10
"""The number of records of partition 0 that the test deletes."""
PROPERTIES: Final = {
    "zookeeper.session.timeout.ms": "6000",
    "replica.fetch.backoff.ms": "200",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "3",
    "min.insync.replicas": "2",
}
# The producer and the members of the group log in as alice. The super user creates the topic.
SECURITY: Final = {
    "listeners": {"CLIENTS": {"protocol": "SASL_SSL", "mechanisms": ["SCRAM-SHA-256"]}},
    "users": {"admin": {"password": "admin-secret", "super": True}, "alice": "alice-secret"},
    "acls": [
        {
            "principal": "User:alice",
            "operations": ["read", "write", "describe", "delete"],
            "resource": f"topic:{TOPIC}",
        },
        {
            "principal": "User:alice",
            "operations": ["read", "describe", "delete"],
            "resource": f"group:{GROUP}",
        },
    ],
}


class Member:
    """A consumer in a thread. It commits after each poll, and remembers what it read."""

    def __init__(self, consumer: Consumer) -> None:
        self._seen: dict[tuple[int, int], bytes] = {}
        self._lock = threading.Lock()  # guards _seen
        self.assigned: set[int] = set()
        self.commits = 0
        self.sought = threading.Event()
        self.error: BaseException | None = None
        self._seek_wanted = False
        self._consumer = consumer
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def seen(self) -> dict[tuple[int, int], bytes]:
        """Return the values that it has read, by partition and offset."""
        with self._lock:
            return dict(self._seen)

    def seek_to_start(self) -> None:
        """Make the thread read offset 0 of one partition again, and then set `sought`."""
        self._seek_wanted = True

    def leave(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                self._step()
            self._consumer.close()
        except BaseException as error:
            self.error = error

    def _step(self) -> None:
        seeking = None
        if self._seek_wanted and not self.sought.is_set() and self.assigned:
            # A rebalance may undo the seek, so it is repeated until record 0 is read.
            seeking = min(self.assigned)
            self._consumer.seek(seeking, 0)
        try:
            records = self._consumer.poll()
        except RetriableError:
            return
        for partition, offset, value in records:
            with self._lock:
                assert self._seen.setdefault((partition, offset), value) == value
            if (partition, offset) == (seeking, 0):
                self.sought.set()
        self.assigned = self._consumer.assignment()
        try:
            self._consumer.commit()
        except RetriableError:
            return  # The next poll rejoins the group if that is necessary.
        self.commits += 1


class Story:
    """A producer, and members of one group."""

    def __init__(self, client: RecordClient) -> None:
        self.client = client
        self.members: list[Member] = []
        self._producer = client.producer()
        self._numbers = itertools.count()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._produce)

    @property
    def acknowledged(self) -> dict[tuple[int, int], bytes]:
        return dict(self._producer.acknowledged)

    def _produce(self) -> None:
        while not self._stopped.wait(0.01):
            for partition in range(PARTITIONS):
                self._producer.send(partition, b"%d" % next(self._numbers))

    def join(self, name: str) -> Member:
        """Add a member to the group."""
        member = Member(self.client.consumer(name))
        self.members.append(member)
        return member

    def until(self, is_true: Callable[[], object]) -> None:
        """Wait for a condition; fail when the producer or a member has failed."""

        def checked() -> object:
            assert not self._producer.failures
            for member in self.members:
                if member.error is not None:
                    raise member.error
            return is_true()

        wait_until(checked, timeout_s=DEADLINE_S)

    def until_more(self, count: Callable[[], int], more: int) -> None:
        """Wait until a count has grown by `more`."""
        enough = count() + more
        self.until(lambda: count() >= enough)

    def is_shared(self) -> bool:
        """Return whether every member owns partitions, and every partition has one owner."""
        owned = [member.assigned for member in self.members]
        return all(owned) and sorted(itertools.chain(*owned)) == list(range(PARTITIONS))

    def stop_producing(self) -> None:
        """Stop the producer's thread, and wait until every record was acknowledged."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._producer.flush()
        self.until(lambda: True)

    def seen(self) -> dict[tuple[int, int], bytes]:
        """Return every value that a member has read, by partition and offset."""
        return {at: value for member in self.members for at, value in member.seen().items()}

    def __enter__(self) -> Story:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        for member in self.members:
            member.leave()
        self._producer.close()


class Brokers:
    """The cluster of a test, and an admin client with every right."""

    def __init__(self, cluster: Cluster, observer: Login) -> None:
        self.cluster = cluster
        # Without this interval the client keeps asking a dead controller (docs/tools.md).
        refresh = {"topic.metadata.refresh.interval.ms": 1000}
        self.admin = AdminClient({**confluent_options(observer), **refresh})

    def partitions(self, topic: str) -> dict[int, Any]:
        return dict(self.admin.list_topics(topic, timeout=60).topics[topic].partitions)

    def end_offsets(self) -> dict[int, int]:
        latest = {
            TopicPartition(TOPIC, number): OffsetSpec.latest() for number in range(PARTITIONS)
        }

        def ask() -> dict[int, int]:
            # librdkafka may still send the leader epoch from before the kill. Then the broker
            # returns a retriable error.
            with translated():
                offsets = self.admin.list_offsets(latest)
                return {
                    partition.partition: int(done.result(60).offset)
                    for partition, done in offsets.items()
                }

        return retried(ask)

    def coordinator(self) -> int:
        return int(self.partitions(GROUP_METADATA_TOPIC)[0].leader)

    def leader_of_0(self) -> int:
        return int(self.partitions(TOPIC)[0].leader)

    def controller(self) -> int:
        return self.cluster.wait_for_controller()

    def all_in_sync(self) -> bool:
        topics = TOPIC, GROUP_METADATA_TOPIC
        partitions = [
            partition for topic in topics for partition in self.partitions(topic).values()
        ]
        return all(len(partition.isrs) == 3 for partition in partitions)

    @contextmanager
    def without(self, choose: Callable[[], int]) -> Iterator[None]:
        """Wait until all replicas are in sync, and kill a broker; restart it after the block."""
        wait_until(self.all_in_sync, timeout_s=DEADLINE_S)
        victim = choose()
        self.cluster.kill_node(victim)
        yield
        self.cluster.start_node(victim)


@contextmanager
def started(listener: str, folder: Path) -> Iterator[tuple[Brokers, Login]]:
    """Start three brokers and create the topic; yield the brokers and the login of the client."""
    security: dict[str, Any] = SECURITY if listener == "SASL_SSL" else {}
    with Cluster(data_dir=folder, properties=PROPERTIES, **security) as cluster:
        servers = cluster.bootstrap_servers
        if security:
            mechanism, ca = "SCRAM-SHA-256", folder / "tls" / "ca.pem"
            observer = Login(servers, listener, mechanism, "admin", "admin-secret", ca)
            login = Login(servers, listener, mechanism, "alice", "alice-secret", ca)
        else:
            observer = login = Login(servers, listener)
        brokers = Brokers(cluster, observer)
        brokers.admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(60)
        yield brokers, login


IN_CI: Final = {
    ("confluent-kafka", "SASL_SSL"),
    ("kafka-python", "PLAINTEXT"),
    ("aiokafka", "SASL_SSL"),
}


@pytest.mark.parametrize(
    ("name", "listener"),
    [
        pytest.param(*case, marks=() if case in IN_CI else pytest.mark.soak)
        for case in product(RECORD_CLIENTS, ("PLAINTEXT", "SASL_SSL"))
    ],
)
def test_client_loses_nothing_under_kills(tmp_path: Path, name: str, listener: str) -> None:
    with started(listener, tmp_path) as (brokers, login):
        client = RECORD_CLIENTS[name](login, TOPIC, GROUP)
        with Story(client) as story:
            members_go_on_under_kills(story, brokers)
            story.stop_producing()
            acknowledged = story.acknowledged
            story.until(lambda: acknowledged.items() <= story.seen().items())
        for member in story.members:
            assert member.error is None
        group_is_administered_under_kills(client, brokers)
        read = read_all(client, brokers.end_offsets())
    kept = {at: value for at, value in acknowledged.items() if at[0] != 0 or at[1] >= DELETED}
    # The logs have only acknowledged records. The producer is idempotent, so a resend adds none.
    assert read == kept
    judgements = judged(tmp_path)
    assert judgements["D6"].row.verdict is Verdict.PASS
    assert judgements["D6"].row.judged > 100
    assert judgements["D11"].row.verdict is Verdict.PASS
    assert judgements["D11"].row.judged > 0
    assert not failed(judgements)


def members_go_on_under_kills(story: Story, brokers: Brokers) -> None:
    """Two members share the topic and commit, one of them seeks, and records are deleted."""
    client = story.client
    first = story.join("first")
    story.until(story.is_shared)
    with brokers.without(brokers.controller):
        second = story.join("second")
        story.until(story.is_shared)
        story.until_more(lambda: len(story.acknowledged), 50)
    with brokers.without(brokers.coordinator):
        story.until_more(lambda: first.commits, 2)
        story.until_more(lambda: second.commits, 2)
        story.until(lambda: retried(client.describe_group) == ("Stable", {"first", "second"}))
        first.seek_to_start()
        story.until(first.sought.is_set)
    with brokers.without(brokers.leader_of_0):
        # Until a new coordinator has loaded the group, no broker lists it, as in Kafka.
        wait_until(lambda: GROUP in retried(client.list_groups))
        story.until_more(lambda: len(story.acknowledged), 50)
        assert retried(lambda: client.delete_records(0, DELETED)) == DELETED


def group_is_administered_under_kills(client: RecordClient, brokers: Brokers) -> None:
    """The offsets of the empty group are read, reset and deleted; then the group is deleted."""
    wait_until(lambda: retried(client.describe_group)[0] == "Empty")
    assert set(retried(client.committed)) == set(range(PARTITIONS))
    new = dict.fromkeys(range(PARTITIONS), DELETED + 5)
    with brokers.without(brokers.controller):
        retried(lambda: client.reset_offsets(new))
        assert retried(client.committed) == new
    with brokers.without(brokers.coordinator):
        assert retried(client.committed) == new
        retried(lambda: client.delete_offsets([0]))
        assert retried(client.committed) == {1: DELETED + 5, 2: DELETED + 5}
    with brokers.without(brokers.coordinator):
        assert retried(client.committed) == {1: DELETED + 5, 2: DELETED + 5}
        retried(client.delete_group)
        assert GROUP not in retried(client.list_groups)


def read_all(client: RecordClient, ends: Mapping[int, int]) -> dict[tuple[int, int], bytes]:
    """Read all records with a new member of the deleted group; return them by (partition, offset).

    kafka-python sometimes stays in the state REBALANCING although JoinGroup and SyncGroup were
    answered. It then sends nothing, not even a Heartbeat. This function replaces a member that
    returns no records for 30 s, as if a user restarted the client.
    """
    values: dict[tuple[int, int], bytes] = {}
    deadline = time.monotonic() + DEADLINE_S
    while not all((partition, end - 1) in values for partition, end in ends.items()):
        assert time.monotonic() < deadline, f"only {len(values)} records were read"
        consumer = client.consumer("reader")
        silent_at = time.monotonic() + SILENT_S
        while time.monotonic() < silent_at:
            records = retried(consumer.poll)
            values.update({(partition, offset): value for partition, offset, value in records})
            if all((partition, end - 1) in values for partition, end in ends.items()):
                break
            silent_at = time.monotonic() + SILENT_S if records else silent_at
        consumer.close()
    return values
