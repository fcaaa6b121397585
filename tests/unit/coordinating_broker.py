"""Broker 1 of three with its metadata cache, asked for what a coordinator or a leader answers.

Read first: `CoordinatingBroker.create` makes a topic whose partition n is led by the first broker
of `assignment[n]`; `ask` returns an answer in JSON's form.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from immutables import Map

from bridgehead.kafka_wire.codec import encode_request, encode_response
from bridgehead.kafka_wire.headers import RequestHeader
from bridgehead.kafka_wire.json_form import decode_body
from broker_proxy.apis.base import ClientConnectionInfo, ClientRequest, LocalApi
from broker_proxy.apis.cluster_view import ClusterView
from broker_proxy.coordinators import Coordinators
from broker_proxy.metadata_cache import MetadataCache
from cluster_model.elections import elect_new
from cluster_model.image import BrokerRegistration, Endpoint, MetadataImage
from cluster_model.principal import ANONYMOUS
from cluster_model.records import PartitionRecord, TopicRecord, TopicRemovalRecord
from cluster_model.update_metadata import full_parts
from envelope.messages import MetadataUpdate


def a_client(listener: str = "PLAINTEXT") -> ClientConnectionInfo:
    """An anonymous client of one listener."""
    return ClientConnectionInfo(
        "c", listener, "PLAINTEXT", "shipped", "127.0.0.1", b"\x7f\0\0\1", ANONYMOUS
    )


def a_request(key: int, version: int, listener: str = "PLAINTEXT") -> ClientRequest:
    """A request of that client; the body is decoded already."""
    return ClientRequest("r", RequestHeader(key, version, 1, "c"), b"", b"", a_client(listener), 0)


class CoordinatingBroker:
    """Brokers 1, 2 and 3 are alive; 3 has no listener INNER."""

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
        self._image = MetadataImage(zxid=1, controller_epoch=1, brokers=Map(brokers))
        self.cache = MetadataCache(lambda: None)
        self.coordinators = Coordinators(self.cache, 1)
        self.view = ClusterView(
            self.cache, broker_id=1, cluster_id="c", controller_says={}, choose=lambda count: 0
        )
        self._publish()

    def create(
        self, name: str, *assignment: tuple[int, ...], topic_id: bytes | None = None
    ) -> None:
        """Make a topic with the replicas of each partition."""
        topic_id = topic_id or name.encode()[:16].ljust(16)
        image = self._image.replay([TopicRecord(name, topic_id, assignment, {})])
        states = [elect_new(replicas, image.brokers, 1) for replicas in assignment]
        self._image = image.replay([PartitionRecord(name, p, s) for p, s in enumerate(states) if s])
        self._publish()

    def delete(self, name: str) -> None:
        """Remove a topic."""
        self._image = self._image.replay([TopicRemovalRecord(name)])
        self._publish()

    def _publish(self) -> None:
        self._image = replace(self._image, zxid=self._image.zxid + 1)
        parts = list(full_parts(self._image, 1))
        for count, part in enumerate(parts):
            body, last = encode_request(6, 8, part), count == len(parts) - 1
            self.cache.apply(MetadataUpdate(1, 1, self._image.zxid, body, count == 0, last))

    async def ask(
        self, api: LocalApi, version: int, message: Any, listener: str = "PLAINTEXT"
    ) -> Any:
        """Return the answer in JSON's form."""
        key = api.api_key
        answer = await api.answer(a_request(key, version, listener), message)
        if not isinstance(answer, bytes):  # Else it was kept.
            answer = encode_response(key, version, answer)
        return decode_body(key, "response", version, answer)
