"""Three released admin clients behind one interface.

Every method blocks. An error raises the client's own exception; `code_of` returns that exception's
error code. These classes retry nothing. Only `partitions` hides an error: it ignores the error code
of the topic.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import aiokafka.errors
import confluent_kafka.admin
import kafka.admin
import kafka.errors
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource as AiokafkaResource
from aiokafka.admin.config_resource import ConfigResourceType as AiokafkaResourceType
from confluent_kafka import KafkaError, KafkaException
from kafka import KafkaAdminClient

_TIMEOUT_S: Final = 60


class AnyAdmin(Protocol):
    """The common interface. `legacy` selects AlterConfigs instead of IncrementalAlterConfigs."""

    has_incremental: bool
    legacy_keeps_others: bool  # its AlterConfigs also sends the topic's other configs

    def create(
        self, name: str, partitions: int, replicas: int, configs: Mapping[str, str]
    ) -> None: ...
    def delete(self, name: str) -> None: ...
    def create_partitions(self, name: str, partitions: int) -> None: ...
    def alter(self, name: str, configs: Mapping[str, str], *, legacy: bool) -> None: ...
    def configs(self, name: str) -> dict[str, str]: ...
    def names(self) -> set[str]: ...
    def partitions(self, name: str) -> int: ...
    def close(self) -> None: ...


class ConfluentAdmin:
    """confluent-kafka (librdkafka)."""

    has_incremental = True
    legacy_keeps_others = False

    def __init__(self, bootstrap_servers: str) -> None:
        self._admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap_servers})

    def create(self, name: str, partitions: int, replicas: int, configs: Mapping[str, str]) -> None:
        topic = confluent_kafka.admin.NewTopic(name, partitions, replicas, config=dict(configs))
        self._admin.create_topics([topic])[name].result(_TIMEOUT_S)

    def delete(self, name: str) -> None:
        self._admin.delete_topics([name])[name].result(_TIMEOUT_S)

    def create_partitions(self, name: str, partitions: int) -> None:
        wanted = confluent_kafka.admin.NewPartitions(name, partitions)
        self._admin.create_partitions([wanted])[name].result(_TIMEOUT_S)

    def alter(self, name: str, configs: Mapping[str, str], *, legacy: bool) -> None:
        admin = confluent_kafka.admin
        if legacy:
            resource = admin.ConfigResource("topic", name, set_config=dict(configs))
            results = self._admin.alter_configs([resource])
        else:
            entries = [
                admin.ConfigEntry(key, value, incremental_operation=admin.AlterConfigOpType.SET)
                for key, value in configs.items()
            ]
            resource = admin.ConfigResource("topic", name, incremental_configs=entries)
            results = self._admin.incremental_alter_configs([resource])
        results[resource].result(_TIMEOUT_S)

    def configs(self, name: str) -> dict[str, str]:
        resource = confluent_kafka.admin.ConfigResource("topic", name)
        entries = self._admin.describe_configs([resource])[resource].result(_TIMEOUT_S)
        return {key: entry.value for key, entry in entries.items()}

    def names(self) -> set[str]:
        return set(self._admin.list_topics(timeout=_TIMEOUT_S).topics)

    def partitions(self, name: str) -> int:
        return len(self._admin.list_topics(name, timeout=_TIMEOUT_S).topics[name].partitions)

    def close(self) -> None:
        del self._admin  # this ends the client's threads


class KafkaPythonAdmin:
    """kafka-python."""

    has_incremental = True
    legacy_keeps_others = True

    def __init__(self, bootstrap_servers: str) -> None:
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers.split(","))

    def create(self, name: str, partitions: int, replicas: int, configs: Mapping[str, str]) -> None:
        options = {
            "num_partitions": partitions,
            "replication_factor": replicas,
            "configs": dict(configs),
        }
        self._admin.create_topics({name: options})

    def delete(self, name: str) -> None:
        self._admin.delete_topics([name])

    def create_partitions(self, name: str, partitions: int) -> None:
        self._admin.create_partitions({name: partitions})

    def alter(self, name: str, configs: Mapping[str, str], *, legacy: bool) -> None:
        resource = kafka.admin.ConfigResource("TOPIC", name, dict(configs))
        results = self._admin.alter_configs(
            [resource], raise_on_unknown=False, incremental=not legacy
        )
        (result,) = (result_by_name[name] for result_by_name in results.values())
        if result != "OK":  # any other result is the text of an exception
            code = re.match(r"\[Error (\d+)\] ", result)
            assert code, result
            raise kafka.errors.for_code(int(code[1]))(result)

    def configs(self, name: str) -> dict[str, str]:
        resource = kafka.admin.ConfigResource("TOPIC", name, None)
        described = self._admin.describe_configs([resource], config_filter="all")
        (entries,) = (entries_by_name[name] for entries_by_name in described.values())
        return {key: entry["value"] for key, entry in entries.items()}

    def names(self) -> set[str]:
        return set(self._admin.list_topics())

    def partitions(self, name: str) -> int:
        (topic,) = self._admin.describe_topics([name])
        return len(topic["partitions"])

    def close(self) -> None:
        self._admin.close()


class AiokafkaAdmin:
    """aiokafka. Most of its methods return error codes; `_raise` turns them into exceptions."""

    has_incremental = False
    legacy_keeps_others = False

    def __init__(self, bootstrap_servers: str) -> None:
        self._runner = asyncio.Runner()
        self._admin = self._runner.run(self._start(bootstrap_servers))

    async def _start(self, bootstrap_servers: str) -> AIOKafkaAdminClient:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers)
        await admin.start()
        return admin

    def create(self, name: str, partitions: int, replicas: int, configs: Mapping[str, str]) -> None:
        topic = aiokafka.admin.NewTopic(name, partitions, replicas, topic_configs=dict(configs))
        response = self._runner.run(self._admin.create_topics([topic]))
        _raise(response.topic_errors[0][1])

    def delete(self, name: str) -> None:
        response = self._runner.run(self._admin.delete_topics([name]))
        _raise(response.topic_error_codes[0][1])

    def create_partitions(self, name: str, partitions: int) -> None:
        wanted = {name: aiokafka.admin.NewPartitions(partitions)}
        self._runner.run(self._admin.create_partitions(wanted))

    def alter(self, name: str, configs: Mapping[str, str], *, legacy: bool) -> None:
        assert legacy, "this client knows only AlterConfigs"
        resource = AiokafkaResource(AiokafkaResourceType.TOPIC, name, dict(configs))
        (response,) = self._runner.run(self._admin.alter_configs([resource]))
        _raise(response.resources[0][0])

    def configs(self, name: str) -> dict[str, str]:
        resource = AiokafkaResource(AiokafkaResourceType.TOPIC, name)
        (response,) = self._runner.run(self._admin.describe_configs([resource]))
        _raise(response.resources[0][0])
        return {entry[0]: entry[1] for entry in response.resources[0][4]}

    def names(self) -> set[str]:
        return set(self._runner.run(self._admin.list_topics()))

    def partitions(self, name: str) -> int:
        (topic,) = self._runner.run(self._admin.describe_topics([name]))
        return len(topic["partitions"])

    def close(self) -> None:
        self._runner.run(self._admin.close())
        self._runner.close()


def _raise(code: int) -> None:
    if code:
        raise aiokafka.errors.for_code(code)


ADMINS: Final[Mapping[str, Callable[[str], AnyAdmin]]] = {
    "confluent-kafka": ConfluentAdmin,
    "kafka-python": KafkaPythonAdmin,
    "aiokafka": AiokafkaAdmin,
}


def code_of(client: str, error: BaseException) -> int:
    """Return the Kafka error code of a client's own exception; fail for any other exception."""
    if client == "confluent-kafka":
        assert isinstance(error, KafkaException)
        inner = error.args[0]
        assert isinstance(inner, KafkaError)
        return int(inner.code())
    module: Any = kafka.errors if client == "kafka-python" else aiokafka.errors
    assert isinstance(error, module.BrokerResponseError)
    return int(error.errno)
