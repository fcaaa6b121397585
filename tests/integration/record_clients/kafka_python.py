"""kafka-python."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import kafka
import kafka.errors
from kafka.admin import KafkaAdminClient
from kafka.structs import OffsetAndMetadata, TopicPartition

from tests.integration.login_clients import kafka_python_options
from tests.integration.record_clients.client import (
    DEADLINE_MS,
    DEADLINE_S,
    REQUEST_TIMEOUT_S,
    Consumer,
    Producer,
    RecordClient,
    RetriableError,
)

# A bug of kafka-python 3.0.12 stops some consumers: a consumer joins a group before it knows the
# topic, and rejoins when the topic's metadata arrives, 100 ms later. If a poll times out during the
# rejoin, the consumer never applies the new assignment. With polls of 100 ms, 5 of 180 stalled.
POLL_MS = 2000

# After these errors a member polls and commits again.
_REJOINS = (
    kafka.errors.CommitFailedError,
    kafka.errors.IllegalGenerationError,
    kafka.errors.RebalanceInProgressError,
    kafka.errors.UnknownMemberIdError,
)


@contextmanager
def _translated(*also: type[Exception]) -> Iterator[None]:
    try:
        yield
    except kafka.errors.KafkaError as error:
        if error.retriable or isinstance(error, also):
            raise RetriableError(repr(error)) from error
        raise


def _check(errors: Collection[type[kafka.errors.KafkaError]]) -> None:
    for error in errors:
        if error is not kafka.errors.NoError:
            raise error


class _Producer:
    def __init__(self, options: Mapping[str, Any], topic: str) -> None:
        self._topic = topic
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self.failures: list[object] = []
        self._producer = kafka.KafkaProducer(
            **options,
            acks="all",
            enable_idempotence=True,
            delivery_timeout_ms=DEADLINE_MS,
            max_block_ms=DEADLINE_MS,
        )

    def send(self, partition: int, value: bytes) -> None:
        def delivered(metadata: Any) -> None:
            self.acknowledged[partition, metadata.offset] = value

        sent = self._producer.send(self._topic, value, partition=partition)
        sent.add_callback(delivered)
        sent.add_errback(self.failures.append)

    def flush(self) -> None:
        self._producer.flush(DEADLINE_S)

    def close(self) -> None:
        self._producer.close()


class _Consumer:
    def __init__(self, options: Mapping[str, Any], topic: str) -> None:
        self._topic = topic
        self._consumer = kafka.KafkaConsumer(
            topic, **options, auto_offset_reset="earliest", enable_auto_commit=False
        )

    def poll(self) -> list[tuple[int, int, bytes]]:
        # If a broker is killed before it answers Metadata, poll raises an error.
        with _translated():
            polled = self._consumer.poll(POLL_MS)
        return [(r.partition, r.offset, r.value) for records in polled.values() for r in records]

    def assignment(self) -> set[int]:
        return {partition.partition for partition in self._consumer.assignment()}

    def seek(self, partition: int, offset: int) -> None:
        self._consumer.seek(TopicPartition(self._topic, partition), offset)

    def commit(self) -> None:
        with _translated(*_REJOINS):
            self._consumer.commit(timeout_ms=REQUEST_TIMEOUT_S * 1000)

    def close(self) -> None:
        self._consumer.close(autocommit=False)


class KafkaPython(RecordClient):
    """Each admin call creates a new admin client: an old one may keep calling a dead broker."""

    def _options(self) -> dict[str, Any]:
        return kafka_python_options(self.login)

    @contextmanager
    def _admin(self, *retriable: type[Exception]) -> Iterator[KafkaAdminClient]:
        with _translated(*retriable):
            admin = KafkaAdminClient(
                **self._options(), request_timeout_ms=int(REQUEST_TIMEOUT_S * 1000)
            )
            try:
                yield admin
            finally:
                admin.close()

    def producer(self) -> Producer:
        return _Producer(self._options(), self.topic)

    def consumer(self, name: str) -> Consumer:
        more = {"group_id": self.group, "client_id": name}
        return _Consumer({**self._options(), **more}, self.topic)

    def list_groups(self) -> set[str]:
        with self._admin() as admin:
            return {group["group_id"] for group in admin.list_groups()}

    def describe_group(self) -> tuple[str, set[str]]:
        with self._admin() as admin:
            group = admin.describe_groups([self.group])[self.group]
        if group["error"] is not None:  # The client returns the error as a text.
            name = group["error"].partition("]")[2].partition(":")[0].strip()
            with _translated():
                raise getattr(kafka.errors, name)
        return group["group_state"], {member["client_id"] for member in group["members"]}

    def committed(self) -> dict[int, int]:
        with self._admin() as admin:
            offsets = admin.list_group_offsets([self.group])[self.group]
        return {partition.partition: meta.offset for partition, meta in offsets.items()}

    def reset_offsets(self, offsets: Mapping[int, int]) -> None:
        new = {
            TopicPartition(self.topic, partition): OffsetAndMetadata(offset, "", -1)
            for partition, offset in offsets.items()
        }
        with self._admin() as admin:
            _check(admin.alter_group_offsets(self.group, new).values())

    def delete_offsets(self, partitions: Collection[int]) -> None:
        removed = [TopicPartition(self.topic, partition) for partition in partitions]
        with self._admin() as admin:
            _check(admin.delete_group_offsets(self.group, removed).values())

    def delete_group(self) -> None:
        with self._admin() as admin:
            result = admin.delete_groups([self.group])[self.group]
            if result not in ("OK", kafka.errors.GroupIdNotFoundError.__name__):
                raise getattr(kafka.errors, result)

    def delete_records(self, partition: int, before: int) -> int:
        wanted = TopicPartition(self.topic, partition)
        with self._admin() as admin:
            deleted = admin.delete_records({wanted: before}, timeout_ms=REQUEST_TIMEOUT_S * 1000)
        return int(deleted[wanted]["low_watermark"])
