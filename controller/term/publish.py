"""Publishes committed metadata to every broker: Kafka's UpdateMetadata, pushed over the channels.

Each update carries the controller epoch and the zxid, so a broker can discard a stale update. A
broker that connects gets the full image in parts, and every change from then on. The controller
executes requests between two parts, so some changes are published before the last part. A part has
the newest state of its topics. A topic that was published as a change is not in a later part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.codec import encode_request
from bridgehead.kafka_wire.messages.update_metadata import UpdateMetadataRequest
from bridgehead.slices import in_thread
from cluster_model.image import MetadataImage
from cluster_model.update_metadata import all_names, changed_parts, take_part
from controller.services import Peer
from envelope.messages import MetadataUpdate

UPDATE_METADATA_VERSION = 8
_MANY: Final = 200  # topics; their message is encoded in a few milliseconds


class _Part(NamedTuple):
    """A message, and its bytes."""

    message: UpdateMetadataRequest
    encoded: bytes


@dataclass(slots=True)
class _FullImage:
    """A full image on its way to some peers, and its topics that are not sent yet."""

    peers: list[Peer]
    unsent: dict[str, None]


class Publisher:
    """The channels of one candidate. Publishes only while the candidate is active."""

    def __init__(self, controller_id: int, own_broker: Peer, delay_s: float = 0.0) -> None:
        """`delay_s`: how long an update may wait for replies, to share a message with them."""
        self._controller_id = controller_id
        self._delay_s = delay_s
        self._connected: list[Peer] = [own_broker]
        # Those of them that have a full image. The others are in `_full_images`.
        self._peers: list[Peer] = []
        self._full_images: list[_FullImage] = []
        self._published: MetadataImage | None = None

    def activate(self, image: MetadataImage) -> None:
        """Start publishing: push the first part of the full image to every broker."""
        self._published = image
        self._begin(image, list(self._connected))

    def deactivate(self) -> None:
        """Stop publishing, also after a push that failed half-way."""
        self._published = None
        self._peers.clear()
        self._full_images.clear()

    def connected(self, peer: Peer) -> None:
        """A broker opened a channel: push the first part of the full image."""
        self._connected.append(peer)
        if self._published is not None:
            self._begin(self._published, [peer])

    def disconnected(self, peer: Peer) -> None:
        """A channel closed."""
        for peers in (
            self._connected,
            self._peers,
            *(full.peers for full in self._full_images),
        ):
            if peer in peers:
                peers.remove(peer)
        self._full_images = [full for full in self._full_images if full.peers]

    async def publish(self, image: MetadataImage, changed: frozenset[str]) -> None:
        """Push the topics in `changed`, and the live brokers.

        Many topics are encoded in the thread, part by part. Peers that connect meanwhile get a full
        image with the same topics; the remaining parts change nothing for them.
        """
        before = self._published
        if before is None:
            return
        self._published = image
        earlier = tuple(self._full_images)
        parts = _encoded(changed_parts(before, image, changed, self._controller_id))
        part = await in_thread(len(changed) > _MANY, next, parts)
        while part is not None:
            following = await in_thread(len(changed) > _MANY, next, parts, None)
            # Only the last part raises the zxid of a broker's image.
            is_last = following is None
            update = self._update(image, part, complete=is_last, between_parts=not is_last)
            _push(self._peers, update, self._delay_s)
            for full in self._full_images:
                between = replace(update, complete=False, between_parts=True)
                _push(full.peers, between, self._delay_s)
            part = following
        for full in earlier:
            for name in changed:
                full.unsent.pop(name, None)

    def push_part(self) -> bool:
        """Push one part of a full image. Return whether parts remain."""
        image = self._published
        if image is not None and self._full_images:
            self._push_part(image, self._full_images.pop(0), starts=False)
        return bool(self._full_images)

    def _begin(self, image: MetadataImage, peers: list[Peer]) -> None:
        self._push_part(image, _FullImage(peers, all_names(image)), starts=True)

    def _push_part(self, image: MetadataImage, full: _FullImage, *, starts: bool) -> None:
        message = take_part(image, full.unsent, self._controller_id)
        is_last = not full.unsent
        update = self._update(image, _encode(message), starts=starts, complete=is_last)
        _push(full.peers, update)
        if is_last:
            self._peers += full.peers
        else:
            self._full_images.append(full)

    def _update(
        self,
        image: MetadataImage,
        part: _Part,
        *,
        starts: bool = False,
        complete: bool = False,
        between_parts: bool = False,
    ) -> MetadataUpdate:
        return MetadataUpdate(
            controller_id=self._controller_id,
            controller_epoch=image.controller_epoch,
            zxid=image.zxid,
            update_metadata=part.encoded,
            starts_full_image=starts,
            complete=complete,
            between_parts=between_parts,
            message=part.message,
        )


def _encode(message: UpdateMetadataRequest) -> _Part:
    encoded = encode_request(ApiKey.UPDATE_METADATA, UPDATE_METADATA_VERSION, message)
    return _Part(message, encoded)


def _encoded(messages: Iterable[UpdateMetadataRequest]) -> Iterator[_Part | None]:
    yield from map(_encode, messages)


def _push(peers: Iterable[Peer], update: MetadataUpdate, delay_s: float = 0.0) -> None:
    for peer in peers:
        peer.push(update, delay_s)
