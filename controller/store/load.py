"""Loads the state of a new controller from ZooKeeper.

MultiRead reads 100,000 partition states in a third of a second; single reads take 20 seconds.
Parsing yields to the event loop, so that heartbeats continue.

The broker of this node knows most partition states from UpdateMetadata. If it has applied the
last commit that any earlier controller made, its states are used instead of those in ZooKeeper. A
state may still differ from ZooKeeper's, if another program has written it. `first_difference`
detects this.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, cast

from immutables import Map

from cluster_model.client_quotas import damaged_quotas
from cluster_model.image import BrokerRegistration, MetadataImage, Topic, index_collisions
from cluster_model.mutation_rates import mutation_rate
from cluster_model.records import NO_STATE, ConfigResource, PartitionState, ProducerIds
from cluster_model.topic_names import is_legal
from cluster_model.znodes.acls import AclChangeZnode
from cluster_model.znodes.layout import (
    CONFIG_TYPES,
    BrokerIdZnode,
    ConfigChangeZnode,
    ConfigZnode,
    DeletionMarkerZnode,
    FloorZnode,
    NodeZnode,
    OutcomeZnode,
    PartitionZnode,
    ProducerIdBlockZnode,
    TopicContent,
    TopicZnode,
    notification_number,
)
from cluster_model.znodes.tokens import TokenChangeZnode
from cluster_model.znodes.values import ZnodeContentError, number_of, shortened
from controller.store.outcomes import OutcomeIndex, decode_outcomes
from zookeeper_client.acl_reading import read_acls
from zookeeper_client.config_reading import read_configs
from zookeeper_client.token_reading import read_tokens
from zookeeper_client.wire import ReadChildren, ReadData, ReadMany, ZnodeData

# Parsing yields after this many topics: some 10 ms if each has 100 partitions.
_TOPICS_PER_STEP: Final = 50
# Without these paths ZooKeeper has lost metadata. A controller without topics would make brokers
# delete their logs.
ESSENTIAL_PATHS: Final = ("/brokers/ids", "/brokers/topics", OutcomeZnode.parent)
_FLOORS: Final = "/bridgehead/floors"
# The paths of change notifications, without their numbers.
NOTIFICATION_PREFIXES: Final = (
    ConfigChangeZnode.prefix,
    TokenChangeZnode.prefix,
    *(f"{parent}/{AclChangeZnode.word}" for parent in AclChangeZnode.parents),
)


class KnownStates(Protocol):
    """The partition states that a broker knows from the earlier controllers."""

    @property
    def zxid(self) -> int:
        """The states include all commits up to this zxid."""
        ...

    @property
    def controller_is_kraft(self) -> bool:
        """The states are a KRaft controller's, which makes no commits."""
        ...

    def partition_states(self, topic_id: bytes, /) -> Mapping[int, PartitionState]:
        """Return the known states of a topic's partitions, by number."""
        ...


@dataclass(frozen=True, slots=True)
class Loaded:
    """The loaded state. Invalid znodes are skipped; `invalid` has their errors.

    `states_are_read`: all partition states are from ZooKeeper, none from KnownStates.
    """

    image: MetadataImage
    outcomes: OutcomeIndex
    orphan_markers: tuple[str, ...]  # deletion markers without a topic
    without_id: tuple[str, ...]  # topics written without a topic id
    has_feature_znode: bool
    invalid: tuple[str, ...]
    states_are_read: bool


async def load(
    read: ReadMany, controller_epoch: int, known_states: KnownStates | None = None
) -> Loaded:
    """Read everything, except for the partition states in `known`.

    A new controller calls it after its election, when no other controller writes.

    Raises:
        ConnectionLostError: the connection broke.
        ZnodeContentError: an essential path is missing.
    """
    invalid: list[str] = []
    await _require_essential(read)
    folders = ("/brokers/topics", DeletionMarkerZnode.parent, OutcomeZnode.parent, _FLOORS)
    topic_names, markers, commits, floors = await _children(read, folders)
    feature, block = await _data(read, ["/feature", ProducerIdBlockZnode.path])
    brokers = await load_brokers(read, invalid)
    stored_configs = await read_configs(read, CONFIG_TYPES)
    invalid += [
        f"{ConfigZnode.path(resource)}: {key} is not a number: DescribeClientQuotas fails"
        for resource, configs in stored_configs.configs.items()
        for key in damaged_quotas(resource, configs)
    ]
    topics, without_id = await load_topics(read, topic_names, invalid, known_states)
    invalid += await _foreign_notifications(read)
    stored_acls = await read_acls(read)
    stored_tokens = await read_tokens(read)
    outcomes = await _load_outcomes(read, commits, floors, invalid)
    image = MetadataImage(
        controller_epoch=controller_epoch,
        brokers=brokers,
        topics=topics,
        topic_names=Map({topic.topic_id: name for name, topic in topics.items()}),
        colliding=index_collisions(topics),
        configs=Map(stored_configs.configs),
        config_versions=Map(stored_configs.versions),
        user_clients=Map(stored_configs.clients),
        deletions=frozenset(markers) & frozenset(topics),
        unreadable=frozenset(filter(is_legal, topic_names)) - frozenset(topics),
        acls=stored_acls.acls,
        acl_versions=stored_acls.versions,
        mutation_rates=Map(_mutation_rates(stored_configs.configs)),
        tokens=Map(stored_tokens.tokens),
        producer_ids=_producer_ids(block, invalid),
    )
    return Loaded(
        image,
        outcomes,
        # The marker of a skipped topic is not an orphan.
        tuple(sorted(set(markers) - set(topic_names))),
        without_id,
        feature is not None,
        (*invalid, *stored_configs.invalid, *stored_acls.invalid, *stored_tokens.invalid),
        states_are_read=known_states is None,
    )


