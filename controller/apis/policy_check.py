"""Policy checks: the arguments that policies get for a decision. Pure.

For each element that a policy may reject, an API provides a function that builds the check. The
function is called only if a policy is configured, because the check of a topic with many partitions
takes long to build.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

from bridgehead.policy import (
    AlterTopicRequest,
    CreateTopicRequest,
    DeleteTopicRequest,
    RequestedTopicState,
    TopicState,
)
from cluster_model.image import MetadataImage, Topic
from cluster_model.policy_state import policy_principal, targets, topic_state
from cluster_model.principal import KafkaPrincipal as Principal
from cluster_model.records import Replicas
from cluster_model.topic_names import INTERNAL_TOPICS


@dataclass(frozen=True, slots=True)
class AlterTopicConfigs(AlterTopicRequest):
    """An alteration of configs; `requested` are the entries of the request (KIP-133)."""

    requested: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class AlterBrokerConfigs:
    """Configs of a broker. Only KIP-133's policy sees them. `name`: "" for the cluster default."""

    name: str
    requested: Mapping[str, str | None]


PolicyCheck = CreateTopicRequest | AlterTopicRequest | DeleteTopicRequest | AlterBrokerConfigs
MakePolicyCheck = Callable[[], PolicyCheck]


class PolicyCheckKey(NamedTuple):
    """Identifies a check within its request."""

    kind: str
    name: str


def key_of(check: PolicyCheck) -> PolicyCheckKey:
    """Return a check's key."""
    name = check.name if isinstance(check, AlterBrokerConfigs) else check.topic
    return PolicyCheckKey(type(check).__name__, name)


def creation(
    principal: Principal,
    name: str,
    assignment: Sequence[Replicas],
    configs: Mapping[str, str],
    generated: bool,
) -> CreateTopicRequest:
    """Return the check of a new topic; `configs` are those of the request."""
    return CreateTopicRequest(
        name,
        policy_principal(principal),
        _requested(name, assignment, configs, generated, deleted=False),
    )


def alteration(
    principal: Principal,
    name: str,
    image: MetadataImage,
    assignment: Sequence[Replicas],
    generated: bool,
) -> AlterTopicRequest:
    """Return the check of added partitions or changed replicas."""
    configs = image.config("topics", name)
    deleted = name in image.deletions
    return AlterTopicRequest(
        name, policy_principal(principal), _requested(name, assignment, configs, generated, deleted)
    )


def topic_configs(
    principal: Principal,
    name: str,
    image: MetadataImage,
    configs: Mapping[str, str],
    requested: Mapping[str, str | None],
) -> AlterTopicConfigs:
    """Return the check of altered configs; `configs` has all overrides after the change."""
    assignment = targets(image.topics[name])
    state = _requested(name, assignment, configs, True, name in image.deletions)
    return AlterTopicConfigs(name, policy_principal(principal), state, requested)


def deletion(principal: Principal, name: str) -> DeleteTopicRequest:
    """Return the check of a deletion."""
    return DeleteTopicRequest(name, policy_principal(principal))


def _requested(
    name: str,
    assignment: Sequence[Replicas],
    configs: Mapping[str, str],
    generated: bool,
    deleted: bool,
) -> RequestedTopicState:
    return RequestedTopicState(
        num_partitions=len(assignment),
        replication_factor=len(assignment[0]) if assignment else 0,
        replicas_assignments=dict(enumerate(assignment)),
        configs=dict(configs),
        marked_for_deletion=deleted,
        internal=name in INTERNAL_TOPICS,
        generated_replica_assignments=generated,
    )


class _TopicNames(AbstractSet[str]):
    """An image's topic names, except `left_out`. Not a copy: many policies only count them."""

    def __init__(self, topics: Mapping[str, Topic], left_out: frozenset[str]) -> None:
        self._topics = topics
        self._left_out = left_out

    def __contains__(self, name: object) -> bool:
        return name in self._topics and name not in self._left_out

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._topics if name not in self._left_out)

    def __len__(self) -> int:
        return len(self._topics) - sum(name in self._topics for name in self._left_out)


class ImageClusterState:
    """A controller's image as policies see it. See bridgehead.policy.ClusterState."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image

    def topic_state(self, topic_name: str) -> TopicState | None:
        topic = self._image.topics.get(topic_name)
        if topic is None:
            return None
        configs = self._image.config("topics", topic_name)
        return topic_state(topic, configs, marked=topic_name in self._image.deletions)

    def topics(self, include_internal: bool, include_marked_for_deletion: bool) -> AbstractSet[str]:
        left_out = frozenset[str]() if include_internal else INTERNAL_TOPICS
        if not include_marked_for_deletion:
            left_out |= self._image.deletions
        return _TopicNames(self._image.topics, left_out)

    def cluster_size(self) -> int:
        return len(self._image.brokers)
