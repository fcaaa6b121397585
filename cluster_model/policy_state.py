"""Principals and topics as policies see them (KIP-201)."""

from __future__ import annotations

from collections.abc import Mapping

from bridgehead.policy import KafkaPrincipal, TopicState
from cluster_model.image import Topic
from cluster_model.partitions.reassignments import PartitionAssignment
from cluster_model.principal import ANONYMOUS
from cluster_model.principal import KafkaPrincipal as Principal
from cluster_model.records import Replicas
from cluster_model.topic_names import INTERNAL_TOPICS


def policy_principal(principal: Principal) -> KafkaPrincipal | None:
    """Return the principal of a request; None for an unauthenticated client."""
    if principal == ANONYMOUS:
        return None
    return KafkaPrincipal(principal.type, principal.name)


def targets(topic: Topic) -> list[Replicas]:
    """Return a topic's replicas; for a partition under reassignment, the target replicas."""
    if not topic.adding and not topic.removing:
        return list(topic.assignment)
    return [PartitionAssignment.of(topic, p).target for p in range(len(topic.assignment))]


def topic_state(topic: Topic, configs: Mapping[str, str], *, marked: bool) -> TopicState:
    """Return the state of a topic. `marked` tells whether it is marked for deletion."""
    assignment = targets(topic)
    return TopicState(
        num_partitions=len(assignment),
        replication_factor=len(assignment[0]) if assignment else 0,
        replicas_assignments=dict(enumerate(assignment)),
        configs=dict(configs),
        marked_for_deletion=marked,
        internal=topic.name in INTERNAL_TOPICS,
    )
