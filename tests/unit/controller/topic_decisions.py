"""Requests, contexts and clusters for tests of topic decisions."""

from __future__ import annotations

import random
from typing import Any, cast

from immutables import Map

from bridgehead.kafka_wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from cluster_model.acls.authorization import Authorize
from cluster_model.configs.broker_configs import BrokerConfig, EffectiveBrokerConfig
from cluster_model.image import BrokerRegistration, MetadataImage
from cluster_model.records import (
    TopicRecord,
)
from controller.apis.base import (
    Decided,
    Decision,
    Outcome,
    RequestContext,
)
from controller.apis.create_topics import CreateTopics
from controller.apis.topic_config_rules import TopicConfigRules
from tests.unit.broker_proxy.client_requests import Rule
from tests.unit.controller.request_contexts import a_context

ID = bytes([7]) * 16


def config(**properties: str) -> BrokerConfig:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return BrokerConfig.from_properties(
        {"broker.id": "1", "zookeeper.connect": "localhost:1", **named}
    )


def create_topics(**properties: str) -> CreateTopics:
    effective = EffectiveBrokerConfig.of(config(**properties))
    rules = TopicConfigRules(lambda: effective)
    return CreateTopics(config(**properties), check_configs=rules.check, show_configs=rules.show)


def context(
    version: int,
    authorize: Rule | bool = True,
    seed: int = 3,
    *,
    api_key: int = 0,
    **others: Any,
) -> RequestContext:
    return a_context(api_key, version, authorize, random=random.Random(seed), **others)


def without(*denied: str) -> Authorize:
    """Allow everything except the `denied` operations, each written `OPERATION TYPE`."""
    return cast(Authorize, lambda operation, kind, name: f"{operation} {kind}" not in denied)


def image(*racks: str | None) -> MetadataImage:
    """A cluster of brokers 1, 2, ... with these racks; by default three brokers without racks."""
    brokers = enumerate(racks or (None, None, None), start=1)
    return MetadataImage(
        controller_epoch=5, brokers=Map({i: BrokerRegistration(i, i, (), r) for i, r in brokers})
    )


def topic(name: str, partitions: int = 1, factor: int = 1, **configs: str) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        configs=[CreatableTopicConfig(k.replace("_", "."), v) for k, v in configs.items()],
    )


def creation(*topics: CreatableTopic, **fields: Any) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(topics), **fields)


def outcomes(decision: Decision) -> dict[str, Outcome]:
    return {decided.element: decided.outcome for decided in decision.elements}


def only(decision: Decision) -> Decided:
    (decided,) = decision.elements
    return decided


def replayed(before: MetadataImage, decision: Decision) -> MetadataImage:
    return before.replay(
        [r for decided in decision.elements for r in (*decided.records, *decided.following)]
    )


def with_topic(
    name: str, assignment: Any = ((1, 2),), before: MetadataImage | None = None
) -> MetadataImage:
    return (before or image()).replay([TopicRecord(name, ID, assignment, {})])
