"""The topic policy on deletion of records, evaluated by the partition leader. KIP-201.

The policy runs in its own thread. Its queries about topics are answered on the broker's event loop.
The answers come from ZooKeeper, because the metadata cache lacks configs, pending deletions and the
targets of reassignments.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from bridgehead.kafka_wire.errors import ApiError
from bridgehead.policy import ClusterState, DeleteRecordsRequest, TopicState
from broker_proxy.metadata.cache import MetadataCache
from cluster_model.image import Topic
from cluster_model.policy_state import policy_principal, topic_state
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

    async def read_topic(self, name: str) -> Topic | None:
        """Return a topic without the states of its partitions; None if it does not exist."""

    async def read_topic_names(self) -> frozenset[str]:
        """Return the names of all topics."""

    async def read_deletions(self) -> frozenset[str]:
        """Return the topics that are marked for deletion."""


@dataclass(frozen=True, slots=True)
class RecordsPolicy:
    """Evaluates the policy for one topic's records."""

    policies: RecordPolicies
    cache: MetadataCache
    reader: StateReader

    async def rejection(
        self, principal: Principal, topic: str, offsets: Mapping[int, int]
    ) -> ApiError | None:
        """Return the policy's error, if any. `offsets` maps partitions to new log start offsets."""
        client = policy_principal(principal)
        cluster = _StoredClusterState(self.cache, self.reader, asyncio.get_running_loop())
        return await self.policies.check_record_deletion(
            DeleteRecordsRequest(topic, client, dict(offsets)), cluster
        )


class _StoredClusterState:
    """Reads topics from ZooKeeper and live brokers from the cache, for a policy's thread."""

    def __init__(
        self, cache: MetadataCache, reader: StateReader, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._cache = cache
        self._reader = reader
        self._loop = loop

    def topic_state(self, topic_name: str) -> TopicState | None:
        return self._look_up(self._topic_state(topic_name))

    def topics(self, include_internal: bool, include_marked_for_deletion: bool) -> AbstractSet[str]:
        return self._look_up(self._topics(include_internal, include_marked_for_deletion))

    def cluster_size(self) -> int:
        return self._look_up(self._cluster_size())

    def _look_up(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_LOOK_UP_S)

    async def _topic_state(self, name: str) -> TopicState | None:
        topic = await self._reader.read_topic(name)
        if topic is None:
            return None
        configs = await self._reader.read_config("topics", name)
        return topic_state(topic, configs, marked=name in await self._reader.read_deletions())

    async def _topics(self, internal: bool, marked: bool) -> frozenset[str]:
        names = await self._reader.read_topic_names()
        if not internal:
            names -= INTERNAL_TOPICS
        return names if marked else names - await self._reader.read_deletions()

    async def _cluster_size(self) -> int:
        return len(self._cache.brokers)
