"""DescribeConfigs, key 32: answered by every broker.

A topic exists if it is in the metadata cache; its overrides are read from ZooKeeper. BROKER configs
are read from this broker's memory (docs/kafka/requests.md#reads,
docs/kafka/configs.md#describeconfigs). Version 0 has no field for the source of a config. Its
`is_default` is always false, as in Kafka.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.config_codes import ConfigSource, ConfigType
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from bridgehead.slices import sliced
from broker_proxy.apis.admin.config_ports import ConfigReader, TopicNames
from broker_proxy.apis.admin.logger_levels import LoggerLevels
from broker_proxy.client_request import AuthorizeFor, ClientRequest, ResponseSize
from cluster_model.acls.authorization import Authorize
from cluster_model.configs.broker_configs import CurrentConfig
from cluster_model.configs.topic_configs import TopicDefaults, effective_topic_configs
from cluster_model.configs.types import ConfigEntry
from cluster_model.topic_names import check_topic_name

_TOPIC: Final = 2
_BROKER: Final = 4
_BROKER_LOGGER: Final = 8
_CLIENT_METRICS: Final = 16


@dataclass(frozen=True, slots=True)
class DescribeConfigs:
    """Answers DescribeConfigs requests."""

    current: CurrentConfig
    reader: ConfigReader
    topics: TopicNames
    loggers: LoggerLevels
    authorize_for: AuthorizeFor
    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_CONFIGS

    async def handle(self, request: ClientRequest, message: DescribeConfigsRequest) -> Any:
        """Return a result per resource. Resources that the client may not describe come last.

        An unknown resource type fails the whole request.
        """
        types = (_TOPIC, _BROKER, _BROKER_LOGGER, _CLIENT_METRICS)
        async for resource in sliced(message.resources):
            if resource.resource_type not in types:
                raise ApiError(ErrorCode.INVALID_REQUEST)
        results, denied = [], []
        authorize, size = self.authorize_for(request), ResponseSize()
        async for resource in sliced(message.resources):
            denial = _denial(authorize, resource)
            if denial is not ErrorCode.NONE:
                denied.append(_result(resource, denial, denial.default_text, []))
                continue
            try:
                invalid: list[str] = []
                rows = await self._rows(resource, message, invalid)
                size.add(sum(1 + len(row.synonyms) for row in rows))
                results.append(_result(resource, ErrorCode.NONE, _ignored(invalid), rows))
            except ApiError as rejection:
                text = rejection.message if rejection.message is not None else ""
                results.append(_result(resource, rejection.error, text, []))
        return DescribeConfigsResponse(throttle_time_ms=0, results=results + denied)

    async def _rows(
        self,
        resource: DescribeConfigsResource,
        message: DescribeConfigsRequest,
        invalid: list[str],
    ) -> list[DescribeConfigsResourceResult]:
        match resource.resource_type:
            case 2:  # TOPIC
                entries = await self._topic_entries(resource.resource_name, invalid)
            case 4:  # BROKER
                entries = self._broker_entries(resource.resource_name)
            case 8:  # BROKER_LOGGER
                return self._logger_rows(resource)
            case _:
                text = "Config type client-metrics is only supported on KRaft clusters"
                if not resource.resource_name:
                    text = "Client metrics subscription name must not be empty"
                raise ApiError(ErrorCode.INVALID_REQUEST, text)
        wanted = frozenset(resource.configuration_keys or ())
        return [
            _row(entry, message)
            for entry in entries
            if not wanted or entry.name in wanted  # An empty list requests all configs, too.
        ]

    async def _topic_entries(self, name: str, invalid: list[str]) -> Iterable[ConfigEntry]:
        check_topic_name(name)
        if not self.topics.has_topic(name):
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
        overrides = await self.reader.read_config("topics", name, invalid)
        return effective_topic_configs(overrides, TopicDefaults.of(self.current()))

    def _broker_entries(self, name: str) -> Iterable[ConfigEntry]:
        config = self.current()
        if not name:
            return config.entries(only_cluster_default=True)
        self._check_broker(name, " or empty string,")
        return config.entries()

    def _logger_rows(
        self, resource: DescribeConfigsResource
    ) -> list[DescribeConfigsResourceResult]:
        if not resource.resource_name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
        self._check_broker(resource.resource_name, "")
        wanted = frozenset(resource.configuration_keys or ())
        return [
            DescribeConfigsResourceResult(
                name=name,
                value=level,
                read_only=False,
                config_source=ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,
                is_default=False,
                is_sensitive=False,
                synonyms=[],
                config_type=ConfigType.UNKNOWN,
                documentation="",
            )
            for name, level in self.loggers.levels().items()
            if not wanted or name in wanted
        ]

    def _check_broker(self, name: str, or_empty: str) -> None:
        broker_id = self.current().static.broker_id
        if not re.fullmatch(r"[+-]?\d{1,10}", name) or not -(2**31) <= int(name) < 2**31:
            text = f"Broker id must be an integer, but it is: {name}"
            raise ApiError(ErrorCode.INVALID_REQUEST, text)
        if int(name) != broker_id:
            text = f"Unexpected broker id, expected {broker_id}{or_empty} but received {int(name)}"
            raise ApiError(ErrorCode.INVALID_REQUEST, text)


def _denial(authorize: Authorize, resource: DescribeConfigsResource) -> ErrorCode:
    """Return the error if the client may not describe a resource, else NONE."""
    on_topic = resource.resource_type == _TOPIC
    allowed = authorize(
        "DESCRIBE_CONFIGS",
        "TOPIC" if on_topic else "CLUSTER",
        resource.resource_name if on_topic else "kafka-cluster",
    )
    if allowed:
        return ErrorCode.NONE
    if on_topic:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def _ignored(invalid: list[str]) -> str:
    """Return a warning if stored configs are ignored, else "". Kafka gives no such warning."""
    if not invalid:
        return ""
    return (
        f"The stored configs cannot be read and are ignored ({invalid[0]}). Altering the configs "
        f"replaces them."
    )


def _result(
    resource: DescribeConfigsResource,
    error: ErrorCode,
    text: str,
    rows: list[DescribeConfigsResourceResult],
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error,
        error_message=text,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=rows,
    )


def _row(entry: ConfigEntry, message: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = entry.synonyms if message.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_default=False,
        is_sensitive=entry.sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in synonyms
        ],
        config_type=entry.type,
        documentation=entry.documentation if message.include_documentation else None,
    )
