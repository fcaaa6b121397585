"""What both alter APIs share at the controller: judging one resource, and the shape of answers.

The receiving broker has judged duplicates, null values and BROKER values before (kafka-semantics
3.6, first table), because only it knows its own state; here is what needs the cluster's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from bridgehead.kafka_wire.errors import ApiError, ErrorCode, api_message
from cluster_model.broker_configs import BrokerConfig, EffectiveBrokerConfig
from cluster_model.broker_configs.dynamic import check_names_and_types
from cluster_model.broker_configs.table import config_key
from cluster_model.config_types import (
    ConfigException,
    ConfigType,
    InvalidConfigurationException,
)
from cluster_model.image import MetadataImage
from cluster_model.records import ConfigRecord, ConfigResource
from cluster_model.topic_configs import TopicDefaults, validate_topic_configs
from cluster_model.topic_names import path_fault
from controller.apis.base import DONE, Decided, Decision, Outcome, RequestContext
from controller.policy_questions import AlterBrokerConfigs, MakeQuestion, topic_configs

TOPIC: Final = 2
BROKER: Final = 4
CLIENT_METRICS: Final = 16
CLUSTER_NAME: Final = "kafka-cluster"
CLUSTER_DEFAULT: Final = "<default>"
_TYPE_NAMES: Final = {TOPIC: "TOPIC", BROKER: "BROKER", CLIENT_METRICS: "CLIENT_METRICS"}


def element_of(resource: Any) -> str:
    """Return the name of a resource within its request, for example `2:orders`."""
    return f"{resource.resource_type}:{resource.resource_name}"


@dataclass(frozen=True, slots=True)
class Change:
    """One resource's new set of configs, before it is judged.

    `asked` is what the request says, for the policy; `make` computes the whole new set from the
    stored one and may refuse by ApiError. `reads_first`: Kafka asks ZooKeeper for the stored set
    before it looks whether there is such a topic.
    """

    asked: Mapping[str, str | None]
    make: Callable[[Mapping[str, str]], Mapping[str, str]]
    reads_first: bool = False


@dataclass(frozen=True, slots=True)
class ConfigChanges:
    """Judges and records changes. `config` are the static configs of the controller's node."""

    config: BrokerConfig

    def decide(
        self,
        context: RequestContext,
        request: Any,
        image: MetadataImage,
        settled: Mapping[str, Outcome],
        change_of: Callable[[Any], Change],
    ) -> Decision:
        """Judge each resource on its own; a dry run has the same outcomes and no records."""
        defaults: TopicDefaults | None = None
        decided: list[Decided] = []
        counts = Counter(element_of(resource) for resource in request.resources)
        judged = set(settled)
        for resource in request.resources:
            element = element_of(resource)
            if element in judged:
                continue
            judged.add(element)
            try:
                if counts[element] > 1:
                    text = "Each resource must appear at most once."
                    raise ApiError(ErrorCode.INVALID_REQUEST, text)
                self._authorize(context, resource)
                if defaults is None and resource.resource_type == TOPIC:
                    defaults = self._topic_defaults(image)
                change = change_of(resource)
                record = self._judge(resource, image, defaults, change)
                asked = _question(context, resource, record, change, image)
                if request.validate_only:
                    decided.append(Decided(element, DONE, question=asked))
                    continue
                self._refuse_passwords(resource, record)
                decided.append(Decided(element, DONE, (record,), question=asked))
            except ApiError as refusal:
                message = api_message(refusal.error, refusal.message)
                decided.append(Decided(element, Outcome(refusal.error, message)))
        return Decision(decided)

    def _authorize(self, context: RequestContext, resource: Any) -> None:
        if resource.resource_type == TOPIC:
            if not context.authorize("ALTER_CONFIGS", "TOPIC", resource.resource_name):
                raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        elif not context.authorize("ALTER_CONFIGS", "CLUSTER", CLUSTER_NAME):
            raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    def _topic_defaults(self, image: MetadataImage) -> TopicDefaults:
        effective = EffectiveBrokerConfig.of(
            self.config,
            image.config("brokers", CLUSTER_DEFAULT),
            image.config("brokers", str(self.config.broker_id)),
        )
        return TopicDefaults.of(effective)

    def _judge(
        self,
        resource: Any,
        image: MetadataImage,
        defaults: TopicDefaults | None,
        change: Change,
    ) -> ConfigRecord:
        name = resource.resource_name
        try:
            if resource.resource_type == TOPIC:
                assert defaults is not None
                record = _topic_record(name, image, defaults, change)
            elif resource.resource_type == BROKER:
                record = _broker_record(name, image, change)
            else:
                raise ApiError(ErrorCode.INVALID_REQUEST, _unsupported(resource.resource_type))
        except InvalidConfigurationException as refusal:
            raise ApiError(ErrorCode.INVALID_CONFIG, refusal.message) from None
        except ConfigException as refusal:
            raise _invalid_config(resource, refusal.message) from None
        return record

    def _refuse_passwords(self, resource: Any, record: ConfigRecord) -> None:
        """A password would have to be stored encrypted, and nothing here can do that yet."""
        if record.resource.entity_type != "brokers":
            return
        for name in record.configs:
            key = config_key(name)
            if key is not None and key.type is ConfigType.PASSWORD:
                if self.config.get_original("password.encoder.secret") is None:
                    raise _invalid_config(resource, "Password encoder secret not configured")
                raise _invalid_config(resource, f"{name} cannot be changed dynamically yet")


