"""Publishes committed metadata to every broker: Kafka's UpdateMetadata, pushed over the channels.

Each update carries the controller epoch and the zxid, so a broker can discard a stale update. A
broker that connects gets the full image in parts, and then the changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.codec import encode_request
from cluster_model.image import MetadataImage
from cluster_model.update_metadata import changed_parts, full_parts
from envelope.messages import MetadataUpdate

UPDATE_METADATA_VERSION = 8


class Peer(Protocol):
    """A broker that receives metadata."""

    def push(self, update: MetadataUpdate, delay_s: float, /) -> None:
        """Queue the update; send it after at most `delay_s`."""


class Publisher:
    """The channels of one candidate. Publishes only while the candidate is active."""

    def __init__(self, controller_id: int, own_broker: Peer, delay_s: float = 0.0) -> None:
        """`delay_s`: how long an update may wait for replies, to share a message with them."""
        self._controller_id = controller_id
        self._delay_s = delay_s
        self._peers: list[Peer] = [own_broker]
        self._published: MetadataImage | None = None

    def activate(self, image: MetadataImage) -> None:
        """Start publishing: push the full image to every broker."""
        self._published = image
        self._push_full(image, self._peers)

    def deactivate(self) -> None:
        """Stop publishing."""
        self._published = None

    def connected(self, peer: Peer) -> None:
        """A broker opened a channel."""
        self._peers.append(peer)
        if self._published is not None:
            self._push_full(self._published, [peer])

    def disconnected(self, peer: Peer) -> None:
        """A channel closed."""
        if peer in self._peers:
            self._peers.remove(peer)

    def publish(self, image: MetadataImage, changed: frozenset[str]) -> None:
        """Push the topics in `changed`, and the live brokers."""
        before = self._published
        if before is None:
            return
        self._published = image
        for message in changed_parts(before, image, changed, self._controller_id):
            self._push(
                self._peers, image, message, starts=False, complete=True, delay_s=self._delay_s
            )

    def _push_full(self, image: MetadataImage, peers: Sequence[Peer]) -> None:
        parts = list(full_parts(image, self._controller_id))
        for count, message in enumerate(parts, 1):
            self._push(peers, image, message, starts=count == 1, complete=count == len(parts))

    def _push(
        self,
        peers: Sequence[Peer],
        image: MetadataImage,
        message: object,
        *,
        starts: bool,
        complete: bool,
        delay_s: float = 0.0,
    ) -> None:
        update = MetadataUpdate(
            controller_id=self._controller_id,
            controller_epoch=image.controller_epoch,
            zxid=image.zxid,
            update_metadata=encode_request(
                ApiKey.UPDATE_METADATA, UPDATE_METADATA_VERSION, message
            ),
            starts_full_image=starts,
            complete=complete,
        )
        for peer in peers:
            peer.push(update, delay_s)
