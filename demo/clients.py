"""The demo's clients, which use confluent-kafka."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)

from bridgehead.cluster import ClientHistory

RESPONSE_TIMEOUT_S = 30
CREATE_TOPICS = 19
_REQUEST_TIMED_OUT = 7


def admin(bootstrap: str) -> AdminClient:
    """Return a client that connects to this broker first."""
    # No log: the demo kills brokers on purpose.
    # By default librdkafka refreshes the controller's id only every five minutes.
    return AdminClient(
        {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            "topic.metadata.refresh.interval.ms": 1000,
        }
    )


def create_topic(client: AdminClient, name: str, partitions: int, replicas: int) -> None:
    """Create one topic. Raises KafkaException."""
    topic = NewTopic(name, num_partitions=partitions, replication_factor=replicas)
    client.create_topics([topic])[name].result(RESPONSE_TIMEOUT_S)


def alter_config(client: AdminClient, topic: str, configs: Mapping[str, str]) -> None:
    """Set some configs of a topic, incrementally. Raises KafkaException."""
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in configs.items()
    ]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
    (future,) = client.incremental_alter_configs([resource]).values()
    future.result(RESPONSE_TIMEOUT_S)


def _code(error: KafkaException) -> int:
    """Return Kafka's code; REQUEST_TIMED_OUT for librdkafka's negative codes (outcome unknown)."""
    code = int(error.args[0].code())
    return code if code > 0 else _REQUEST_TIMED_OUT


@dataclass(slots=True)
class Load:
    """Clients in threads; each creates topics one after another."""

    bootstrap: list[str]
    history: ClientHistory
    threads_per_broker: int = 2
    acknowledged: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    longest_wait_s: float = 0.0
    _names: Any = field(default_factory=itertools.count)
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Start the clients."""
        for address in self.bootstrap * self.threads_per_broker:
            thread = threading.Thread(target=self._work, args=(address,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def _work(self, address: str) -> None:
        client = admin(address)
        while not self._stop.is_set():
            name = f"load-{next(self._names)}"
            began = time.monotonic()
            with self.history.operation(CREATE_TOPICS, [name]) as operation:
                try:
                    create_topic(client, name, partitions=1, replicas=2)
                    operation.completed({name: 0})
                    self.acknowledged.append(name)
                except KafkaException as error:
                    operation.completed({name: _code(error)})
                    self.failed.append(f"{name}: {error}")
                except TimeoutError:
                    self.failed.append(f"{name}: no response within {RESPONSE_TIMEOUT_S} s")
            self.longest_wait_s = max(self.longest_wait_s, time.monotonic() - began)

    def wait_for_more(self, count: int, timeout_s: float) -> bool:
        """Wait for `count` more acknowledged topics; return whether they came in time."""
        wanted = len(self.acknowledged) + count
        deadline = time.monotonic() + timeout_s
        while len(self.acknowledged) < wanted and time.monotonic() < deadline:
            time.sleep(0.02)
        return len(self.acknowledged) >= wanted

    def stop(self) -> None:
        """Stop the clients after their current requests."""
        self._stop.set()
        for thread in self._threads:
            thread.join(RESPONSE_TIMEOUT_S + 5)
