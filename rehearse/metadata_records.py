"""The records of KRaft's metadata log that describe a cluster's metadata, as tables.

Kafka's JSON files of the records (`common/metadata/*.json`) have the same fields. A record's value
begins with three varints: the frame's version, the record's type (`RecordType`) and its version.
Records of other types, such as those of brokers, are not decoded. Every version is flexible.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from bridgehead.kafka_wire.schema import (
    BOOL,
    BYTES,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UUID,
    Array,
    wire,
)

UNCHANGED: Final = -2  # `PartitionChangeRecord.leader`


class RecordType(IntEnum):
    """The types of records whose content or position matters here."""

    TOPIC = 2
    PARTITION = 3
    CONFIG = 4
    PARTITION_CHANGE = 5
    REMOVE_TOPIC = 9
    DELEGATION_TOKEN = 10
    USER_SCRAM_CREDENTIAL = 11
    FEATURE_LEVEL = 12
    CLIENT_QUOTA = 14
    PRODUCER_IDS = 15
    ACCESS_CONTROL_ENTRY = 18
    REMOVE_ACCESS_CONTROL_ENTRY = 19
    ZK_MIGRATION_STATE = 21
    REMOVE_USER_SCRAM_CREDENTIAL = 22
    BEGIN_TRANSACTION = 23
    END_TRANSACTION = 24
    ABORT_TRANSACTION = 25
    REMOVE_DELEGATION_TOKEN = 26


class MigrationState(IntEnum):
    """The state in `ZkMigrationStateRecord`, and the controller's metric `ZkMigrationState`."""

    NONE = 0
    MIGRATION = 1
    PRE_MIGRATION = 2
    POST_MIGRATION = 3
    ZK = 4


@dataclass(slots=True)
class TopicRecord:
    """A new topic."""

    name: str = wire(STRING)
    topic_id: bytes = wire(UUID)


@dataclass(slots=True)
class RemoveTopicRecord:
    """The end of a topic, its partitions and its configs."""

    topic_id: bytes = wire(UUID)


@dataclass(slots=True)
class PartitionRecord:
    """A partition."""

    partition_id: int = wire(INT32, default=-1)
    topic_id: bytes = wire(UUID)
    replicas: list[int] = wire(Array(INT32))
    isr: list[int] = wire(Array(INT32))
    removing_replicas: list[int] = wire(Array(INT32))
    adding_replicas: list[int] = wire(Array(INT32))
    leader: int = wire(INT32, default=-1)
    leader_recovery_state: int = wire(INT8, tag=0)
    leader_epoch: int = wire(INT32, default=-1)
    partition_epoch: int = wire(INT32, default=-1)
    directories: list[bytes] = wire(Array(UUID), versions="1+")


@dataclass(slots=True)
class PartitionChangeRecord:
    """A change of a partition; None is an unchanged list."""

    partition_id: int = wire(INT32, default=-1)
    topic_id: bytes = wire(UUID)
    isr: list[int] | None = wire(Array(INT32), nullable="0+", tag=0, default=None)
    leader: int = wire(INT32, tag=1, default=UNCHANGED)
    replicas: list[int] | None = wire(Array(INT32), nullable="0+", tag=2, default=None)
    removing_replicas: list[int] | None = wire(Array(INT32), nullable="0+", tag=3, default=None)
    adding_replicas: list[int] | None = wire(Array(INT32), nullable="0+", tag=4, default=None)
    leader_recovery_state: int = wire(INT8, tag=5, default=-1)


@dataclass(slots=True)
class ConfigRecord:
    """A config of a topic (type 2) or broker (type 4); a value of None deletes it."""

    resource_type: int = wire(INT8)
    resource_name: str = wire(STRING)
    name: str = wire(STRING)
    value: str | None = wire(STRING, nullable="0+")


@dataclass(slots=True)
class QuotaEntity:
    """A part of a quota's entity; a name of None is the default entity."""

    entity_type: str = wire(STRING)
    entity_name: str | None = wire(STRING, nullable="0+")


