"""`topic.management.policy.class.name`: KIP-201's one policy for the whole life of a topic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Protocol

from bridgehead.policy.configurable import Configurable


@dataclass(frozen=True, slots=True)
class KafkaPrincipal:
    """Who asks, for example `User:alice`."""

    principal_type: str
    name: str

    def __str__(self) -> str:
        return f"{self.principal_type}:{self.name}"


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic as it is. Its assignments map partition to broker ids, the preferred leader first.

    `configs` are the topic's own, without the defaults. While replicas are reassigned the
    assignments are those that the reassignment leads to.
    """

    num_partitions: int
    replication_factor: int  # of partition 0
    replicas_assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)
    configs: Mapping[str, str] = field(default_factory=dict)
    marked_for_deletion: bool = False
    internal: bool = False


@dataclass(frozen=True, slots=True)
class RequestedTopicState(TopicState):
    """A topic as it would be.

    `generated_replica_assignments` is False only where the client itself says where replicas go.
    """

    generated_replica_assignments: bool = True


class ClusterState(Protocol):
    """The topics of the cluster before the request takes effect. Good during the call alone."""

    def topic_state(self, topic_name: str) -> TopicState | None:
        """Return a topic; None when there is none of that name."""
        ...

    def topics(self, include_internal: bool, include_marked_for_deletion: bool) -> AbstractSet[str]:
        """Return the names of all topics, less what is not to be included."""
        ...

    def cluster_size(self) -> int:
        """Return the number of live brokers."""
        ...


@dataclass(frozen=True, slots=True)
class FixedClusterState:
    """A ClusterState made by hand, for tests of policies."""

    states: Mapping[str, TopicState] = field(default_factory=dict)
    size: int = 1

    def topic_state(self, topic_name: str) -> TopicState | None:
        """See ClusterState."""
        return self.states.get(topic_name)

    def topics(self, include_internal: bool, include_marked_for_deletion: bool) -> AbstractSet[str]:
        """See ClusterState."""
        return {
            name
            for name, state in self.states.items()
            if (include_internal or not state.internal)
            and (include_marked_for_deletion or not state.marked_for_deletion)
        }

    def cluster_size(self) -> int:
        """See ClusterState."""
        return self.size


@dataclass(frozen=True, slots=True)
class _Request:
    """What all requests say: the topic, and who asks (None: the client is not authenticated)."""

    topic: str
    principal: KafkaPrincipal | None


@dataclass(frozen=True, slots=True)
class CreateTopicRequest(_Request):
    """A topic is to be created so."""

    requested_state: RequestedTopicState


@dataclass(frozen=True, slots=True)
class AlterTopicRequest(_Request):
    """A topic is to become so: its configs, its number of partitions or its replicas change."""

    requested_state: RequestedTopicState


@dataclass(frozen=True, slots=True)
class DeleteTopicRequest(_Request):
    """A topic is to be deleted."""


@dataclass(frozen=True, slots=True)
class DeleteRecordsRequest(_Request):
    """Records of a topic are to be deleted: partition -> the offset before which all go.

    The offsets are as requested; -1 is the high watermark. Only partitions that the asked broker
    leads are here.
    """

    deleted_message_offsets: Mapping[int, int]


class TopicManagementPolicy(Configurable, ABC):
    """Judges creation, alteration and deletion of topics, and the deletion of their records.

    The controller asks after Kafka's own checks, also when the client only validates; about
    records the partitions' leader asks. Calls may come from several threads when one of them takes
    long. A violation concerns the one topic; others of the same request are judged on their own.
    """

    @abstractmethod
    def validate_create_topic(
        self, request_metadata: CreateTopicRequest, cluster_state: ClusterState
    ) -> None:
        """Raise PolicyViolationException when the topic may not be created."""

    @abstractmethod
    def validate_alter_topic(
        self, request_metadata: AlterTopicRequest, cluster_state: ClusterState
    ) -> None:
        """Raise PolicyViolationException when the topic may not become so."""

    @abstractmethod
    def validate_delete_topic(
        self, request_metadata: DeleteTopicRequest, cluster_state: ClusterState
    ) -> None:
        """Raise PolicyViolationException when the topic may not be deleted."""

    @abstractmethod
    def validate_delete_records(
        self, request_metadata: DeleteRecordsRequest, cluster_state: ClusterState
    ) -> None:
        """Raise PolicyViolationException when the records may not be deleted."""
