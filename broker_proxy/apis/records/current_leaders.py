"""Tells clients the leaders of partitions that this broker does not lead (KIP-951)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol, TypeVar

from broker_proxy.metadata.cache import MetadataCache

_Endpoint = TypeVar("_Endpoint")


class LeaderField(Protocol):
    """The field `current_leader` of a partition's result."""

    leader_id: int
    leader_epoch: int


class Moved(NamedTuple):
    """A partition that this broker does not lead, and the field for its leader."""

    topic: str
    partition: int
    leader: LeaderField


def name_leaders(
    cache: MetadataCache,
    listener_name: str,
    moved: Iterable[Moved],
    new_endpoint: Callable[[int, str, int, str | None], _Endpoint],
) -> list[_Endpoint]:
    """Fill in the leaders, and return the endpoint of each leader that has the client's listener.

    Unknown partitions are skipped. `new_endpoint` gets broker id, host, port and rack.
    """
    endpoints: dict[int, _Endpoint] = {}
    for name, number, field in moved:
        topic = cache.topics.get(name)
        state = topic.partitions.get(number) if topic is not None else None
        if state is None:
            continue
        field.leader_id, field.leader_epoch = state.leader, state.leader_epoch
        broker = cache.brokers.get(state.leader)
        endpoint = broker.endpoints.get(listener_name) if broker is not None else None
        if broker is not None and endpoint is not None:
            endpoints[state.leader] = new_endpoint(
                state.leader, endpoint.host, endpoint.port, broker.rack
            )
    return list(endpoints.values())