@dataclass(slots=True)
class ClientQuotaRecord:
    """One quota of an entity."""

    entity: list[QuotaEntity] = wire(Array(QuotaEntity))
    key: str = wire(STRING)
    value: float = wire(FLOAT64)
    remove: bool = wire(BOOL)


@dataclass(slots=True)
class UserScramCredentialRecord:
    """A user's credential. Mechanism 1 is SCRAM-SHA-256, 2 is SCRAM-SHA-512."""

    name: str = wire(STRING)
    mechanism: int = wire(INT8)
    salt: bytes = wire(BYTES)
    stored_key: bytes = wire(BYTES)
    server_key: bytes = wire(BYTES)
    iterations: int = wire(INT32)


@dataclass(slots=True)
class RemoveUserScramCredentialRecord:
    """The end of a user's credential."""

    name: str = wire(STRING)
    mechanism: int = wire(INT8)


@dataclass(slots=True)
class AccessControlEntryRecord:
    """An ACL."""

    id: bytes = wire(UUID)
    resource_type: int = wire(INT8)
    resource_name: str = wire(STRING)
    pattern_type: int = wire(INT8)
    principal: str = wire(STRING)
    host: str = wire(STRING)
    operation: int = wire(INT8)
    permission_type: int = wire(INT8)


@dataclass(slots=True)
class RemoveAccessControlEntryRecord:
    """The end of an ACL."""

    id: bytes = wire(UUID)


@dataclass(slots=True)
class DelegationTokenRecord:
    """A delegation token; times are milliseconds since 1970."""

    owner: str = wire(STRING)
    requester: str = wire(STRING)
    renewers: list[str] = wire(Array(STRING))
    issue_timestamp: int = wire(INT64)
    max_timestamp: int = wire(INT64)
    expiration_timestamp: int = wire(INT64)
    token_id: str = wire(STRING)


@dataclass(slots=True)
class RemoveDelegationTokenRecord:
    """The end of a delegation token."""

    token_id: str = wire(STRING)


@dataclass(slots=True)
class ProducerIdsRecord:
    """The first producer id that no block has."""

    broker_id: int = wire(INT32)
    broker_epoch: int = wire(INT64, default=-1)
    next_producer_id: int = wire(INT64)


@dataclass(slots=True)
class FeatureLevelRecord:
    """The level of a feature, such as `metadata.version`."""

    name: str = wire(STRING)
    feature_level: int = wire(INT16)


@dataclass(slots=True)
class ZkMigrationStateRecord:
    """See `MigrationState`."""

    zk_migration_state: int = wire(INT8)


LAYOUTS: Final[dict[RecordType, type[Any]]] = {
    RecordType.TOPIC: TopicRecord,
    RecordType.PARTITION: PartitionRecord,
    RecordType.CONFIG: ConfigRecord,
    RecordType.PARTITION_CHANGE: PartitionChangeRecord,
    RecordType.REMOVE_TOPIC: RemoveTopicRecord,
    RecordType.DELEGATION_TOKEN: DelegationTokenRecord,
    RecordType.USER_SCRAM_CREDENTIAL: UserScramCredentialRecord,
    RecordType.FEATURE_LEVEL: FeatureLevelRecord,
    RecordType.CLIENT_QUOTA: ClientQuotaRecord,
    RecordType.PRODUCER_IDS: ProducerIdsRecord,
    RecordType.ACCESS_CONTROL_ENTRY: AccessControlEntryRecord,
    RecordType.REMOVE_ACCESS_CONTROL_ENTRY: RemoveAccessControlEntryRecord,
    RecordType.ZK_MIGRATION_STATE: ZkMigrationStateRecord,
    RecordType.REMOVE_USER_SCRAM_CREDENTIAL: RemoveUserScramCredentialRecord,
    RecordType.REMOVE_DELEGATION_TOKEN: RemoveDelegationTokenRecord,
}
# The newest version of each record that these tables describe, at metadata.version 3.9-IV0.
# Version 2 of the partition records adds the eligible leader replicas, which ends the flat layout.
VERSIONS_MAX: Final = {RecordType.PARTITION: 2, RecordType.PARTITION_CHANGE: 2}
