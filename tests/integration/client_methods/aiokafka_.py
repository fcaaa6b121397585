"""aiokafka."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, ClassVar

import aiokafka
import aiokafka.admin
import aiokafka.errors
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource as AiokafkaResource
from aiokafka.admin.config_resource import ConfigResourceType as AiokafkaResourceType

from tests.integration.client_methods.waiting import (
    Reason,
    T,
    fresh,
    known_everywhere,
    soon,
)
from tests.integration.processes import wait_until


class Aiokafka:
    """aiokafka. Most of its methods return a response as an object of its protocol classes."""

    OUT_OF_SCOPE: ClassVar[Mapping[str, Reason]] = {}
    CLIENT = AIOKafkaAdminClient

    def __init__(self, bootstrap_servers: str) -> None:
        self._servers = bootstrap_servers
        self._runner = asyncio.Runner()
        self.admin = self._runner.run(self._connect())

    async def _connect(self) -> AIOKafkaAdminClient:
        admin = AIOKafkaAdminClient(bootstrap_servers=self._servers)
        await admin.start()
        return admin

    def end(self) -> None:
        self._runner.run(self.admin.close())
        self._runner.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def topic(self, partitions: int = 1) -> str:
        name = fresh("aiokafka")
        wanted = aiokafka.admin.NewTopic(name, partitions, 3)
        assert self.run(self.admin.create_topics([wanted])).topic_errors[0][1] == 0
        known_everywhere(self._servers, name, partitions)
        return name

    def described(self, name: str) -> list[Any]:
        (topic,) = self.run(self.admin.describe_topics([name]))
        partitions: list[Any] = topic["partitions"]
        return partitions

    def start(self) -> None:
        self.close()

    def close(self) -> None:
        self.run(self.run(self._connect()).close())

    def create_topics(self) -> None:
        assert len(self.described(self.topic(2))) == 2

    def describe_topics(self) -> None:
        assert len(self.described(self.topic())) == 1

    def list_topics(self) -> None:
        assert self.topic() in self.run(self.admin.list_topics())

    def delete_topics(self) -> None:
        name = self.topic()
        assert self.run(self.admin.delete_topics([name])).topic_error_codes[0][1] == 0

    def create_partitions(self) -> None:
        name = self.topic()
        self.run(self.admin.create_partitions({name: aiokafka.admin.NewPartitions(3)}))
        wait_until(lambda: self.described(name), lambda result: len(result) == 3)

    def describe_cluster(self) -> None:
        assert len(self.run(self.admin.describe_cluster())["brokers"]) == 3

    def alter_configs(self) -> None:
        name = self.topic()
        resource = AiokafkaResource(AiokafkaResourceType.TOPIC, name, {"retention.ms": "1000"})
        (response,) = self.run(self.admin.alter_configs([resource]))
        assert response.resources[0][0] == 0

    def describe_configs(self) -> None:
        resource = AiokafkaResource(AiokafkaResourceType.TOPIC, self.topic())
        (response,) = self.run(self.admin.describe_configs([resource]))
        configs = {entry[0]: entry[1] for entry in response.resources[0][4]}
        assert configs["cleanup.policy"] == "delete"

    def delete_records(self) -> None:
        partition = aiokafka.TopicPartition(self.topic(), 0)
        wanted = {partition: aiokafka.admin.RecordsToDelete(0)}
        assert self.run(self.admin.delete_records(wanted)) == {partition: 0}

    def find_coordinator(self) -> None:
        unavailable = aiokafka.errors.CoordinatorNotAvailableError
        coordinator = soon(lambda: self.run(self.admin.find_coordinator("g")), unavailable)
        assert coordinator in (1, 2, 3)

    def list_consumer_groups(self) -> None:
        assert self.run(self.admin.list_consumer_groups()) == []

    def describe_consumer_groups(self) -> None:
        self.find_coordinator()
        (response,) = self.run(self.admin.describe_consumer_groups(["g"]))
        assert "Dead" in str(response)

    def list_consumer_group_offsets(self) -> None:
        self.find_coordinator()
        assert self.run(self.admin.list_consumer_group_offsets("g")) == {}
