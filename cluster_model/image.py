"""The metadata image: the sum of records. Immutable, so a decision cannot change it.

The controller decides on an image and replays what was committed into the next one. Maps are
hash array mapped tries (`immutables.Map`), because a cluster of 100,000 partitions cannot be
copied for every small write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from immutables import Map

from cluster_model.records import (
    NO_STATE,
    AssignmentRecord,
    ConfigRecord,
    ConfigResource,
    DeletionMarkerRecord,
    DeletionMarkerRemovalRecord,
    PartitionRecord,
    PartitionState,
    Record,
    Replicas,
    TopicIdRecord,
    TopicRecord,
    TopicRemovalRecord,
)
from cluster_model.topic_names import collision_key


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One advertised listener of a broker."""

    listener_name: str
    security_protocol: str  # PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """A live broker: the content of /brokers/ids/<id>. `epoch` is the czxid of that znode."""

    broker_id: int
    epoch: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    incarnation: str = ""  # From /bridgehead/nodes/<id>; empty for a broker that is not ours.


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic with the replicas and the state of each partition, by partition number."""

    name: str
    topic_id: bytes
    assignment: tuple[Replicas, ...]
    states: tuple[PartitionState, ...]
    adding: Mapping[int, Replicas] = field(default_factory=dict)
    removing: Mapping[int, Replicas] = field(default_factory=dict)
    # Kafka may leave `partitions` or `partitions/<p>` behind without a state znode below.
    has_partitions_znode: bool = False
    bare_partition_znodes: frozenset[int] = frozenset()


def index_collisions(names: Iterable[str]) -> Map[str, frozenset[str]]:
    """Return `MetadataImage.colliding` for a set of topics."""
    index: dict[str, frozenset[str]] = {}
    for name in names:
        key = collision_key(name)
        index[key] = index.get(key, frozenset()) | {name}
    return Map(index)


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """The cluster as of one zxid."""

    zxid: int = 0
    controller_epoch: int = 0
    brokers: Map[int, BrokerRegistration] = field(default_factory=Map)
    topics: Map[str, Topic] = field(default_factory=Map)
    topic_names: Map[bytes, str] = field(default_factory=Map)  # by topic id
    # Topics whose names are equal in metrics, where `.` and `_` are one (kafka-semantics 7.2).
    colliding: Map[str, frozenset[str]] = field(default_factory=Map)
    configs: Map[ConfigResource, Mapping[str, str]] = field(default_factory=Map)
    deletions: frozenset[str] = frozenset()  # topics marked for deletion

    def config(self, entity_type: str, entity_name: str) -> Mapping[str, str]:
        """Return the stored overrides of one config entity; empty when there are none."""
        return self.configs.get(ConfigResource(entity_type, entity_name), {})

    def replay(self, records: Iterable[Record]) -> MetadataImage:
        """Return the image after `records`, applied in order."""
        topics = self.topics.mutate()
        names = self.topic_names.mutate()
        colliding = self.colliding.mutate()
        configs = self.configs.mutate()
        deletions = set(self.deletions)
        # Partition states arrive in runs of one topic: rebuild each topic's tuple once.
        states: dict[str, list[PartitionState]] = {}

        def flush(name: str) -> None:
            changed = states.pop(name, None)
            if changed is not None:
                topic = topics[name]
                # Built by hand: dataclasses.replace costs more than all the rest of this.
                topics[name] = Topic(
                    name,
                    topic.topic_id,
                    topic.assignment,
                    tuple(changed),
                    topic.adding,
                    topic.removing,
                    topic.has_partitions_znode
                    or any(state.partition_epoch >= 0 for state in changed),
                    topic.bare_partition_znodes,
                )

        for record in records:
            match record:
                case PartitionRecord(name, partition, state):
                    if name not in states:
                        states[name] = list(topics[name].states)
                    states[name][partition] = state
                case TopicRecord(name, topic_id, assignment, overrides):
                    blank = (NO_STATE,) * len(assignment)
                    topics[name] = Topic(name, topic_id, assignment, blank)
                    names[topic_id] = name
                    key = collision_key(name)
                    colliding[key] = colliding.get(key, frozenset()) | {name}
                    configs[ConfigResource("topics", name)] = overrides
                case AssignmentRecord(name, assignment, adding, removing):
                    flush(name)
                    topic = topics[name]
                    grown = (NO_STATE,) * (len(assignment) - len(topic.states))
                    topics[name] = replace(
                        topic,
                        assignment=assignment,
                        states=topic.states + grown,
                        adding=adding,
                        removing=removing,
                    )
                case TopicIdRecord(name, topic_id):
                    flush(name)
                    topics[name] = replace(topics[name], topic_id=topic_id)
                    names[topic_id] = name
                case ConfigRecord(resource, overrides, _):
                    if overrides or resource.entity_type in ("topics", "brokers"):
                        configs[resource] = overrides
                    else:
                        configs.pop(resource, None)
                case DeletionMarkerRecord(name):
                    deletions.add(name)
                case DeletionMarkerRemovalRecord(name):
                    deletions.discard(name)
                case TopicRemovalRecord(name):
                    states.pop(name, None)
                    gone = topics.pop(name)
                    names.pop(gone.topic_id, None)
                    key = collision_key(name)
                    left = colliding.pop(key, frozenset()) - {name}
                    if left:
                        colliding[key] = left
                    configs.pop(ConfigResource("topics", name), None)
                    deletions.discard(name)
                case _:
                    assert_never(record)
        for name in list(states):
            flush(name)
        return replace(
            self,
            topics=topics.finish(),
            topic_names=names.finish(),
            colliding=colliding.finish(),
            configs=configs.finish(),
            deletions=frozenset(deletions),
        )
