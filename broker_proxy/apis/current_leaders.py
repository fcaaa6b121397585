"""Where a client finds the leader of a partition that this broker does not lead (KIP-951)."""

from __future__ import annotations

from typing import NamedTuple

from broker_proxy.metadata_cache import CachedEndpoint, CachedPartition, MetadataCache


class CurrentLeader(NamedTuple):
    """A partition and its leader. `endpoint` is None if the leader lacks the listener."""

    state: CachedPartition
    endpoint: CachedEndpoint | None
    rack: str | None


def current_leader(
    cache: MetadataCache, listener_name: str, topic: str, partition: int
) -> CurrentLeader | None:
    """Return the leader; None for an unknown partition."""
    known = cache.topics.get(topic)
    state = known.partitions.get(partition) if known is not None else None
    if state is None:
        return None
    broker = cache.brokers.get(state.leader)
    if broker is None:
        return CurrentLeader(state, None, None)
    return CurrentLeader(state, broker.endpoints.get(listener_name), broker.rack)
