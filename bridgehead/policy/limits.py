"""Limits on topics, read from the broker's properties.

    topic.management.policy.class.name=bridgehead.policy.limits.TopicLimits
    bridgehead.policy.limits.partitions.max=12
    bridgehead.policy.limits.replication.factor.min=3

Limits are optional. A topic that already exceeds a limit may be altered, but must not exceed it by
more. A limit on the cluster counts the topics that existed before the request, and each new topic
by itself. So one request with several topics can exceed the limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bridgehead.policy.topic_management import (
    AlterTopicRequest,
    ClusterState,
    CreateTopicRequest,
    DeleteRecordsRequest,
    DeleteTopicRequest,
    RequestedTopicState,
    TopicManagementPolicy,
    TopicState,
)
from bridgehead.policy.violation import PolicyViolationException

PREFIX: Final = "bridgehead.policy.limits."
_LIMITS: Final = (
    "partitions.max",
    "replication.factor.min",
    "replication.factor.max",
    "retention.ms.max",
    "topics.max",
    "cluster.partitions.max",
)
_FOREVER: Final = float("inf")


class TopicLimits(TopicManagementPolicy):
    """Limits of each topic and of the cluster. Internal topics are exempt."""

    def __init__(self) -> None:
        self._limits: dict[str, int] = {}

    def configure(self, configs: Mapping[str, str]) -> None:
        """Read the limits; raises ValueError for unknown names and invalid numbers."""
        for name in sorted(n for n in configs if n.startswith(PREFIX)):
            limit = name.removeprefix(PREFIX)
            if limit not in _LIMITS:
                raise ValueError(f"{name} is not a limit; the limits are {', '.join(_LIMITS)}")
            if not configs[name].strip().isdigit():
                raise ValueError(f"{name}={configs[name]} is not a number")
            self._limits[limit] = int(configs[name])

    def validate_create_topic(
        self, request_metadata: CreateTopicRequest, cluster_state: ClusterState
    ) -> None:
        """See TopicManagementPolicy."""
        if request_metadata.requested_state.internal:
            return
        self._check_topic(request_metadata.topic, request_metadata.requested_state, None)
        names = cluster_state.topics(False, False)
        self._check_maximum("topics.max", len(names) + 1, "The cluster would have {} topics")
        if "cluster.partitions.max" in self._limits:
            states = (cluster_state.topic_state(name) for name in names)
            existing = sum(state.num_partitions for state in states if state is not None)
            self._check_cluster(existing, request_metadata.requested_state.num_partitions)

    def validate_alter_topic(
        self, request_metadata: AlterTopicRequest, cluster_state: ClusterState
    ) -> None:
        """See TopicManagementPolicy."""
        requested = request_metadata.requested_state
        if requested.internal:
            return
        before = cluster_state.topic_state(request_metadata.topic)
        self._check_topic(request_metadata.topic, requested, before)
        if before is None or requested.num_partitions <= before.num_partitions:
            return
        if "cluster.partitions.max" in self._limits:
            states = (cluster_state.topic_state(n) for n in cluster_state.topics(False, False))
            existing = sum(state.num_partitions for state in states if state is not None)
            self._check_cluster(existing, requested.num_partitions - before.num_partitions)

    def validate_delete_topic(
        self, request_metadata: DeleteTopicRequest, cluster_state: ClusterState
    ) -> None:
        """Accept all: no limit applies."""

    def validate_delete_records(
        self, request_metadata: DeleteRecordsRequest, cluster_state: ClusterState
    ) -> None:
        """Accept all: no limit applies."""

    def _check_topic(
        self, topic: str, requested: RequestedTopicState, before: TopicState | None
    ) -> None:
        partitions, factor = requested.num_partitions, requested.replication_factor
        if before is None or partitions > before.num_partitions:
            self._check_maximum(
                "partitions.max", partitions, f"Topic '{topic}' would have {{}} partitions"
            )
        minimum = self._limits.get("replication.factor.min", 0)
        if factor < minimum and (before is None or factor < before.replication_factor):
            raise PolicyViolationException(
                f"Topic '{topic}' would have {factor} replicas; at least {minimum} are required."
            )
        if before is None or factor > before.replication_factor:
            self._check_maximum(
                "replication.factor.max", factor, f"Topic '{topic}' would have {{}} replicas"
            )
        self._check_retention(topic, requested, before)

    def _check_retention(
        self, topic: str, requested: RequestedTopicState, before: TopicState | None
    ) -> None:
        kept, limit = _retention_ms(requested), self._limits.get("retention.ms.max")
        if limit is None or kept is None or kept <= limit:
            return
        kept_before = _retention_ms(before) if before is not None else None
        if kept_before is None or kept > kept_before:
            raise PolicyViolationException(
                f"Topic '{topic}' would keep its records for {requested.configs['retention.ms']} "
                f"ms (retention.ms); the limit is {limit}."
            )

    def _check_cluster(self, existing: int, more: int) -> None:
        self._check_maximum(
            "cluster.partitions.max", existing + more, "The cluster would have {} partitions"
        )

    def _check_maximum(self, limit: str, value: int, text: str) -> None:
        maximum = self._limits.get(limit)
        if maximum is not None and value > maximum:
            raise PolicyViolationException(f"{text.format(value)}; the limit is {maximum}.")


def _retention_ms(state: TopicState) -> float | None:
    """Return the topic's own retention.ms; None if it has none."""
    text = state.configs.get("retention.ms")
    if text is None:
        return None
    return _FOREVER if int(text) < 0 else int(text)
