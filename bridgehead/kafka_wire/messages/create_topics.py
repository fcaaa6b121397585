"""CreateTopics, key 19, versions 0 to 7; flexible from 5.

Version notes:
    1: The request adds `validate_only`. The response adds `topics.error_message`.
    2: The response adds `throttle_time_ms`.
    3: Same fields as 2.
    4: Same fields as 3.
    5: First flexible version. The response adds `topics.num_partitions`,
       `topics.replication_factor`, `topics.configs`, `topics.topic_config_error_code`.
    6: Same fields as 5.
    7: The response adds `topics.topic_id`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BOOL, INT8, INT16, INT32, STRING, UUID, Array, wire


@dataclass(slots=True)
class CreatableReplicaAssignment:
    """An element of `topics.assignments` of the request."""

    partition_index: int = wire(INT32)
    broker_ids: list[int] = wire(Array(INT32))


@dataclass(slots=True)
class CreatableTopicConfig:
    """An element of `topics.configs` of the request."""

    name: str = wire(STRING)
    value: str | None = wire(STRING, nullable="0+")


@dataclass(slots=True)
class CreatableTopic:
    """An element of `topics` of the request."""

    name: str = wire(STRING)
    num_partitions: int = wire(INT32)
    replication_factor: int = wire(INT16)
    assignments: list[CreatableReplicaAssignment] = wire(Array(CreatableReplicaAssignment))
    configs: list[CreatableTopicConfig] = wire(Array(CreatableTopicConfig))


@dataclass(slots=True)
class CreateTopicsRequest:
    """The request."""

    topics: list[CreatableTopic] = wire(Array(CreatableTopic))
    timeout_ms: int = wire(INT32, default=60000)
    validate_only: bool = wire(BOOL, versions="1+")


@dataclass(slots=True)
class CreatableTopicConfigs:
    """An element of `topics.configs` of the response. Versions 5+."""

    name: str = wire(STRING)
    value: str | None = wire(STRING, nullable="5+")
    read_only: bool = wire(BOOL)
    config_source: int = wire(INT8, default=-1)
    is_sensitive: bool = wire(BOOL)


@dataclass(slots=True)
class CreatableTopicResult:
    """An element of `topics` of the response."""

    name: str = wire(STRING)
    topic_id: bytes = wire(UUID, versions="7+")
    error_code: int = wire(INT16)
    error_message: str | None = wire(STRING, versions="1+", nullable="1+")
    num_partitions: int = wire(INT32, versions="5+", default=-1)
    replication_factor: int = wire(INT16, versions="5+", default=-1)
    configs: list[CreatableTopicConfigs] | None = wire(
        Array(CreatableTopicConfigs), versions="5+", nullable="5+"
    )
    topic_config_error_code: int = wire(INT16, versions="5+", tag=0)


@dataclass(slots=True)
class CreateTopicsResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32, versions="2+")
    topics: list[CreatableTopicResult] = wire(Array(CreatableTopicResult))
