"""The controller, and the brokers that have a listener, for Metadata and DescribeCluster.

The controller that clients see is configurable per listener: the actual one, a random live broker
(as with KRaft), this broker, or any fixed id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from broker_proxy.metadata.cache import NO_CONTROLLER, CachedBroker, CachedEndpoint, MetadataCache
from cluster_model.scala_order import long_map_order

ACTUAL: Final = "actual"
RANDOM: Final = "random"
SELF: Final = "self"


class ClusterView:
    """The metadata cache as seen through this broker's listeners."""

    def __init__(
        self,
        cache: MetadataCache,
        *,
        broker_id: int,
        cluster_id: str,
        named_controllers: Mapping[str, str],  # listener name -> actual, random, self or an id
        choose: Callable[[int], int],  # returns a number below its argument
    ) -> None:
        self.cache = cache
        self.cluster_id = cluster_id
        self._broker_id = broker_id
        self._named_controllers = named_controllers
        self._choose = choose

    def brokers(self, listener_name: str) -> list[tuple[CachedBroker, CachedEndpoint]]:
        """Return the live brokers that have this listener, in the order of Kafka's hash table."""
        ordered = long_map_order(tuple(sorted(self.cache.brokers)))
        brokers = [self.cache.brokers[broker_id] for broker_id in ordered]
        return [
            (broker, broker.endpoints[listener_name])
            for broker in brokers
            if listener_name in broker.endpoints
        ]

    def is_random(self, listener_name: str) -> bool:
        """True when responses name a random broker as controller, and so must not be cached."""
        return self._named(listener_name) == RANDOM

    def _named(self, listener_name: str) -> str:
        """Return the listener's setting. As in Kafka, clients never see a KRaft controller."""
        named = self._named_controllers.get(listener_name, ACTUAL)
        return RANDOM if named == ACTUAL and self.cache.controller_is_kraft else named

    def controller_id(self, listener_name: str) -> int:
        """Return the controller id for clients of this listener."""
        named = self._named(listener_name)
        if named == ACTUAL:
            controller_id = self.cache.controller_id
            return controller_id if controller_id in self.cache.brokers else NO_CONTROLLER
        if named == SELF:
            return self._broker_id
        if named == RANDOM:
            brokers = self.brokers(listener_name)
            return brokers[self._choose(len(brokers))][0].broker_id if brokers else NO_CONTROLLER
        return int(named)
