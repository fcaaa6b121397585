"""Checks of topics, partitions and what is under way with them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Final

from cluster_model.topic_names import CLUSTER_METADATA_TOPIC, is_legal
from cluster_model.znodes.values import INT32_MAX, shortened
from rehearse.cluster import Cluster, State, Topic, read_state
from rehearse.findings import Evidence, Outcome, Place, Rule

_SHOWN_MAX: Final = 5
_SHOWN_CHARS_MAX: Final = 80


def some(items: list[int] | list[str]) -> str:
    """Return the first items as text, and how many there are besides."""
    shown = ", ".join(shortened(str(item), _SHOWN_CHARS_MAX) for item in items[:_SHOWN_MAX])
    return shown if len(items) <= _SHOWN_MAX else f"{shown} and {len(items) - _SHOWN_MAX:,} more"


def _unreadable_topics(cluster: Cluster) -> Iterator[Place]:
    for topic in cluster.topics:
        if topic.problem is not None and cluster.tree.data(topic.path) is not None:
            yield Place(topic.path, topic.problem)


def _topics_without_data(cluster: Cluster) -> Iterator[Place]:
    for topic in cluster.topics:
        if topic.problem is not None and cluster.tree.data(topic.path) is None:
            yield Place(topic.path, "only its partitions' states are there")


def _topics_without_id(cluster: Cluster) -> Iterator[Place]:
    for topic in cluster.topics:
        if topic.problem is None and topic.topic_id is None:
            yield Place(topic.path)


def _shared_ids(cluster: Cluster) -> Iterator[Place]:
    names = defaultdict(list)
    for topic in cluster.topics:
        if topic.topic_id is not None:
            names[topic.topic_id].append(topic.name)
    for topic_id, sharing in names.items():
        if len(sharing) > 1:
            detail = f"{some(sharing)} have the id {topic_id}"
            yield from (Place(f"/brokers/topics/{name}", detail) for name in sharing)


def _absent_replicas(cluster: Cluster) -> Iterator[Place]:
    """One place for each broker, since one may be in all assignments."""
    if not cluster.registered:
        return
    topics: defaultdict[int, list[str]] = defaultdict(list)
    for topic in cluster.topics:
        for broker_id in {b for replicas in topic.partitions.values() for b in replicas}:
            if broker_id not in cluster.registered:
                topics[broker_id].append(topic.name)
    for broker_id, names in sorted(topics.items()):
        detail = f"broker {broker_id} has replicas of {some(names)}"
        yield Place(f"/brokers/topics/{names[0]}", detail)


def _in_partitions(
    cluster: Cluster, applies: Callable[[Topic, int, tuple[int, ...]], bool]
) -> Iterator[Place]:
    for topic in cluster.topics:
        partitions = [p for p, replicas in topic.partitions.items() if applies(topic, p, replicas)]
        if partitions:
            yield Place(topic.path, _partitions(partitions))


def _partitions(partitions: list[int]) -> str:
    word = "partition" if len(partitions) == 1 else "partitions"
    return f"{word} {some(sorted(partitions))}"


def _empty_assignments(cluster: Cluster) -> Iterator[Place]:
    def applies(topic: Topic, partition: int, replicas: tuple[int, ...]) -> bool:
        return not replicas and _is_without_state(cluster, topic, partition)

    return _in_partitions(cluster, applies)


def _is_without_state(cluster: Cluster, topic: Topic, partition: int) -> bool:
    """Return whether Kafka finds no state: there is none, or it is not JSON."""
    path = cluster.state_path(topic, partition)
    znode = cluster.tree.znodes.get(path)
    return znode is None or (znode.hidden is None and read_state(znode.data) is None)


def _missing_states(cluster: Cluster) -> Iterator[Place]:
    def applies(topic: Topic, partition: int, replicas: tuple[int, ...]) -> bool:
        return bool(replicas) and _is_without_state(cluster, topic, partition)

    return _in_partitions(cluster, applies)


def _odd_states(cluster: Cluster) -> Iterator[Place]:
    for topic in cluster.topics:
        for partition in topic.partitions:
            if isinstance(problem := cluster.state(topic, partition), str):
                yield Place(cluster.state_path(topic, partition), problem)


def _foreign_states(cluster: Cluster) -> Iterator[Place]:
    for topic in cluster.topics:
        if topic.problem is not None:
            continue
        stored = cluster.tree.children(f"{topic.path}/partitions")
        names = [name for name in stored if not _names_partition(name, topic)]
        if names:
            yield Place(
                f"{topic.path}/partitions/{names[0]}", f"the topic does not list {some(names)}"
            )


def _names_partition(name: str, topic: Topic) -> bool:
    return (
        name.isascii()
        and name.isdigit()
        and str(int(name[:11])) == name
        and int(name) in topic.partitions
    )


def _repeated_replicas(cluster: Cluster) -> Iterator[Place]:
    return _in_partitions(cluster, lambda _t, _p, replicas: len(set(replicas)) < len(replicas))


def _in_states(
    cluster: Cluster, applies: Callable[[tuple[int, ...], State], bool]
) -> Iterator[Place]:
    partitions: defaultdict[str, list[int]] = defaultdict(list)
    for topic, partition, replicas, state in cluster.states:
        if applies(replicas, state):
            partitions[topic.path].append(partition)
    for path, numbers in partitions.items():
        yield Place(path, _partitions(numbers))


def _odd_leaders(cluster: Cluster) -> Iterator[Place]:
    def applies(replicas: tuple[int, ...], state: State) -> bool:
        return (
            state.leader not in state.isr
            or not set(state.isr) <= set(replicas)
            or bool(cluster.registered and state.leader not in cluster.registered)
        )

    return _in_states(cluster, applies)


def _high_epochs(cluster: Cluster) -> Iterator[Place]:
    return _in_states(cluster, lambda _r, state: state.leader_epoch > INT32_MAX - 1_000_000)


def _queued_deletions(cluster: Cluster) -> Iterator[Place]:
    for name in sorted(cluster.queued_deletions):
        yield Place(f"/admin/delete_topics/{name}")


def _reassignments(cluster: Cluster) -> Iterator[Place]:
    def applies(topic: Topic, partition: int, _replicas: tuple[int, ...]) -> bool:
        return bool(topic.adding.get(partition) or topic.removing.get(partition))

    return _in_partitions(cluster, applies)


def _plans(path: str) -> Callable[[Cluster], Iterator[Place]]:
    def find(cluster: Cluster) -> Iterator[Place]:
        if path in cluster.tree:
            yield Place(path)

    return find


def _odd_names(cluster: Cluster) -> Iterator[Place]:
    for topic in cluster.topics:
        if not is_legal(topic.name) or topic.name == CLUSTER_METADATA_TOPIC:
            yield Place(topic.path)


def _colliding_names(cluster: Cluster) -> Iterator[Place]:
    names = defaultdict(list)
    for topic in cluster.topics:
        names[topic.name.replace(".", "_")].append(topic.name)
    for colliding in names.values():
        if len(colliding) > 1:
            yield Place(f"/brokers/topics/{colliding[0]}", f"{some(colliding)} collide")


RULES: Final = (
    Rule(
        id="topic-without-data",
        what="A topic has no content.",
        outcome=Outcome.WAITS,
        effect="The controller reads all topics before it takes over, and fails at this one. It "
        "does not name the topic.",
        log='argument "content" is null',
        remedy="Delete {where} with all below it, or write the topic's content.",
        find=_topics_without_data,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="topic-unreadable",
        what="The content of a topic cannot be read.",
        outcome=Outcome.WAITS,
        effect="The controller reads all topics before it takes over, and fails at this one.",
        log="Unhandled error in WaitForZkBrokersEvent",
        remedy="Repair {where}: version, partitions, topic_id.",
        find=_unreadable_topics,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="topic-without-id",
        what="A topic has no id.",
        outcome=Outcome.WAITS,
        effect="The controller fails at this topic before it takes over, again and again.",
        log="Error in topic consumer. Topic was",
        remedy="Delete /controller while ZooKeeper brokers run: the next elected one adds the id.",
        find=_topics_without_id,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="topic-ids-shared",
        what="Several topics have the same id.",
        outcome=Outcome.LOST,
        effect="Only one of the topics is in KRaft. Nothing is logged.",
        log="",
        remedy="Write into each topic's znode the id in partition.metadata of its log folders.",
        find=_shared_ids,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="replica-on-absent-broker",
        what="A broker that is not registered has replicas.",
        outcome=Outcome.WAITS,
        effect="The controller waits until this broker registers.",
        log="found in metadata to register with KRaft",
        remedy="Start the broker, or move its replicas with kafka-reassign-partitions.",
        find=_absent_replicas,
        issue="KAFKA-14448",
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="assignment-empty",
        what="A partition has no replicas and no state.",
        outcome=Outcome.DIES,
        effect="The controller process ends after it has taken /controller.",
        log="IndexOutOfBoundsException",
        remedy="Write the replicas into {where}, or delete the topic.",
        find=_empty_assignments,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="state-missing",
        what="A partition has no readable state.",
        outcome=Outcome.CHANGED,
        effect="The first replica becomes the leader and all replicas are in sync, also those that "
        "lack data. ZooKeeper is not repaired.",
        log="Could not find partition state in ZK for",
        remedy="Let the ZooKeeper controller elect a leader, or write the state.",
        find=_missing_states,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="state-unreadable",
        what="The state of a partition has an unexpected content.",
        outcome=Outcome.DIES,
        effect="The controller process ends after it has taken /controller.",
        log="Aborting the metadata migration from ZooKeeper to KRaft",
        remedy="Repair {where}: leader, leader_epoch, isr, controller_epoch.",
        find=_odd_states,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="state-of-no-partition",
        what="There are states of partitions that the topic does not list.",
        outcome=Outcome.LOST,
        effect="The states are not read, and stay in ZooKeeper. Nothing is logged.",
        log="",
        remedy="Delete {where}, or add the partition to the topic.",
        find=_foreign_states,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="replica-repeated",
        what="A broker is named twice in one assignment.",
        outcome=Outcome.KEPT,
        effect="The assignment is copied as it is.",
        log="has overlapping ISR=",
        remedy="Assign each broker once, with kafka-reassign-partitions.",
        find=_repeated_replicas,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="leader-odd",
        what="A leader is missing, absent or not in sync, or a broker in sync is no replica.",
        outcome=Outcome.KEPT,
        effect="The state is copied as it is. KRaft elects no other leader by itself.",
        log="",
        remedy="Start the broker, or elect a leader with kafka-leader-election.",
        find=_odd_leaders,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="leader-epoch-high",
        what="The epoch of a leader is near the largest number.",
        outcome=Outcome.KEPT,
        effect="The epoch is copied. Elections fail when it has no successor.",
        log="",
        remedy="Create the topic again, and copy its records.",
        find=_high_epochs,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="deletion-queued",
        what="A topic is queued for deletion.",
        outcome=Outcome.DELETED,
        effect="The topic is not migrated. It is deleted in ZooKeeper with its configs.",
        log="pending topic deletions. These will be not migrated to KRaft",
        remedy="Wait until the deletion ends, or delete {where} to keep the topic.",
        find=_queued_deletions,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="reassignment-running",
        what="A reassignment is under way.",
        outcome=Outcome.KEPT,
        effect="KRaft continues the reassignment.",
        log="",
        remedy="Wait until it ends, and verify it: kafka-reassign-partitions --list.",
        find=_reassignments,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="reassignment-plan",
        what="There is a reassignment plan of an old tool.",
        outcome=Outcome.LOST,
        effect="The plan is not read, and stays in ZooKeeper.",
        log="",
        remedy="Wait until the plan is done, or delete {where}.",
        find=_plans("/admin/reassign_partitions"),
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="election-plan",
        what="There is a request for an election of preferred leaders.",
        outcome=Outcome.LOST,
        effect="The request is not read, and stays in ZooKeeper.",
        log="",
        remedy="Wait until the election is done, or delete {where}.",
        find=_plans("/admin/preferred_replica_election"),
        evidence=Evidence.LIVE,
        warns_only=True,
    ),
    Rule(
        id="topic-name-odd",
        what="A topic has a name that no new topic may have.",
        outcome=Outcome.KEPT,
        effect="The topic is copied.",
        log="",
        remedy="Copy its records to a topic with a valid name.",
        find=_odd_names,
        evidence=Evidence.LIVE,
    ),
    Rule(
        id="topic-names-collide",
        what="Names of topics differ only in dots and underscores.",
        outcome=Outcome.KEPT,
        effect="The topics are copied. Their metrics have the same names.",
        log="",
        remedy="Nothing for the migration; give new topics other names.",
        find=_colliding_names,
        evidence=Evidence.LIVE,
    ),
)
