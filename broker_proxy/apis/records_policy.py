"""The topic policy on deletion of records, evaluated by the partition leader. KIP-201.

The policy runs in its own thread. Its queries about the cluster are answered on the broker's event
loop, from the metadata cache and from ZooKeeper, which has configs and deletions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from bridgehead.kafka_wire.errors import ApiError
from bridgehead.policy import ClusterState, DeleteRecordsRequest, KafkaPrincipal, TopicState
from broker_proxy.metadata_cache import MetadataCache
from cluster_model.principal import ANONYMOUS
from cluster_model.principal import KafkaPrincipal as Principal
from cluster_model.topic_names import INTERNAL_TOPICS

_LOOK_UP_S: Final = 10.0
T = TypeVar("T")


class RecordPolicies(Protocol):
    """Evaluates this node's policies."""

    async def check_record_deletion(
        self, request: DeleteRecordsRequest, cluster: ClusterState
    ) -> ApiError | None:
        """Return the violation, or None. Never raises."""


class StateReader(Protocol):
    """Reads what is not in the metadata cache."""

    async def read_config(self, entity_type: str, entity_name: str) -> Mapping[str, str]:
        """See ConfigReader."""

    async def read_deletions(self) -> frozenset[str]:
        """Return the topics that are marked for deletion."""


@dataclass(frozen=True, slots=True)
class RecordsPolicy:
    """Evaluates the policy for one topic's records."""

    policies: RecordPolicies
    cache: MetadataCache
    reader: StateReader

    async def refusal(
        self, principal: Principal, topic: str, offsets: Mapping[int, int]
    ) -> ApiError | None:
        """`offsets` maps a partition to the requested offset before which records are deleted."""
        anonymous = principal == ANONYMOUS
        client = None if anonymous else KafkaPrincipal(principal.type, principal.name)
        cluster = _CachedClusterState(self.cache, self.reader, asyncio.get_running_loop())
        return await self.policies.check_record_deletion(
            DeleteRecordsRequest(topic, client, dict(offsets)), cluster
        )


class _CachedClusterState:
    """A broker's cache as policies see it, from their threads."""

    def __init__(
        self, cache: MetadataCache, reader: StateReader, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._cache = cache
        self._reader = reader
        self._loop = loop

    def topic_state(self, topic_name: str) -> TopicState | None:
        """See ClusterState."""
        return self._look_up(self._topic_state(topic_name))

    def topics(self, include_internal: bool, include_marked_for_deletion: bool) -> AbstractSet[str]:
        """See ClusterState."""
        return self._look_up(self._topics(include_internal, include_marked_for_deletion))

    def cluster_size(self) -> int:
        """See ClusterState."""
        return self._look_up(self._cluster_size())

    def _look_up(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_LOOK_UP_S)

    async def _topic_state(self, name: str) -> TopicState | None:
        topic = self._cache.topics.get(name)
        if topic is None:
            return None
        assignments = {number: p.replicas for number, p in sorted(topic.partitions.items())}
        return TopicState(
            num_partitions=len(assignments),
            replication_factor=len(assignments.get(0, ())),
            replicas_assignments=assignments,
            configs=dict(await self._reader.read_config("topics", name)),
            marked_for_deletion=name in await self._reader.read_deletions(),
            internal=name in INTERNAL_TOPICS,
        )

    async def _topics(self, internal: bool, marked: bool) -> frozenset[str]:
        names = frozenset(self._cache.topics)
        if not internal:
            names -= INTERNAL_TOPICS
        return names if marked else names - await self._reader.read_deletions()

    async def _cluster_size(self) -> int:
        return len(self._cache.brokers)
