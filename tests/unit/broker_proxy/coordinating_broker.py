"""Broker 1 of three, to test APIs that find coordinators and the leaders of partitions.

`CoordinatingBroker.create` creates a topic whose partition n is led by the first broker of
`assignment[n]`; `call` returns a response as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from immutables import Map

from bridgehead.kafka_wire.codec import encode_request, encode_response
from bridgehead.kafka_wire.json_form import decode_body
from broker_proxy.apis.admin.cluster_view import ClusterView
from broker_proxy.apis.base import LocalApi
from broker_proxy.apis.groups.coordinators import Coordinators
from broker_proxy.metadata.cache import MetadataCache
from cluster_model.image import BrokerRegistration, Endpoint, MetadataImage
from cluster_model.partitions.elections import elect_new
from cluster_model.records import PartitionRecord, TopicRecord, TopicRemovalRecord
from cluster_model.update_metadata import full_parts
from envelope.messages import MetadataUpdate
from tests.unit.broker_proxy.client_requests import a_request


def apply_image(
    cache: MetadataCache, image: MetadataImage, controller_id: int = 1
) -> MetadataCache:
    """Update the cache with a full image; return the cache."""
    parts = list(full_parts(image, controller_id))
    for count, part in enumerate(parts, start=1):
        body = encode_request(6, 8, part)
        first, last = count == 1, count == len(parts)
        cache.apply(MetadataUpdate(controller_id, 1, image.zxid, body, first, last))
    return cache


class CoordinatingBroker:
    """Brokers 1, 2 and 3 are alive; broker 3 has no listener INNER."""

    def __init__(self) -> None:
        brokers = {
            i: BrokerRegistration(
                i,
                i,
                tuple(
                    Endpoint(name, "PLAINTEXT", f"host{i}", 9000 + i)
                    for name in ("PLAINTEXT", "INNER")
                    if name == "PLAINTEXT" or i < 3
                ),
            )
            for i in (1, 2, 3)
        }
        self.image = MetadataImage(zxid=1, controller_epoch=1, brokers=Map(brokers))
        self.cache = MetadataCache(lambda: None)
        self.coordinators = Coordinators(self.cache, 1)
        self.view = ClusterView(
            self.cache, broker_id=1, cluster_id="c", named_controllers={}, choose=lambda count: 0
        )
        self._publish()

    def create(
        self,
        name: str,
        *assignment: tuple[int, ...],
        topic_id: bytes | None = None,
        configs: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Create a topic. Each item of `assignment` has the replicas of one partition."""
        topic_id = topic_id or name.encode()[:16].ljust(16)
        image = self.image.replay([TopicRecord(name, topic_id, assignment, configs)])
        states = [elect_new(replicas, image.brokers, 1) for replicas in assignment]
        self.image = image.replay([PartitionRecord(name, p, s) for p, s in enumerate(states) if s])
        self._publish()

    def delete(self, name: str) -> None:
        self.image = self.image.replay([TopicRemovalRecord(name)])
        self._publish()

    def _publish(self) -> None:
        self.image = replace(self.image, zxid=self.image.zxid + 1)
        apply_image(self.cache, self.image)

    async def call(
        self, api: LocalApi, version: int, message: Any, listener: str = "PLAINTEXT"
    ) -> Any:
        """Return the response as JSON."""
        key = api.api_key
        response = await api.handle(a_request(key, version, listener_name=listener), message)
        if not isinstance(response, bytes):  # Bytes are a cached response.
            response = encode_response(key, version, response)
        return decode_body(key, "response", version, response)
