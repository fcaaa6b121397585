"""Builders that check a request while it is written (KIP-4 §Admin Client)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from bridgehead.admin.calls.topics import (
    NO_CONFIGS,
    NewTopic,
    NewTopicWithReplicaAssignments,
    NewTopicWithReplication,
)
from bridgehead.admin.errors import InvalidCallError


class NewTopicsBuilder:
    """Builds the topics for `create_topics`.

    >>> builder = NewTopicsBuilder().add("orders", partitions=3, replication_factor=2)
    >>> [topic.name for topic in builder.add("audit", assignment={0: [2, 1]}).build()]
    ['orders', 'audit']
    """

    def __init__(self) -> None:
        self._topics: dict[str, NewTopic] = {}

    def add(
        self,
        name: str,
        *,
        partitions: int | None = None,
        replication_factor: int | None = None,
        assignment: Mapping[int, Sequence[int]] | None = None,
        configs: Mapping[str, str | None] = NO_CONFIGS,
    ) -> Self:
        """Add a topic. Without counts and without an assignment the broker's defaults apply.

        Raises:
            InvalidCallError: the name was added before, a count is below 1, there are counts beside
                an assignment, or the assignment is invalid.
        """
        if name in self._topics:
            raise InvalidCallError(f"Topic {name!r} is named twice: give each name once.")
        counts = {"partitions": partitions, "replication_factor": replication_factor}
        numbers = {count: value for count, value in counts.items() if value is not None}
        if assignment is None:
            for count, value in numbers.items():
                if value < 1:
                    raise InvalidCallError(f"Topic {name!r}: {count} is {value}; give 1 or more.")
            self._topics[name] = NewTopicWithReplication(
                name, numbers.get("partitions", -1), numbers.get("replication_factor", -1), configs
            )
            return self
        if numbers:
            named = " and ".join(numbers)
            raise InvalidCallError(f"Topic {name!r}: give an assignment or {named}, not both.")
        _check_assignment(name, assignment)
        self._topics[name] = NewTopicWithReplicaAssignments(name, assignment, configs)
        return self

    def build(self) -> list[NewTopic]:
        """Return the topics in the order in which they were added."""
        return list(self._topics.values())


class AlterConfigRequestBuilder:
    """Builds the changes for `alter_config`, by the name of the topic or broker.

    >>> AlterConfigRequestBuilder().set("orders", "retention.ms", "1000").build()
    {'orders': {'retention.ms': '1000'}}
    """

    def __init__(self) -> None:
        self._changes: dict[str, dict[str, str | None]] = {}

    def set(self, entity: str, config: str, value: str) -> Self:
        """Set a config. Raises InvalidCallError if the config has another change already."""
        return self._add(entity, config, value)

    def delete(self, entity: str, config: str) -> Self:
        """Reset a config to its default. Raises InvalidCallError like `set`."""
        return self._add(entity, config, None)

    def build(self) -> dict[str, dict[str, str | None]]:
        """Return the changes; None resets a config."""
        return {entity: dict(changes) for entity, changes in self._changes.items()}

    def _add(self, entity: str, config: str, value: str | None) -> Self:
        changes = self._changes.setdefault(entity, {})
        if config in changes:
            raise InvalidCallError(f"{config} of {entity!r} is changed twice: give one change.")
        changes[config] = value
        return self


def _check_assignment(name: str, assignment: Mapping[int, Sequence[int]]) -> None:
    if not assignment or sorted(assignment) != list(range(len(assignment))):
        raise InvalidCallError(
            f"Topic {name!r}: the partitions of an assignment are 0, 1, 2 and so on, "
            f"not {', '.join(map(str, sorted(assignment))) or 'empty'}."
        )
    sizes = {len(brokers) for brokers in assignment.values()}
    for partition, brokers in assignment.items():
        if not brokers or len(set(brokers)) < len(brokers) or len(sizes) > 1:
            raise InvalidCallError(
                f"Topic {name!r}: give partition {partition} different brokers, "
                "and every partition the same number of them."
            )
