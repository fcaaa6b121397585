"""Configs of topics and brokers (KIP-133, KIP-339; KIP-4's describeConfig and alterConfig)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from bridgehead.admin.errors import AdminError, InvalidCallError
from bridgehead.admin.requests import Batch, BrokerResponse, Plan, Request
from bridgehead.admin.results import Try
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.config_codes import AlterConfigOpType, ConfigSource, ConfigType

if TYPE_CHECKING:
    from bridgehead.kafka_wire.messages.describe_configs import (
        DescribeConfigsResourceResult,
        DescribeConfigsResult,
    )


class ConfigResourceType(IntEnum):
    """A type of resource that has configs, with Kafka's codes."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8


class ConfigResource(NamedTuple):
    """A topic, a broker, or a broker's loggers.

    A BROKER with the name "" stands for the defaults of all brokers.
    """

    type: ConfigResourceType
    name: str

    @property
    def broker(self) -> int | None:
        """The broker that must answer; None if any broker can."""
        if self.type is ConfigResourceType.TOPIC or not self.name:
            return None
        if not self.name.isdigit():
            raise InvalidCallError(f"{self.name!r} is not a broker id: write a number.")
        return int(self.name)


class ConfigSynonym(NamedTuple):
    """The value of a config in one source, with the config's name in that source."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One config. `value` is None if the config is sensitive or has no value."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    synonyms: list[ConfigSynonym]
    type: ConfigType
    documentation: str | None

    @property
    def is_default(self) -> bool:
        """True if the config is not set anywhere."""
        return self.source is ConfigSource.DEFAULT_CONFIG


class AlterConfigOp(NamedTuple):
    """One incremental change."""

    name: str
    value: str | None
    op: AlterConfigOpType = AlterConfigOpType.SET


Configs = dict[str, ConfigEntry]
# The entity types of KIP-4's calls. kafka-configs.sh has more types, and names them in the plural.
ENTITY_TYPES: Mapping[str, ConfigResourceType] = {
    "topic": ConfigResourceType.TOPIC,
    "broker": ConfigResourceType.BROKER,
    "broker-logger": ConfigResourceType.BROKER_LOGGER,
}


def describe_configs(
    resources: Collection[ConfigResource],
    *,
    keys: Collection[str] | None = None,
    include_synonyms: bool = False,
    include_documentation: bool = False,
) -> Plan[dict[ConfigResource, Try[Configs]]]:
    """Return the configs of topics and brokers (KIP-133).

    The configs of a named broker are requested from that broker.

    Args:
        resources: the topics and brokers to describe.
        keys: the configs to return; None for all.
        include_synonyms: also return the values of all sources (KIP-226).
        include_documentation: also return what each config means (KIP-569).
    """
    from bridgehead.kafka_wire.messages.describe_configs import (
        DescribeConfigsRequest,
        DescribeConfigsResource,
    )

    def request(part: Collection[ConfigResource], broker: int | None) -> Request:
        wanted = None if keys is None else list(keys)
        message = DescribeConfigsRequest(
            [
                DescribeConfigsResource(config_resource.type, config_resource.name, wanted)
                for config_resource in part
            ],
            include_synonyms,
            include_documentation,
        )
        return Request(ApiKey.DESCRIBE_CONFIGS, lambda _: message, broker)

    parts = list(_by_broker(resources).items())
    outcomes = yield tuple(request(part, broker) for broker, part in parts)
    configs: dict[ConfigResource, Try[Configs]] = {}
    for (_, part), outcome in zip(parts, outcomes, strict=True):
        if outcome.error is not None:
            configs |= {asked: Try.new_error(outcome.error) for asked in part}
            continue
        response = outcome.get()
        for result in response.message.results:
            resource = ConfigResource(
                ConfigResourceType(result.resource_type), result.resource_name
            )
            configs[resource] = response.result(result, partial(_entries, resource.type))
    return {asked: configs[asked] for asked in resources if asked in configs}


def alter_configs(
    configs: Mapping[ConfigResource, Mapping[str, str | None]], validate_only: bool = False
) -> Plan[dict[ConfigResource, AdminError | None]]:
    """Replace all configs of resources; return the error of each resource (KIP-133 AlterConfigs).

    Configs that `configs` does not name are reset to their defaults. (`incremental_alter_configs`
    leaves such configs unchanged.)
    """
    from bridgehead.kafka_wire.messages.alter_configs import (
        AlterableConfig,
        AlterConfigsRequest,
        AlterConfigsResource,
    )

    def message(part: Mapping[ConfigResource, Mapping[str, str | None]]) -> AlterConfigsRequest:
        return AlterConfigsRequest(
            [
                AlterConfigsResource(
                    resource.type,
                    resource.name,
                    [AlterableConfig(*pair) for pair in values.items()],
                )
                for resource, values in part.items()
            ],
            validate_only,
        )

    return (yield from _alter(ApiKey.ALTER_CONFIGS, configs, message))


def incremental_alter_configs(
    changes: Mapping[ConfigResource, Sequence[AlterConfigOp]], validate_only: bool = False
) -> Plan[dict[ConfigResource, AdminError | None]]:
    """Change single configs; return the error of each resource (KIP-339).

    POLICY_VIOLATION means that a policy rejected the change; the error has the policy's text.
    """
    from bridgehead.kafka_wire.messages.incremental_alter_configs import (
        AlterableConfig,
        AlterConfigsResource,
        IncrementalAlterConfigsRequest,
    )

    def message(
        part: Mapping[ConfigResource, Sequence[AlterConfigOp]],
    ) -> IncrementalAlterConfigsRequest:
        return IncrementalAlterConfigsRequest(
            [
                AlterConfigsResource(
                    resource.type,
                    resource.name,
                    [AlterableConfig(op.name, op.op, op.value) for op in ops],
                )
                for resource, ops in part.items()
            ],
            validate_only,
        )

    return (yield from _alter(ApiKey.INCREMENTAL_ALTER_CONFIGS, changes, message))


def describe_config(
    entity_type: str, entity_names: Collection[str]
) -> Plan[dict[str, Try[Configs]]]:
    """Return the configs of entities by name (KIP-4 describeConfig).

    `entity_type` is "topic", "broker" or "broker-logger".

    Raises:
        AdminError: the configs of no entity can be described. It is the error of the first one.
    """
    kind = _entity_type(entity_type)
    described = yield from describe_configs([ConfigResource(kind, name) for name in entity_names])
    _raise_if_all_failed([configs.error for configs in described.values()])
    return {resource.name: configs for resource, configs in described.items()}


def alter_config(
    entity_type: str, changes: Mapping[str, Mapping[str, str | None]]
) -> Plan[dict[str, Try[Configs]]]:
    """Change single configs by entity name; None deletes a config (KIP-4 alterConfig).

    For each entity, the result has all configs of the entity after the change, or an error.

    Raises:
        AdminError: the configs of no entity were changed. It is the error of the first one.
    """
    kind = _entity_type(entity_type)
    errors = yield from incremental_alter_configs(
        {
            ConfigResource(kind, name): [_operation(*pair) for pair in values.items()]
            for name, values in changes.items()
        }
    )
    _raise_if_all_failed(errors.values())
    failed: dict[ConfigResource, Try[Configs]] = {
        resource: Try.new_error(error) for resource, error in errors.items() if error is not None
    }
    left = [resource for resource in errors if resource not in failed]
    results = failed | (yield from describe_configs(left))
    return {resource.name: results[resource] for resource in errors if resource in results}


def _raise_if_all_failed(errors: Collection[AdminError | None]) -> None:
    """Raise the first error if every entity has one."""
    failures = [error for error in errors if error is not None]
    if failures and len(failures) == len(errors):
        raise failures[0]


def _alter(
    key: ApiKey, changes: Mapping[ConfigResource, Any], message: Callable[[Any], Any]
) -> Plan[dict[ConfigResource, AdminError | None]]:
    """Send each named broker a request with its resources; other resources share one request.

    On a drafted listener the requests go to the controller instead (KIP-590), except those about
    loggers, whose levels only their broker has.
    """

    def results(response: BrokerResponse) -> Iterator[tuple[ConfigResource, Try[None]]]:
        for row in response.message.responses:
            resource = ConfigResource(ConfigResourceType(row.resource_type), row.resource_name)
            yield resource, response.done(row)

    errors: dict[ConfigResource, AdminError | None] = {}
    for (broker, has_loggers), part in _parts(changes).items():

        def request(
            left: Mapping[ConfigResource, Any],
            broker: int | None = broker,
            has_loggers: bool = has_loggers,
        ) -> Request:
            return Request(
                key, lambda _: message(left), broker, drafted_goes_to_controller=not has_loggers
            )

        try:
            wanted = {resource: changes[resource] for resource in part}
            errors |= yield from Batch(wanted, request, results).errors()
        except AdminError as error:
            if broker is None:
                raise
            errors |= dict.fromkeys(part, error)
    return {change: errors[change] for change in changes}


def _by_broker(resources: Iterable[ConfigResource]) -> dict[int | None, list[ConfigResource]]:
    parts: dict[int | None, list[ConfigResource]] = {}
    for resource in resources:
        parts.setdefault(resource.broker, []).append(resource)
    return parts


def _parts(
    resources: Iterable[ConfigResource],
) -> dict[tuple[int | None, bool], list[ConfigResource]]:
    """Group resources by their broker, and separate loggers from configs."""
    parts: dict[tuple[int | None, bool], list[ConfigResource]] = {}
    for resource in resources:
        is_logger = resource.type is ConfigResourceType.BROKER_LOGGER
        parts.setdefault((resource.broker, is_logger), []).append(resource)
    return parts


def _entity_type(name: str) -> ConfigResourceType:
    # kafka-configs.sh uses the plurals: topics, brokers, broker-loggers.
    kind = ENTITY_TYPES.get(name.removesuffix("s"))
    if kind is None:
        raise InvalidCallError(f"The entity type {name!r} is none of {', '.join(ENTITY_TYPES)}.")
    return kind


def _operation(name: str, value: str | None) -> AlterConfigOp:
    kind = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    return AlterConfigOp(name, value, kind)


def _entries(kind: ConfigResourceType, result: DescribeConfigsResult) -> Configs:
    return {config.name: _entry(config, kind) for config in result.configs}


def _entry(config: DescribeConfigsResourceResult, kind: ConfigResourceType) -> ConfigEntry:
    source = ConfigSource(config.config_source)
    if source is ConfigSource.UNKNOWN and config.is_default:
        source = ConfigSource.DEFAULT_CONFIG  # version 0 has `is_default` instead of a source
    elif config.config_source == -1:
        is_topic = kind is ConfigResourceType.TOPIC
        source = ConfigSource.TOPIC_CONFIG if is_topic else ConfigSource.STATIC_BROKER_CONFIG
    return ConfigEntry(
        config.name,
        config.value,
        source,
        config.read_only,
        config.is_sensitive,
        [
            ConfigSynonym(synonym.name, synonym.value, ConfigSource(synonym.source))
            for synonym in config.synonyms
        ],
        ConfigType(config.config_type),
        config.documentation,
    )
