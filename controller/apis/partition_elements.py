"""How requests that name partitions name their elements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

# The element of a request that is refused as a whole. No topic and no partition is named so.
WHOLE_REQUEST: Final = ""


def partition_element(topic: str, partition: int) -> str:
    """Return the element of a partition. Its last colon separates, whatever the topic's name."""
    return f"{topic}:{partition}"


def topic_partition(element: str) -> tuple[str, int]:
    """Return the topic and the partition that an element names."""
    topic, _, partition = element.rpartition(":")
    return topic, int(partition)


def by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Group partitions by topic, both in the order they come in, each once."""
    grouped: dict[str, list[int]] = {}
    for topic, partition in dict.fromkeys(partitions):
        grouped.setdefault(topic, []).append(partition)
    return grouped
