"""Tells every broker what was committed: Kafka's UpdateMetadata, pushed over the channels.

Stamped with controller epoch and zxid, so that a receiver can refuse an older controller's. A
broker that connects gets the full image in parts; afterwards it gets what changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from bridgehead.kafka_wire.codec import encode_request
from cluster_model.image import MetadataImage
from cluster_model.update_metadata import changed_parts, full_parts
from controller.loop import ControllerLoop
from envelope.messages import MetadataUpdate

UPDATE_METADATA = 6
UPDATE_METADATA_VERSION = 8


class Peer(Protocol):
    """A broker that can be told of metadata. `push` queues and returns at once."""

    def push(self, update: MetadataUpdate) -> None: ...


class Publisher:
    """All channels of one candidate; silent while it is not in office."""

    def __init__(self, controller_id: int, own_broker: Peer) -> None:
        self._controller_id = controller_id
        self._peers: list[Peer] = [own_broker]
        self._loop: ControllerLoop | None = None

    def take_office(self, loop: ControllerLoop) -> None:
        """Everything is loaded: every broker gets the full image."""
        self._loop = loop
        self._push_full(loop.image, self._peers)

    def silence(self) -> None:
        """Office is over."""
        self._loop = None

    def connected(self, peer: Peer) -> None:
        """A broker opened a channel."""
        self._peers.append(peer)
        if self._loop is not None:
            self._push_full(self._loop.image, [peer])

    def disconnected(self, peer: Peer) -> None:
        """A channel closed."""
        if peer in self._peers:
            self._peers.remove(peer)

    def publish(self, before: MetadataImage, after: MetadataImage, changed: frozenset[str]) -> None:
        """Push the topics in `changed` as `after` has them, and the live brokers."""
        if self._loop is None:
            return
        for update in self._updates(before, after, changed):
            for peer in self._peers:
                peer.push(update)

    def _updates(
        self, before: MetadataImage, after: MetadataImage, changed: frozenset[str]
    ) -> Iterator[MetadataUpdate]:
        for message in changed_parts(before, after, changed, self._controller_id):
            yield self._update(after, message, starts=False, complete=True)

    def _push_full(self, image: MetadataImage, peers: list[Peer]) -> None:
        parts = list(full_parts(image, self._controller_id))
        for count, message in enumerate(parts):
            last = count == len(parts) - 1
            update = self._update(image, message, starts=count == 0, complete=last)
            for peer in peers:
                peer.push(update)

    def _update(
        self, image: MetadataImage, message: object, *, starts: bool, complete: bool
    ) -> MetadataUpdate:
        return MetadataUpdate(
            controller_id=self._controller_id,
            controller_epoch=image.controller_epoch,
            zxid=image.zxid,
            update_metadata=encode_request(UPDATE_METADATA, UPDATE_METADATA_VERSION, message),
            starts_full_image=starts,
            complete=complete,
        )