async def _require_essential(read: ReadMany) -> None:
    essential = await read([ReadChildren(path) for path in ESSENTIAL_PATHS])
    check_essential(dict(zip(ESSENTIAL_PATHS, essential, strict=True)))


def check_essential(znodes: Mapping[str, object | None]) -> None:
    """Raise ZnodeContentError if one of these is None, that is, missing."""
    for path, znode in znodes.items():
        if znode is None:
            raise ZnodeContentError(
                f"{path} is missing, so ZooKeeper has lost metadata: restore its data"
            )


async def _children(read: ReadMany, paths: Sequence[str]) -> list[list[str]]:
    results = await read([ReadChildren(path) for path in paths])
    return [sorted(cast(list[str], result or [])) for result in results]


async def _data(read: ReadMany, paths: Sequence[str]) -> list[ZnodeData | None]:
    return cast(list[ZnodeData | None], await read([ReadData(path) for path in paths]))


async def _foreign_notifications(read: ReadMany) -> list[str]:
    """Return an error for each znode among the change notifications that is none."""
    folders = [prefix.rpartition("/") for prefix in NOTIFICATION_PREFIXES]
    names_of_folders = await _children(read, [parent for parent, _, _ in folders])
    return [
        f"{parent}/{shortened(name)}: not a notification, so no broker reads it"
        for (parent, _, word), names in zip(folders, names_of_folders, strict=True)
        for name in names
        if notification_number(name, word) is None
    ]


async def load_brokers(read: ReadMany, invalid: list[str]) -> Map[int, BrokerRegistration]:
    """Return the live brokers; their incarnations come from /bridgehead/nodes."""
    names, nodes = await _children(read, ("/brokers/ids", "/bridgehead/nodes"))
    numbers = {name: number_of(name) for name in names}
    invalid += [
        f"/brokers/ids/{shortened(name)}: not a broker id"
        for name in names
        if numbers[name] is None
    ]
    ids = [number for number in numbers.values() if number is not None]
    data = await _data(read, [BrokerIdZnode.path(broker_id) for broker_id in ids])
    addresses = await _data(read, [f"/bridgehead/nodes/{name}" for name in nodes])
    incarnations: dict[str, str] = {}
    for name, address in zip(nodes, addresses, strict=True):
        if address is not None:
            try:
                path = f"/bridgehead/nodes/{name}"
                incarnations[name] = NodeZnode.decode(path, address.data).incarnation
            except ZnodeContentError as wrong:
                invalid.append(str(wrong))
    brokers = {}
    for broker_id, znode in zip(ids, data, strict=True):
        if znode is None:
            continue  # Deleted between the two reads.
        try:
            brokers[broker_id] = BrokerIdZnode.decode(
                broker_id, znode.stat.czxid, znode.data, incarnations.get(str(broker_id), "")
            )
        except ZnodeContentError as wrong:
            invalid.append(str(wrong))
    return Map(brokers)


def _producer_ids(znode: ZnodeData | None, invalid: list[str]) -> ProducerIds | None:
    if znode is None:
        return None
    try:
        return ProducerIdBlockZnode.decode(znode.data, znode.version)
    except ZnodeContentError as wrong:
        invalid.append(str(wrong))
        return None


def _mutation_rates(
    configs: Mapping[ConfigResource, Mapping[str, str]],
) -> Iterator[tuple[ConfigResource, float]]:
    for resource, values in configs.items():
        rate = mutation_rate(resource, values)
        if rate is not None:
            yield resource, rate


