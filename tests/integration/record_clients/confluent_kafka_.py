"""confluent-kafka (librdkafka)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Final

import confluent_kafka
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.integration.login_clients import Login, confluent_options
from tests.integration.record_clients.client import (
    DEADLINE_MS,
    REQUEST_TIMEOUT_S,
    RecordClient,
    RetriableError,
)
from tests.integration.record_clients.kafka_python import KafkaPython

# librdkafka sets `KafkaError.retriable` only for transactional producers.
_RETRIABLE: Final = {
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError._TRANSPORT,
    KafkaError._WAIT_COORD,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.UNKNOWN_LEADER_EPOCH,
}
# After these errors a member polls and commits again.
_REJOINS: Final = {
    KafkaError._ASSIGNMENT_LOST,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.UNKNOWN_MEMBER_ID,
}


@contextmanager
def translated(codes: Collection[int] = frozenset(_RETRIABLE)) -> Iterator[None]:
    """Raise RetriableError instead of these errors of librdkafka."""
    try:
        yield
    except KafkaException as error:
        _raise_if_retriable(error.args[0], codes)
        raise


def _raise_if_retriable(error: KafkaError, codes: Collection[int]) -> None:
    if error.code() in codes:
        raise RetriableError(str(error)) from None


class _Producer:
    def __init__(self, options: Mapping[str, Any], topic: str) -> None:
        self._topic = topic
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self.failures: list[object] = []
        self._producer = confluent_kafka.Producer(
            {
                **options,
                "acks": "all",
                "enable.idempotence": True,
                "message.timeout.ms": DEADLINE_MS,
            }
        )

    def send(self, partition: int, value: bytes) -> None:
        self._producer.produce(self._topic, value, partition=partition, on_delivery=self._delivered)
        self._producer.poll(0)

    def _delivered(self, error: object, message: confluent_kafka.Message) -> None:
        if error is not None:
            self.failures.append(error)
            return
        self.acknowledged[message.partition(), message.offset()] = message.value()

    def flush(self) -> None:
        self._producer.flush()

    def close(self) -> None:
        self._producer.flush()


class _Consumer:
    def __init__(self, options: Mapping[str, Any], topic: str) -> None:
        self._topic = topic
        self._consumer = confluent_kafka.Consumer(
            {**options, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        )
        self._consumer.subscribe([topic])

    def poll(self) -> list[tuple[int, int, bytes]]:
        records = []
        for message in self._consumer.consume(100, 0.1):
            error = message.error()
            if error is None:
                records.append((message.partition(), message.offset(), message.value()))
            elif error.code() not in _RETRIABLE | _REJOINS:
                raise KafkaException(error)
        return records

    def assignment(self) -> set[int]:
        return {partition.partition for partition in self._consumer.assignment()}

    def seek(self, partition: int, offset: int) -> None:
        self._consumer.seek(TopicPartition(self._topic, partition, offset))

    def commit(self) -> None:
        with translated(_RETRIABLE | _REJOINS | {KafkaError._NO_OFFSET}):
            for partition in self._consumer.commit(asynchronous=False):
                if partition.error is not None:
                    raise KafkaException(partition.error)

    def close(self) -> None:
        self._consumer.close()


class Confluent(RecordClient):
    """confluent-kafka. Its one admin client is never replaced, because it reconnects by itself."""

    def __init__(self, login: Login, topic: str, group: str) -> None:
        super().__init__(login, topic, group)
        self._admin = AdminClient(self._options())

    def _options(self) -> dict[str, Any]:
        return {**confluent_options(self.login), "topic.metadata.refresh.interval.ms": 1000}

    def producer(self) -> _Producer:
        return _Producer(self._options(), self.topic)

    def consumer(self, name: str) -> _Consumer:
        more = {"group.id": self.group, "client.id": name}
        return _Consumer({**self._options(), **more}, self.topic)

    def list_groups(self) -> set[str]:
        with translated():
            listed = self._admin.list_consumer_groups(request_timeout=REQUEST_TIMEOUT_S).result()
            for error in listed.errors:
                raise KafkaException(error)
        return {group.group_id for group in listed.valid}

    def describe_group(self) -> tuple[str, set[str]]:
        with translated():
            group = _only(
                self._admin.describe_consumer_groups(
                    [self.group], request_timeout=REQUEST_TIMEOUT_S
                )
            )
        return group.state.name.title(), {group_member.client_id for group_member in group.members}

    def committed(self) -> dict[int, int]:
        """Read the offsets with a consumer that does not join the group.

        librdkafka's admin client would end the process with SIGSEGV if the response had the error
        NOT_COORDINATOR (librdkafka issue 5040).
        """
        consumer = confluent_kafka.Consumer({**self._options(), "group.id": self.group})
        try:
            with translated():
                partitions = consumer.list_topics(self.topic, REQUEST_TIMEOUT_S).topics[self.topic]
                wanted = [
                    TopicPartition(self.topic, partition) for partition in partitions.partitions
                ]
                offsets = consumer.committed(wanted, REQUEST_TIMEOUT_S)
        finally:
            consumer.close()
        return {
            partition.partition: partition.offset for partition in offsets if partition.offset >= 0
        }

    def reset_offsets(self, offsets: Mapping[int, int]) -> None:
        new = [
            TopicPartition(self.topic, partition, offset) for partition, offset in offsets.items()
        ]
        wanted = [ConsumerGroupTopicPartitions(self.group, new)]
        with translated():
            _offsets(
                self._admin.alter_consumer_group_offsets(wanted, request_timeout=REQUEST_TIMEOUT_S)
            )

    def delete_offsets(self, partitions: Collection[int]) -> None:
        """Use kafka-python: confluent-kafka has no such call."""
        KafkaPython(self.login, self.topic, self.group).delete_offsets(partitions)

    def delete_group(self) -> None:
        with translated():
            try:
                _only(
                    self._admin.delete_consumer_groups(
                        [self.group], request_timeout=REQUEST_TIMEOUT_S
                    )
                )
            except KafkaException as error:
                if error.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
                    raise

    def delete_records(self, partition: int, before: int) -> int:
        wanted = TopicPartition(self.topic, partition, before)
        with translated():
            deleted = _only(self._admin.delete_records([wanted], request_timeout=REQUEST_TIMEOUT_S))
        return int(deleted.low_watermark)


def _only(futures: Mapping[Any, Future[Any]]) -> Any:
    (only,) = futures.values()
    return only.result()


def _offsets(futures: Mapping[Any, Future[Any]]) -> dict[int, int]:
    group = _only(futures)
    for partition in group.topic_partitions:
        if partition.error is not None:
            raise KafkaException(partition.error)
    return {partition.partition: partition.offset for partition in group.topic_partitions}
