"""What a decision makes true: one frozen value per decided fact.

`image.MetadataImage.replay` applies records to memory, `controller.store.plan` turns them into
znode operations; mypy's `assert_never` fails in both until a new record is handled.
Replica and broker lists are tuples in Kafka's order (the first replica is the preferred leader).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from bridgehead.authorizer import AccessControlEntry, ResourcePattern
from cluster_model.delegation_tokens import DelegationToken

NO_LEADER: Final = -1
NO_STATE_ZNODE: Final = -1

Replicas = tuple[int, ...]


class PartitionState(NamedTuple):
    """The content of one partition's `state` znode, plus that znode's version.

    `partition_epoch` is the znode's data version; NO_STATE_ZNODE while it has not been written.
    """

    leader: int
    leader_epoch: int
    isr: Replicas
    controller_epoch: int
    partition_epoch: int
    recovering: bool = False


NO_STATE: Final = PartitionState(NO_LEADER, 0, (), 0, NO_STATE_ZNODE)


class ConfigResource(NamedTuple):
    """A config znode below /config: its entity type and its (unescaped) entity path.

    `entity_type` is ZooKeeper's word: topics, brokers, users, clients, ips. `entity_name` is the
    name as stored, already sanitised where Kafka sanitises (kafka-semantics 2.9), for example
    `alice/clients/app%201` below users, or `<default>`.
    """

    entity_type: str
    entity_name: str


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """A topic is created: its config znode and its topic znode, in one multi."""

    name: str
    topic_id: bytes  # 16 bytes
    assignment: tuple[Replicas, ...]  # by partition number
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AssignmentRecord:
    """The topic znode is rewritten: partitions added, or a reassignment under way."""

    topic: str
    assignment: tuple[Replicas, ...]
    adding: Mapping[int, Replicas] = field(default_factory=dict)
    removing: Mapping[int, Replicas] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicIdRecord:
    """A topic written without an id gets one (first election after such a write)."""

    topic: str
    topic_id: bytes


@dataclass(frozen=True, slots=True)
class PartitionRecord:
    """A partition's state znode is created or set; its version will be `state.partition_epoch`."""

    topic: str
    partition: int
    state: PartitionState


@dataclass(frozen=True, slots=True)
class ConfigRecord:
    """A config znode is written whole; an emptied user, client or ip loses its znode."""

    resource: ConfigResource
    configs: Mapping[str, str]
    notify: bool = True  # Creates a change notification; topic creation does not.


@dataclass(frozen=True, slots=True)
class DeletionMarkerRecord:
    """A topic's deletion was accepted: /admin/delete_topics/<topic> exists."""

    topic: str


@dataclass(frozen=True, slots=True)
class DeletionMarkerRemovalRecord:
    """A deletion marker without a topic goes."""

    topic: str


@dataclass(frozen=True, slots=True)
class TopicRemovalRecord:
    """A topic is gone: its znodes, its config and its deletion marker."""

    topic: str


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """A delegation token is issued, or lives longer or shorter; brokers are told."""

    token: DelegationToken


@dataclass(frozen=True, slots=True)
class TokenRemovalRecord:
    """A delegation token is gone; brokers are told."""

    token_id: str


@dataclass(frozen=True, slots=True)
class AclRecord:
    """The rules of one pattern are written whole, and brokers are told; none removes its znode."""

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
    | AclRecord
)