def _question(
    context: RequestContext,
    resource: Any,
    record: ConfigRecord,
    change: Change,
    image: MetadataImage,
) -> MakeQuestion:
    name = resource.resource_name
    if resource.resource_type == TOPIC:
        return partial(topic_configs, context.principal, name, image, record.configs, change.asked)
    return partial(AlterBrokerConfigs, name, change.asked)


def _topic_record(
    name: str, image: MetadataImage, defaults: TopicDefaults, change: Change
) -> ConfigRecord:
    if not name:
        text = "Default topic resources are not allowed."
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    fault = path_fault(f"/config/topics/{name}") if change.reads_first else None
    if fault is not None:
        raise ConfigException(fault)
    configs = change.make(image.config("topics", name))
    if name not in image.topics:
        text = f"The topic '{name}' does not exist."
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    validate_topic_configs(configs, defaults)
    return ConfigRecord(ConfigResource("topics", name), configs)


def _broker_record(name: str, image: MetadataImage, change: Change) -> ConfigRecord:
    entity = str(broker_id_of(name)) if name else CLUSTER_DEFAULT
    configs = change.make(image.config("brokers", entity))
    check_names_and_types(configs, of_broker=bool(name))
    return ConfigRecord(ConfigResource("brokers", entity), configs)


def broker_id_of(name: str) -> int:
    """Return the broker that a resource names; raises ApiError."""
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
    shown = f"ConfigResource(type={_TYPE_NAMES[resource.resource_type]}, "
    shown += f"name='{resource.resource_name}')"
    return ApiError(ErrorCode.INVALID_CONFIG, f"Invalid config value for resource {shown}: {text}")


def conflict_of(element: str) -> Outcome:
    """Return the outcome of a resource whose znode was changed by somebody else."""
    resource_type, _, name = element.partition(":")
    if resource_type == str(TOPIC):
        text = f"The topic '{name}' does not exist."
        return Outcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    return Outcome(ErrorCode.UNKNOWN_SERVER_ERROR)


def rows_of(request: Any, outcomes: Mapping[str, Outcome]) -> Sequence[tuple[Any, Outcome]]:
    """Return (resource, outcome) in the order of the request."""
    return [(resource, outcomes[element_of(resource)]) for resource in request.resources]
