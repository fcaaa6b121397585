"""Records during a rehearsal: a producer and a consumer of a group, through whatever broker serves.

The producer sends numbered records with acks=all to a topic of its own, at most twenty a second.
At the end of a phase, every record that was acknowledged until then is looked for in the topic. At
the end of the rehearsal the group must have read them all. Needs confluent-kafka.
"""

from __future__ import annotations

import importlib.util
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from bridgehead.admin import AdminClient, NewTopicWithReplication, quota_entity
from bridgehead.admin.errors import AdminError
from bridgehead.cluster.errors import ClusterError
from rehearse.load import PREFIX, USER

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message

TOPIC: Final = f"{PREFIX}records"
TOPICS: Final = (TOPIC, "__consumer_offsets")
"""The topics whose partitions a broker must have before the next one leaves."""
_GROUP: Final = f"{PREFIX}group"
_PARTITIONS: Final = 3
_PAUSE_S: Final = 0.05
_PENDING_MAX: Final = 10  # slow brokers get no backlog
_POLL_S: Final = 0.2
_DELIVERY_MS: Final = 30_000
_FLUSH_S: Final = 2.0
_READ_S: Final = 60.0
_CLIENT_ID: Final = f"{PREFIX}records"
_SILENT: Final = {"log_level": 0, "error_cb": lambda _: None}  # brokers leave on purpose
# The migrated quotas of default users and clients would hold the records back.
_QUOTA: Final = dict.fromkeys(("producer_byte_rate", "consumer_byte_rate"), 1e9) | {
    "request_percentage": 1e4
}


@dataclass(slots=True)
class PhaseRecords:
    """What the producer and the consumer saw in one phase."""

    phase: str
    acknowledged: int = 0
    consumed: int = 0
    """Records that the group read for the first time."""
    lost: int | None = None
    """Acknowledged records of this or an earlier phase, in the topic until now, but not after this
    phase. None: the topic could not be read within a minute."""
    errors: Counter[str] = field(default_factory=Counter)
    longest_wait_s: float = 0.0
    """The longest time without an acknowledgement, which may have begun in an earlier phase."""
    longest_silence_s: float = 0.0
    """The longest time without a consumed record."""


def check_client() -> None:
    """Raise ClusterError if confluent-kafka is not installed."""
    if importlib.util.find_spec("confluent_kafka") is None:
        raise ClusterError(
            "Records need confluent-kafka: `pip install confluent-kafka`, or leave --records out."
        )


