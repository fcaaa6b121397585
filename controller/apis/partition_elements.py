"""Element names of requests that list partitions."""

from __future__ import annotations

from collections.abc import Iterable


def partition_element(topic: str, partition: int) -> str:
    """Return the element name `topic:partition`."""
    return f"{topic}:{partition}"


def topic_partition(element: str) -> tuple[str, int]:
    """Return the topic and the partition of an element; the topic may contain colons."""
    topic, _, partition = element.rpartition(":")
    return topic, int(partition)


def by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Group partitions by topic. Keeps their order and drops duplicates."""
    grouped: dict[str, list[int]] = {}
    for topic, partition in dict.fromkeys(partitions):
        grouped.setdefault(topic, []).append(partition)
    return grouped
