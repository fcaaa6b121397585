"""Limits on topics, read from the broker's properties.

    topic.management.policy.class.name=bridgehead.policy.limits.TopicLimits
    bridgehead.policy.limits.partitions.max=12
    bridgehead.policy.limits.replication.factor.min=3

Limits are optional. A topic that already exceeds a limit may be altered, but must not exceed it
further. The limits on the whole cluster count the topics that exist, except internal ones and those
marked for deletion, and the topics that the policy has accepted in the same request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bridgehead.policy.interfaces import PolicyViolationException
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
        if request_metadata.requested_state.internal:
            return
        self._check_topic(request_metadata.topic, request_metadata.requested_state, None)
        names = cluster_state.topics(False, False)
        accepted = {earlier.topic for earlier in _accepted(request_metadata, CreateTopicRequest)}
        count = len(names) + sum(name not in names for name in accepted) + 1
        self._check_maximum("topics.max", count, "The cluster would have {} topics")
        self._check_cluster(request_metadata, cluster_state)

    def validate_alter_topic(
        self, request_metadata: AlterTopicRequest, cluster_state: ClusterState
    ) -> None:
        requested = request_metadata.requested_state
        if requested.internal:
            return
        before = cluster_state.topic_state(request_metadata.topic)
        self._check_topic(request_metadata.topic, requested, before)
        if before is not None and requested.num_partitions > before.num_partitions:
            self._check_cluster(request_metadata, cluster_state)

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
        partitions = requested.num_partitions
        if before is None or partitions > before.num_partitions:
            self._check_maximum(
                "partitions.max", partitions, f"Topic '{topic}' would have {{}} partitions"
            )
        factors_before = _factors(before) if before is not None else {}
        # A new partition, which usually gets as many replicas as partition 0, is compared with it.
        first = before.replication_factor if before is not None else None
        factors = (
            (factor, factors_before.get(p, first)) for p, factor in _factors(requested).items()
        )
        for factor, factor_before in dict.fromkeys(factors):
            self._check_factor(topic, factor, factor_before)
        self._check_retention(topic, requested, before)

    def _check_factor(self, topic: str, factor: int, before: int | None) -> None:
        """Check the replicas of one partition: a reassignment may change a single partition."""
        minimum = self._limits.get("replication.factor.min", 0)
        if factor < minimum and (before is None or factor < before):
            raise PolicyViolationException(
                f"Topic '{topic}' would have {factor} replicas; at least {minimum} are required."
            )
        if before is None or factor > before:
            self._check_maximum(
                "replication.factor.max", factor, f"Topic '{topic}' would have {{}} replicas"
            )

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

    def _check_cluster(
        self, request: CreateTopicRequest | AlterTopicRequest, cluster: ClusterState
    ) -> None:
        if "cluster.partitions.max" not in self._limits:
            return
        counts = {}
        for name in cluster.topics(False, False):
            state = cluster.topic_state(name)
            counts[name] = 0 if state is None else state.num_partitions
        for change in (*_accepted(request, CreateTopicRequest, AlterTopicRequest), request):
            counts[change.topic] = change.requested_state.num_partitions
        self._check_maximum(
            "cluster.partitions.max", sum(counts.values()), "The cluster would have {} partitions"
        )

    def _check_maximum(self, limit: str, value: int, text: str) -> None:
        maximum = self._limits.get(limit)
        if maximum is not None and value > maximum:
            raise PolicyViolationException(f"{text.format(value)}; the limit is {maximum}.")


def _accepted(
    request: CreateTopicRequest | AlterTopicRequest,
    *kinds: type[CreateTopicRequest] | type[AlterTopicRequest],
) -> list[CreateTopicRequest | AlterTopicRequest]:
    """Return the accepted changes of these kinds to topics that are not internal."""
    return [
        accepted
        for accepted in request.accepted_before
        if isinstance(accepted, kinds) and not accepted.requested_state.internal
    ]


def _factors(state: TopicState) -> dict[int, int]:
    """Return the number of replicas of each partition."""
    if not state.replicas_assignments:
        return {0: state.replication_factor}
    return {number: len(replicas) for number, replicas in state.replicas_assignments.items()}


def _retention_ms(state: TopicState) -> float | None:
    """Return the topic's own retention.ms; None if it has none."""
    text = state.configs.get("retention.ms")
    if text is None:
        return None
    return _FOREVER if int(text) < 0 else int(text)
