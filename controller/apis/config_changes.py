"""AlterConfigs and IncrementalAlterConfigs at the controller.

The receiving broker has already rejected duplicates, null values and invalid BROKER values
(docs/kafka/configs.md#altering-configs). The controller makes the checks that need the state of the
cluster.

In the drafted dialect the request arrives as the client sent it. The controller then also makes the
broker's checks, and alters the configs of any registered broker (KIP-590 §Change AlterConfig
Request Routing). It validates the configs of its own broker against that broker's properties; for
other brokers it checks only names and types.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final, Self

from bridgehead.kafka_wire.config_codes import ConfigType
from bridgehead.kafka_wire.errors import ApiError, ErrorCode, api_message
from cluster_model.acls.authorization import CLUSTER_NAME
from cluster_model.configs.broker_configs import BrokerConfig, EffectiveBrokerConfig
from cluster_model.configs.broker_configs.dynamic import (
    check_names_and_types,
    validate_dynamic_configs,
)
from cluster_model.configs.broker_configs.table import config_key
from cluster_model.configs.operations import Operation, check_shape
from cluster_model.configs.topic_configs import (
    LastTopicDefaults,
    TopicDefaults,
    validate_topic_configs,
)
from cluster_model.configs.types import ConfigException, InvalidConfigurationException
from cluster_model.image import MetadataImage
from cluster_model.records import ConfigRecord, ConfigResource
from cluster_model.znode_names import path_error
from controller.apis.base import (
    DONE,
    AdminApi,
    ApiSettings,
    Decided,
    Decision,
    Outcome,
    RequestContext,
    Results,
)
from controller.apis.policy_check import AlterBrokerConfigs, MakePolicyCheck, topic_configs

TOPIC: Final = 2
BROKER: Final = 4
CLIENT_METRICS: Final = 16
CLUSTER_DEFAULT: Final = "<default>"
_TYPE_NAMES: Final = {TOPIC: "TOPIC", BROKER: "BROKER", CLIENT_METRICS: "CLIENT_METRICS"}


def element_of(resource: Any) -> str:
    """Return the element name of a resource, for example `2:orders`."""
    return f"{resource.resource_type}:{resource.resource_name}"


@dataclass(frozen=True, slots=True)
class Change:
    """The requested change of one resource.

    `requested`: the entries of the request, for policies. `apply`: computes the new configs from
    the stored ones, or raises ApiError. `reads_first`: True if Kafka reads the stored configs
    before it checks that the topic exists.
    """

    requested: Mapping[str, str | None]
    apply: Callable[[Mapping[str, str]], Mapping[str, str]]
    reads_first: bool = False


class ConfigApi(AdminApi):
    """The common part of AlterConfigs and IncrementalAlterConfigs."""

    message: ClassVar[type]
    row: ClassVar[type]

    @classmethod
    def build(cls, settings: ApiSettings) -> Self:
        return cls(settings.config)

    def __init__(self, config: BrokerConfig) -> None:
        """`config`: the static configs of the controller's node."""
        self.config = config
        self._topic_defaults = LastTopicDefaults(config)

    @abstractmethod
    def operations(self, resource: Any) -> Sequence[Operation]:
        """Return the entries of a resource of the request."""

    @abstractmethod
    def change(self, resource: Any) -> Change:
        """Return the change that a resource of the request describes."""

    def decide(
        self,
        context: RequestContext,
        request: Any,
        image: MetadataImage,
        committed: Mapping[str, Outcome],
    ) -> Decision:
        """See AdminApi.decide. A dry run has no records and does not reject passwords."""
        decided: list[Decided] = []
        counts = Counter(element_of(resource) for resource in request.resources)
        seen = set(committed)
        for resource in request.resources:
            element = element_of(resource)
            if element in seen:
                continue
            seen.add(element)
            try:
                if counts[element] > 1:
                    text = "Each resource must appear at most once."
                    raise ApiError(ErrorCode.INVALID_REQUEST, text)
                self._authorize(context, resource)
                change = self.change(resource)
                if context.is_drafted:
                    self._check_wrapped(resource, image, change)
                record = self._record(resource, image, change)
                check = _policy_check(context, resource, record, change, image)
                if request.validate_only:
                    decided.append(Decided(element, DONE, policy_check=check))
                    continue
                self._reject_passwords(resource, record)
                decided.append(Decided(element, DONE, (record,), policy_check=check))
                # Two resources can name one broker (`1`, `01`): the second one sees this change.
                if resource.resource_type == BROKER:
                    image = image.replay((record,))
            except ApiError as error:
                message = api_message(error.error, error.message)
                decided.append(Decided(element, Outcome(error.error, message)))
        return Decision(decided)

    def conflict(self, element: str) -> Outcome:
        """See AdminApi.conflict. If a topic's znodes differ, the topic counts as deleted."""
        resource_type, _, name = element.partition(":")
        if resource_type == str(TOPIC):
            text = f"The topic '{name}' does not exist."
            return Outcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        return Outcome(ErrorCode.UNKNOWN_SERVER_ERROR)

    def response(self, context: RequestContext, request: Any, results: Results) -> Any:
        outcomes = results.outcomes
        return self._message(
            (resource, outcomes[element_of(resource)]) for resource in request.resources
        )

    def error_response(
        self, request: Any, version: int, error: ErrorCode, message: str | None
    ) -> Any:
        """See AdminApi.error_response: the same error and message for every resource."""
        outcome = Outcome(error, message)
        return self._message((resource, outcome) for resource in request.resources)

    def _message(self, outcomes: Iterable[tuple[Any, Outcome]]) -> Any:
        return self.message(
            throttle_time_ms=0,
            responses=[
                self.row(
                    error_code=outcome.error,
                    error_message=outcome.message,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
                for resource, outcome in outcomes
            ],
        )

    def _authorize(self, context: RequestContext, resource: Any) -> None:
        if resource.resource_type == TOPIC:
            if not context.authorize("ALTER_CONFIGS", "TOPIC", resource.resource_name):
                raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        elif not context.authorize("ALTER_CONFIGS", "CLUSTER", CLUSTER_NAME):
            raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    def _check_wrapped(self, resource: Any, image: MetadataImage, change: Change) -> None:
        """Make the checks that, in the shipped dialect, a broker makes before it forwards."""
        check_shape(self.operations(resource))
        if resource.resource_type != BROKER:
            return
        name = resource.resource_name
        is_own = not name or broker_id_of(name) == self.config.broker_id
        if not is_own and broker_id_of(name) not in image.brokers:
            text = f"Broker {name} is not registered."
            raise ApiError(ErrorCode.INVALID_REQUEST, text)
        wanted = change.apply(image.config("brokers", _entity(name)))
        try:
            if is_own:
                effective = EffectiveBrokerConfig.of(self.config, *self._layers(image))
                validate_dynamic_configs(wanted, effective, of_broker=bool(name))
            else:
                check_names_and_types(wanted, of_broker=True)
        except ConfigException as error:
            raise ApiError(ErrorCode.INVALID_REQUEST, error.message) from None

    def _layers(self, image: MetadataImage) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Return the stored cluster default, and the stored configs of the controller's broker."""
        of_broker = image.config("brokers", str(self.config.broker_id))
        return image.config("brokers", CLUSTER_DEFAULT), of_broker

    def _record(self, resource: Any, image: MetadataImage, change: Change) -> ConfigRecord:
        name = resource.resource_name
        try:
            if resource.resource_type == TOPIC:
                defaults = self._topic_defaults.of(*self._layers(image))
                return _topic_record(name, image, defaults, change)
            if resource.resource_type == BROKER:
                return _broker_record(name, image, change)
        except InvalidConfigurationException as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, error.message) from None
        except ConfigException as error:
            raise _invalid_config(resource, error.message) from None
        raise ApiError(ErrorCode.INVALID_REQUEST, _unsupported(resource.resource_type))

    def _reject_passwords(self, resource: Any, record: ConfigRecord) -> None:
        """Reject passwords: they must be stored encrypted, and encryption is not implemented."""
        if record.resource.entity_type != "brokers":
            return
        for name in record.configs:
            key = config_key(name)
            if key is not None and key.type is ConfigType.PASSWORD:
                if self.config.get_original("password.encoder.secret") is None:
                    raise _invalid_config(resource, "Password encoder secret not configured")
                raise _invalid_config(resource, f"{name} cannot be changed dynamically yet")


