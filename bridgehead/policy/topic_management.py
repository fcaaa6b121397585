"""`topic.management.policy.class.name`: KIP-201's policy for all changes of topics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Protocol

from bridgehead.policy.interfaces import Configurable


@dataclass(frozen=True, slots=True)
class KafkaPrincipal:
    """An authenticated client, for example `User:alice`."""

    principal_type: str
    name: str

    def __str__(self) -> str:
        return f"{self.principal_type}:{self.name}"


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic. Its assignments map partition to broker ids, the preferred leader first.

    `configs` are the topic's own, without defaults. During a reassignment the assignments are the
    target replicas.
    """

    num_partitions: int
    replication_factor: int  # of partition 0
    replicas_assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)
    configs: Mapping[str, str] = field(default_factory=dict)
    marked_for_deletion: bool = False
    internal: bool = False


@dataclass(frozen=True, slots=True)
class RequestedTopicState(TopicState):
    """A topic as the request would leave it.

    `generated_replica_assignments` is False in two cases: the client chose the replicas, or the
    request starts, changes or cancels a reassignment.
    """

    generated_replica_assignments: bool = True


class ClusterState(Protocol):
    """The topics before the request takes effect. The object is valid only during the call."""

    def topic_state(self, topic_name: str) -> TopicState | None:
        """Return a topic; None if it does not exist."""
        ...

    def topics(self, include_internal: bool, include_marked_for_deletion: bool) -> AbstractSet[str]:
        """Return the names of the topics."""
        ...

    def cluster_size(self) -> int:
        """Return the number of live brokers."""
        ...


@dataclass(frozen=True, slots=True)
class FixedClusterState:
    """A ClusterState for tests of policies."""

    states: Mapping[str, TopicState] = field(default_factory=dict)
    size: int = 1

    def topic_state(self, topic_name: str) -> TopicState | None:
        return self.states.get(topic_name)

    def topics(self, include_internal: bool, include_marked_for_deletion: bool) -> AbstractSet[str]:
        return {
            name
            for name, state in self.states.items()
            if (include_internal or not state.internal)
            and (include_marked_for_deletion or not state.marked_for_deletion)
        }

    def cluster_size(self) -> int:
        return self.size


@dataclass(frozen=True, slots=True)
class _Request:
    """`principal` is the client, or None if it is not authenticated."""

    topic: str
    principal: KafkaPrincipal | None


@dataclass(frozen=True, slots=True)
class CreateTopicRequest(_Request):
    """Creation of a topic.

    `accepted_before` has the changes of the same client request that the policy has already
    accepted. `cluster_state` does not contain them yet. KIP-201 has no `accepted_before`.
    """

    requested_state: RequestedTopicState
    accepted_before: Sequence[CreateTopicRequest | AlterTopicRequest] = field(
        default=(), kw_only=True
    )


@dataclass(frozen=True, slots=True)
class AlterTopicRequest(_Request):
    """A change of a topic's configs, number of partitions or replicas.

    `accepted_before`: see CreateTopicRequest.
    """

    requested_state: RequestedTopicState
    accepted_before: Sequence[CreateTopicRequest | AlterTopicRequest] = field(
        default=(), kw_only=True
    )


@dataclass(frozen=True, slots=True)
class DeleteTopicRequest(_Request):
    """Deletion of a topic."""


@dataclass(frozen=True, slots=True)
class DeleteRecordsRequest(_Request):
    """Deletion of records.

    `deleted_message_offsets` maps each partition to an offset: all records before this offset are
    deleted. If the client requested -1, the offset is the high watermark. The mapping has only
    partitions that pass all other checks, for example that the receiving broker leads the
    partition.
    """

    deleted_message_offsets: Mapping[int, int]


class TopicManagementPolicy(Configurable, ABC):
    """Checks creation, alteration and deletion of topics, and the deletion of their records.

    The controller calls the policy after Kafka's own checks, also in a dry run. A broker below the
    bridge release calls the policy for its direct writes. For the deletion of records, the leader
    of the partitions calls the policy. If a call takes long, other threads may call the policy at
    the same time.

    A violation affects one topic. The policy checks the other topics of the request separately.
    """

    @abstractmethod
    def validate_create_topic(
        self, request_metadata: CreateTopicRequest, cluster_state: ClusterState
    ) -> None:
        """Raise PolicyViolationException to reject the topic."""

    @abstractmethod
    def validate_alter_topic(
        self, request_metadata: AlterTopicRequest, cluster_state: ClusterState
    ) -> None:
        """Raise PolicyViolationException to reject the alteration."""

    @abstractmethod
    def validate_delete_topic(
        self, request_metadata: DeleteTopicRequest, cluster_state: ClusterState
    ) -> None:
        """Raise PolicyViolationException to reject the deletion."""

    @abstractmethod
    def validate_delete_records(
        self, request_metadata: DeleteRecordsRequest, cluster_state: ClusterState
    ) -> None:
        """Raise PolicyViolationException to reject the deletion."""