async def load_topics(
    read: ReadMany,
    names: Sequence[str],
    invalid: list[str],
    known_states: KnownStates | None = None,
) -> tuple[Map[str, Topic], tuple[str, ...]]:
    """Return the topics of `names` that exist, and the names of those without a topic id."""
    contents: dict[str, TopicContent] = {}
    znodes = await _data(read, [TopicZnode.path(name) for name in names])
    for name, znode in zip(names, znodes, strict=True):
        if znode is None:
            continue
        try:
            contents[name] = TopicZnode.decode(name, znode.data)
        except ZnodeContentError as wrong:
            invalid.append(str(wrong))
    not_read: dict[str, Mapping[int, PartitionState]] = {}
    if known_states is not None:
        for count, (name, content) in enumerate(contents.items()):
            if count % _TOPICS_PER_STEP == 0:
                await asyncio.sleep(0)
            if content.topic_id is not None:
                not_read[name] = known_states.partition_states(content.topic_id)
    states = iter(
        await _data(
            read,
            [
                PartitionZnode.path(name, partition)
                for name, content in contents.items()
                for partition in range(len(content.assignment))
                if partition not in not_read.get(name, ())
            ],
        )
    )
    topics: dict[str, Topic] = {}
    for count, (name, content) in enumerate(contents.items()):
        if count % _TOPICS_PER_STEP == 0:
            await asyncio.sleep(0)
        topics[name] = _topic(name, content, not_read.get(name, {}), states, invalid)
    for name, topic in topics.items():
        if any(state.partition_epoch < 0 for state in topic.states) or not topic.states:
            topics[name] = await _with_leftovers(read, topic)
    without_id = tuple(name for name, content in contents.items() if content.topic_id is None)
    return Map(topics), without_id


def _topic(
    name: str,
    content: TopicContent,
    known_states: Mapping[int, PartitionState],
    read: Iterator[ZnodeData | None],
    invalid: list[str],
) -> Topic:
    states: list[PartitionState] = []
    for partition in range(len(content.assignment)):
        state = known_states.get(partition)
        if state is None:
            state = _state(name, partition, next(read), invalid)
        states.append(state)
    return Topic(
        name,
        content.topic_id or b"",
        content.assignment,
        tuple(states),
        content.adding,
        content.removing,
        has_partitions_znode=any(state.partition_epoch >= 0 for state in states),
    )


def _state(
    name: str, partition: int, znode: ZnodeData | None, invalid: list[str]
) -> PartitionState:
    if znode is None:
        return NO_STATE
    version = znode.version
    try:
        return PartitionZnode.decode(name, partition, znode.data, version)
    except ZnodeContentError as wrong:
        invalid.append(str(wrong))
        # No leader. The znode's version is kept, so that the state can be overwritten.
        return NO_STATE._replace(partition_epoch=version)


async def first_difference(read: ReadMany, topics: Sequence[Topic]) -> str | None:
    """Return the path of the first partition state that differs between ZooKeeper and `topics`.

    Call it while this controller does not write.
    """
    states = iter(
        await _data(
            read,
            [
                PartitionZnode.path(topic.name, partition)
                for topic in topics
                for partition in range(len(topic.states))
            ],
        )
    )
    for topic in topics:
        for partition, state in enumerate(topic.states):
            if _state(topic.name, partition, next(states), []) != state:
                return PartitionZnode.path(topic.name, partition)
    return None


async def _with_leftovers(read: ReadMany, topic: Topic) -> Topic:
    """Record the partition znodes that have no state znode. A failed controller left them."""
    parent = PartitionZnode.parent(topic.name)
    (children,) = await read([ReadChildren(parent)])
    if children is None:
        return topic
    numbers = map(number_of, cast(list[str], children))
    bare = frozenset(
        p
        for p in numbers
        if p is not None and (p >= len(topic.states) or topic.states[p].partition_epoch < 0)
    )
    return replace(topic, has_partitions_znode=True, bare_partition_znodes=bare)


async def _load_outcomes(
    read: ReadMany, commits: Sequence[str], floors: Sequence[str], invalid: list[str]
) -> OutcomeIndex:
    index = OutcomeIndex()
    numbers = {name: OutcomeZnode.commit_of(name) for name in commits}
    invalid += [
        f"/bridgehead/outcomes/{shortened(name)}: not a commit number"
        for name, number in numbers.items()
        if number is None
    ]
    paths = {OutcomeZnode.path(n): n for n in numbers.values() if n is not None}
    for (path, number), znode in zip(paths.items(), await _data(read, list(paths)), strict=True):
        if znode is None:
            continue
        try:
            index.add(number, decode_outcomes(path, znode.data))
        except ZnodeContentError as wrong:
            invalid.append(str(wrong))
    stored = await _data(read, [f"/bridgehead/floors/{name}" for name in floors])
    for name, znode in zip(floors, stored, strict=True):
        try:
            incarnation, floor = FloorZnode.decode(name, znode.data if znode is not None else None)
        except ZnodeContentError as wrong:
            invalid.append(str(wrong))
            continue
        index.floors[incarnation] = index.stored_floors[incarnation] = floor
    return index