class RecordLoad:
    """Produces and consumes in two threads until it is stopped."""

    def __init__(
        self, clients: Mapping[str, Any], admin: Mapping[str, object], brokers: int
    ) -> None:
        """`clients` and `admin`: how librdkafka's and our admin client connect."""
        self._clients = {**clients, **_SILENT, "client.id": _CLIENT_ID}
        self._admin = admin
        self._replication = min(3, brokers)
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=run, name=f"rehearsal-{run.__name__}", daemon=True)
            for run in (self._produce, self._consume)
        ]
        self._acknowledged: set[int] = set()
        self._consumed: set[int] = set()
        self._missed: set[int] = set()
        self._last_ack_s: float | None = None
        self._last_read_s: float | None = None
        self.phases = [PhaseRecords("zookeeper")]

    def start(self) -> None:
        """Create the topic and a quota, and begin. Raises ClusterError."""
        topic = NewTopicWithReplication(TOPIC, _PARTITIONS, self._replication)
        entity = quota_entity({"user": USER, "client-id": _CLIENT_ID})
        with AdminClient(self._admin) as client:
            try:
                client.create_topic(topic)
                error = client.alter_client_quotas({entity: _QUOTA})[entity]
                if error is not None:
                    raise error
            except AdminError as error:
                raise ClusterError(f"{TOPIC} cannot be created: {error}") from error
        for thread in self._threads:
            thread.start()

    @property
    def is_flowing(self) -> bool:
        """Whether records were acknowledged and consumed."""
        with self._lock:
            return bool(self._acknowledged and self._consumed)

    def begin_phase(self, name: str) -> PhaseRecords:
        """Count what follows for another phase, which is returned."""
        with self._lock:
            self.phases.append(PhaseRecords(name))
            return self.phases[-1]

    def end(self) -> None:
        """Produce no more; the group reads on."""
        self._ending.set()
        producer, _ = self._threads
        if producer.is_alive():
            producer.join(_FLUSH_S + 5)

    @property
    def unread(self) -> int:
        """How many acknowledged records the group has not read, without those that are lost."""
        with self._lock:
            return len(self._acknowledged - self._missed - self._consumed)

    def stop(self) -> None:
        """Stop everything. May be called twice."""
        self._stopping.set()
        self._ending.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(_FLUSH_S + 5)

    def look(self) -> None:
        """Note which acknowledged records the topic has no more, and say so in the phase."""
        with self._lock:
            expected = self._acknowledged - self._missed
            phase = self.phases[-1]
        kept = self._read_topic()
        if kept is not None:
            missed = expected - kept
            self._missed |= missed
            phase.lost = len(missed)

    def _produce(self) -> None:
        from confluent_kafka import Producer

        settings = {"acks": "all", "delivery.timeout.ms": _DELIVERY_MS, "linger.ms": 0}
        producer = Producer({**self._clients, **settings})
        number = 0
        while not self._ending.wait(_PAUSE_S):
            if len(producer) < _PENDING_MAX:
                producer.produce(TOPIC, str(number).encode(), on_delivery=self._delivered)
                number += 1
            producer.poll(0)
        producer.flush(_FLUSH_S)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        with self._lock:
            phase = self.phases[-1]
            if error is not None:
                phase.errors[error.name()] += 1
                return
            phase.acknowledged += 1
            self._acknowledged.add(_number(message))
            now_s = time.monotonic()
            if self._last_ack_s is not None:
                phase.longest_wait_s = max(phase.longest_wait_s, now_s - self._last_ack_s)
            self._last_ack_s = now_s

    def _consume(self) -> None:
        with self._consumer(_GROUP) as consumer:
            consumer.subscribe([TOPIC])
            while not self._stopping.is_set():
                message = consumer.poll(_POLL_S)
                if message is not None:
                    self._read(message)

    def _read(self, message: Message) -> None:
        with self._lock:
            phase = self.phases[-1]
            if (error := message.error()) is not None:
                phase.errors[error.name()] += 1
                return
            now_s = time.monotonic()
            if self._last_read_s is not None:
                silence_s = now_s - self._last_read_s
                phase.longest_silence_s = max(phase.longest_silence_s, silence_s)
            self._last_read_s = now_s
            phase.consumed += _number(message) not in self._consumed
            self._consumed.add(_number(message))

    def _read_topic(self) -> set[int] | None:
        """Return the records of the topic now; None if it cannot be read within a minute."""
        from confluent_kafka import OFFSET_BEGINNING, KafkaException, TopicPartition

        deadline_s = time.monotonic() + _READ_S
        numbers: set[int] = set()
        with self._consumer(f"{_GROUP}-check") as consumer:
            partitions = [TopicPartition(TOPIC, index) for index in range(_PARTITIONS)]
            ends: dict[int, int] = {}
            while len(ends) < _PARTITIONS:
                for partition in partitions:
                    try:
                        _, ends[partition.partition] = consumer.get_watermark_offsets(
                            partition, timeout=5
                        )
                    except KafkaException:
                        if time.monotonic() > deadline_s:
                            return None
            consumer.assign([TopicPartition(TOPIC, i, OFFSET_BEGINNING) for i in ends])
            left = {index for index, end in ends.items() if end > 0}
            while left:
                if time.monotonic() > deadline_s:
                    return None
                message = consumer.poll(_POLL_S)
                if message is None or message.error() is not None:
                    continue
                numbers.add(_number(message))
                if (message.offset() or 0) + 1 >= ends[message.partition() or 0]:
                    left.discard(message.partition() or 0)
        return numbers

    @contextmanager
    def _consumer(self, group: str) -> Iterator[Consumer]:
        from confluent_kafka import Consumer

        consumer = Consumer({**self._clients, "group.id": group, "auto.offset.reset": "earliest"})
        try:
            yield consumer
        finally:
            consumer.close()


def _number(message: Message) -> int:
    value = message.value()
    assert isinstance(value, bytes)
    return int(value)