def _policy_check(
    context: RequestContext,
    resource: Any,
    record: ConfigRecord,
    change: Change,
    image: MetadataImage,
) -> MakePolicyCheck:
    name = resource.resource_name
    if resource.resource_type == TOPIC:
        return partial(
            topic_configs, context.client.principal, name, image, record.configs, change.requested
        )
    return partial(AlterBrokerConfigs, name, change.requested)


def _topic_record(
    name: str, image: MetadataImage, defaults: TopicDefaults, change: Change
) -> ConfigRecord:
    if not name:
        text = "Default topic resources are not allowed."
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    fault = path_error(f"/config/topics/{name}") if change.reads_first else None
    if fault is not None:
        raise ConfigException(fault)
    configs = change.apply(image.config("topics", name))
    if name not in image.topics:
        text = f"The topic '{name}' does not exist."
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    validate_topic_configs(configs, defaults)
    return ConfigRecord(ConfigResource("topics", name), configs)


def _broker_record(name: str, image: MetadataImage, change: Change) -> ConfigRecord:
    entity = _entity(name)
    configs = change.apply(image.config("brokers", entity))
    check_names_and_types(configs, of_broker=bool(name))
    return ConfigRecord(ConfigResource("brokers", entity), configs)


def _entity(name: str) -> str:
    return str(broker_id_of(name)) if name else CLUSTER_DEFAULT


def broker_id_of(name: str) -> int:
    """Return the broker id that a resource names; raises ApiError."""
    if re.fullmatch(r"[+-]?\d{1,10}", name) and -(2**31) <= int(name) < 2**31:
        return int(name)
    raise ApiError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")


def _unsupported(resource_type: int) -> str:
    if resource_type == CLIENT_METRICS:
        return (
            "AlterConfigs is only supported for topics and brokers, but resource type is "
            "CLIENT_METRICS"
        )
    return f"Unknown resource type {resource_type}"


def _invalid_config(resource: Any, text: str) -> ApiError:
    named = f"ConfigResource(type={_TYPE_NAMES[resource.resource_type]}, "
    named += f"name='{resource.resource_name}')"
    return ApiError(ErrorCode.INVALID_CONFIG, f"Invalid config value for resource {named}: {text}")
