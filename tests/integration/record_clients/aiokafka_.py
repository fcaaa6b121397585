"""aiokafka. Its event loop runs in a thread, so members send heartbeats between calls."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import aiokafka
import aiokafka.errors
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.structs import TopicPartition

from tests.integration.record_clients.client import (
    DEADLINE_MS,
    REQUEST_TIMEOUT_S,
    RetriableError,
)
from tests.integration.record_clients.kafka_python import KafkaPython

T = TypeVar("T")
# After these errors a member polls and commits again.
_REJOINS = (
    aiokafka.errors.CommitFailedError,
    aiokafka.errors.IllegalGenerationError,
    aiokafka.errors.IllegalStateError,
    aiokafka.errors.RebalanceInProgressError,
    aiokafka.errors.UnknownMemberIdError,
)


@contextmanager
def _translated(*also: type[Exception]) -> Iterator[None]:
    try:
        yield
    except aiokafka.errors.KafkaError as error:
        if error.retriable or isinstance(error, also):
            raise RetriableError(repr(error)) from error
        raise


class _Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(DEADLINE_MS / 1000)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class _Producer:
    def __init__(self, options: Mapping[str, Any], topic: str) -> None:
        self._topic = topic
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self.failures: list[object] = []
        self._loop = _Loop()
        self._producer = self._loop.run(self._start(options))

    async def _start(self, options: Mapping[str, Any]) -> aiokafka.AIOKafkaProducer:
        # After this timeout aiokafka also fails a batch that it has not sent yet.
        timeout = {"request_timeout_ms": DEADLINE_MS}
        producer = aiokafka.AIOKafkaProducer(
            **options, **timeout, acks="all", enable_idempotence=True
        )
        await producer.start()
        return producer

    def send(self, partition: int, value: bytes) -> None:
        self._loop.run(self._send(partition, value))

    async def _send(self, partition: int, value: bytes) -> None:
        def delivered(done: asyncio.Future[Any]) -> None:
            if error := done.exception():
                self.failures.append(error)
            else:
                self.acknowledged[partition, done.result().offset] = value

        sent = await self._producer.send(self._topic, value, partition=partition)
        sent.add_done_callback(delivered)

    def flush(self) -> None:
        self._loop.run(self._producer.flush())

    def close(self) -> None:
        self._loop.run(self._producer.stop())
        self._loop.close()


class _Consumer:
    def __init__(self, options: Mapping[str, Any], topic: str) -> None:
        self._topic = topic
        self._loop = _Loop()
        self._consumer = self._loop.run(self._start(options))

    async def _start(self, options: Mapping[str, Any]) -> aiokafka.AIOKafkaConsumer:
        consumer = aiokafka.AIOKafkaConsumer(
            self._topic, **options, auto_offset_reset="earliest", enable_auto_commit=False
        )
        await consumer.start()
        return consumer

    def poll(self) -> list[tuple[int, int, bytes]]:
        polled = self._loop.run(self._consumer.getmany(timeout_ms=100))
        return [(r.partition, r.offset, r.value) for records in polled.values() for r in records]

    def assignment(self) -> set[int]:
        return {partition.partition for partition in self._consumer.assignment()}

    def seek(self, partition: int, offset: int) -> None:
        async def seek() -> None:
            self._consumer.seek(TopicPartition(self._topic, partition), offset)

        self._loop.run(seek())

    def commit(self) -> None:
        with _translated(*_REJOINS):
            self._loop.run(self._consumer.commit())

    def close(self) -> None:
        self._loop.run(self._consumer.stop())
        self._loop.close()


class Aiokafka(KafkaPython):
    """aiokafka. It cannot reset offsets, delete offsets or delete groups; kafka-python does these.

    Each admin call creates a new admin client: an old one may keep calling a dead broker.
    """

    def _options(self) -> dict[str, Any]:
        login, options = self.login, dict[str, Any]()
        if login.mechanism:
            options |= {"sasl_mechanism": login.mechanism}
            options |= {"sasl_plain_username": login.user, "sasl_plain_password": login.password}
        return {
            **options,
            "bootstrap_servers": login.bootstrap_servers,
            "security_protocol": login.protocol,
            "ssl_context": login.tls(),
        }

    def _ask(self, call: Callable[[AIOKafkaAdminClient], Coroutine[Any, Any, T]]) -> T:
        async def ask() -> T:
            admin = AIOKafkaAdminClient(
                **self._options(), request_timeout_ms=int(REQUEST_TIMEOUT_S * 1000)
            )
            try:
                await admin.start()
                return await call(admin)
            finally:
                await admin.close()

        with _translated():
            return asyncio.run(ask())

    def producer(self) -> _Producer:
        return _Producer(self._options(), self.topic)

    def consumer(self, name: str) -> _Consumer:
        more = {"group_id": self.group, "client_id": name}
        return _Consumer({**self._options(), **more}, self.topic)

    def list_groups(self) -> set[str]:
        return {group[0] for group in self._ask(lambda admin: admin.list_consumer_groups())}

    def describe_group(self) -> tuple[str, set[str]]:
        (response,) = self._ask(lambda admin: admin.describe_consumer_groups([self.group]))
        (group,) = response.to_object()["groups"]
        if group["error_code"]:
            with _translated():
                raise aiokafka.errors.for_code(group["error_code"])
        return group["state"], {member["client_id"] for member in group["members"]}

    def committed(self) -> dict[int, int]:
        offsets = self._ask(lambda admin: admin.list_consumer_group_offsets(self.group))
        return {partition.partition: meta.offset for partition, meta in offsets.items()}

    def delete_records(self, partition: int, before: int) -> int:
        wanted = TopicPartition(self.topic, partition)
        deleted = self._ask(
            lambda admin: admin.delete_records({wanted: RecordsToDelete(before)}, 15_000)
        )
        return deleted[wanted]
