"""An update with changes may wait for the next reply; a full image is sent at once."""

from __future__ import annotations

from cluster_model.image import MetadataImage
from controller.publish import Publisher
from envelope.messages import MetadataUpdate


class Peer:
    """Records the delays of the updates that it receives."""

    def __init__(self) -> None:
        self.delays: list[tuple[bool, float]] = []

    def push(self, update: MetadataUpdate, delay_s: float) -> None:
        self.delays.append((update.starts_full_image, delay_s))


def test_only_changes_are_delayed() -> None:
    own, other = Peer(), Peer()
    publisher = Publisher(1, own, 0.5)
    publisher.activate(MetadataImage())
    publisher.connected(other)
    publisher.publish(MetadataImage(), frozenset())
    assert own.delays == other.delays == [(True, 0.0), (False, 0.5)]
