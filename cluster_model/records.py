"""Records: the changes that a decision makes to the metadata.

`image.MetadataImage.replay` applies them in memory; `controller.store.plan` turns them into znode
operations. Both use `assert_never`, so that mypy reports an unhandled record. The first replica of
a partition is its preferred leader.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from bridgehead.authorizer import AccessControlEntry, ResourcePattern
from cluster_model.delegation_tokens import DelegationToken

NO_LEADER: Final = -1
NO_STATE_ZNODE: Final = -1
PRODUCER_IDS_PER_BLOCK: Final = 1000

Replicas = tuple[int, ...]


class PartitionState(NamedTuple):
    """The content of a partition's `state` znode.

    `partition_epoch` is the version of the znode; NO_STATE_ZNODE if there is none.
    """

    leader: int
    leader_epoch: int
    isr: Replicas
    controller_epoch: int
    partition_epoch: int
    recovering: bool = False


class ProducerIds(NamedTuple):
    """The first unallocated producer id, and the version of the znode of the last block."""

    next_id: int
    version: int


FIRST_PRODUCER_IDS: Final = ProducerIds(0, 0)
NO_STATE: Final = PartitionState(NO_LEADER, 0, (), 0, NO_STATE_ZNODE)


class ConfigResource(NamedTuple):
    """A config entity: a znode below /config.

    `entity_type` is topics, brokers, users, clients or ips. `entity_name` is the rest of the path,
    escaped as Kafka escapes it (docs/kafka/znodes.md#entity-names), for example
    `alice/clients/app%201` or `<default>`.
    """

    entity_type: str
    entity_name: str


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """Create a topic: its config znode and its topic znode, in one multi."""

    name: str
    topic_id: bytes  # 16 bytes
    assignment: tuple[Replicas, ...]  # by partition number
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AssignmentRecord:
    """Rewrite the topic znode, to add partitions or to reassign replicas."""

    topic: str
    assignment: tuple[Replicas, ...]
    adding: Mapping[int, Replicas] = field(default_factory=dict)
    removing: Mapping[int, Replicas] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicIdRecord:
    """Give an id to a topic that was written without one."""

    topic: str
    topic_id: bytes


@dataclass(frozen=True, slots=True)
class PartitionRecord:
    """Create or set a partition's state znode; its version becomes `state.partition_epoch`."""

    topic: str
    partition: int
    state: PartitionState


@dataclass(frozen=True, slots=True)
class ConfigRecord:
    """Replace all configs of an entity. `config_steps` has the changes of znodes."""

    resource: ConfigResource
    configs: Mapping[str, str]
    notify: bool = True  # write a change notification; topic creation does not


@dataclass(frozen=True, slots=True)
class DeletionMarkerRecord:
    """Mark a topic for deletion: create /admin/delete_topics/<topic>."""

    topic: str


@dataclass(frozen=True, slots=True)
class DeletionMarkerRemovalRecord:
    """Remove the deletion marker of a topic that does not exist."""

    topic: str


@dataclass(frozen=True, slots=True)
class TopicRemovalRecord:
    """Delete a topic: its znodes, its configs and its deletion marker."""

    topic: str


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """Create a delegation token or change its expiry, and notify the brokers."""

    token: DelegationToken


@dataclass(frozen=True, slots=True)
class TokenRemovalRecord:
    """Remove a delegation token and notify the brokers."""

    token_id: str


@dataclass(frozen=True, slots=True)
class ProducerIdBlockRecord:
    """Give a broker the next block of producer ids."""

    broker_id: int
    first_id: int


@dataclass(frozen=True, slots=True)
class AclRecord:
    """Replace a pattern's ACL entries and notify the brokers. Without entries, remove its znode."""

    pattern: ResourcePattern
    entries: tuple[AccessControlEntry, ...]


Record = (
    TopicRecord
    | AssignmentRecord
    | TopicIdRecord
    | PartitionRecord
    | ConfigRecord
    | DeletionMarkerRecord
    | DeletionMarkerRemovalRecord
    | TopicRemovalRecord
    | TokenRecord
    | TokenRemovalRecord
    | ProducerIdBlockRecord
    | AclRecord
)


def topic_of(record: Record) -> str | None:
    """Return the name of the topic that a record changes; None if it changes something else."""
    return getattr(record, "topic", None) or getattr(record, "name", None)


def topics_of(records: Iterable[Record]) -> set[str]:
    """Return the names of the topics that the records change."""
    return {name for record in records if (name := topic_of(record)) is not None}


def published_topics_of(records: Iterable[Record]) -> set[str]:
    """Return the names of the topics that brokers must get: a deletion marker is not for them."""
    markers = (DeletionMarkerRecord, DeletionMarkerRemovalRecord)
    return topics_of(record for record in records if not isinstance(record, markers))
