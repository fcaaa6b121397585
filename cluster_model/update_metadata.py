"""Encodes images as Kafka's UpdateMetadata requests, version 8, for the brokers.

Every request has all live brokers and some topics. A topic without partitions is unreadable: its
znode is invalid, so that nothing is known about it, but it was not deleted. In a deleted topic,
every partition has the leader -2 (docs/kafka/election-and-epoch.md#what-brokers-receive,
docs/kafka/election-and-epoch.md#checks-at-the-receiving-broker).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Final

from bridgehead.kafka_wire.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from cluster_model.image import PROTOCOL_CODES, MetadataImage, Topic
from cluster_model.records import Replicas

LEADER_DURING_DELETE: Final = -2
# A broker makes replicas of so many new partitions in about 50 ms, which does not delay heartbeats.
# Encoding or decoding the message takes 5 ms.
PARTITIONS_PER_MESSAGE_MAX: Final = 1_000


def full_parts(image: MetadataImage, controller_id: int) -> Iterator[UpdateMetadataRequest]:
    """Yield requests that together have the whole image; at least one, even without topics."""
    unsent = all_names(image)
    yield take_part(image, unsent, controller_id)
    while unsent:
        yield take_part(image, unsent, controller_id)


def all_names(image: MetadataImage) -> dict[str, None]:
    """Return the names of all topics, for `take_part`, which begins with the last one."""
    return dict.fromkeys(sorted({*image.topics, *image.unreadable}))


def take_part(
    image: MetadataImage, unsent: dict[str, None], controller_id: int
) -> UpdateMetadataRequest:
    """Take topics from `unsent`; return one request with their states in the image."""
    states: list[UpdateMetadataTopicState] = []
    size = 0
    while unsent and size < PARTITIONS_PER_MESSAGE_MAX:
        name, _ = unsent.popitem()
        if name not in image.topics:
            states.append(UpdateMetadataTopicState(topic_name=name))
            size += 1
            continue
        state = _topic(image.topics[name], image)
        if state.partition_states:
            states.append(state)
            size += len(state.partition_states)
    return _request(image, controller_id, states)


def changed_parts(
    before: MetadataImage, after: MetadataImage, names: Iterable[str], controller_id: int
) -> Iterator[UpdateMetadataRequest]:
    """Yield requests that together have the topics `names`; at least one, even without topics."""

    def states() -> Iterator[UpdateMetadataTopicState]:
        for name in sorted(names):
            topic = after.topics.get(name)
            if topic is None:
                gone = before.topics.get(name)
                if gone is not None and name not in after.unreadable:
                    yield _deleted(gone, after)
            else:
                old = before.topics.get(name)
                if old is not None and old.topic_id != topic.topic_id and old.topic_id:
                    yield _deleted(old, after)
                yield _topic(topic, after)

    batch: list[UpdateMetadataTopicState] = []
    size = 0
    has_sent = False
    for state in states():
        if not state.partition_states:
            continue
        batch.append(state)
        size += len(state.partition_states)
        if size >= PARTITIONS_PER_MESSAGE_MAX:
            yield _request(after, controller_id, batch)
            batch, size, has_sent = [], 0, True
    if batch or not has_sent:
        yield _request(after, controller_id, batch)


def _request(
    image: MetadataImage, controller_id: int, states: list[UpdateMetadataTopicState]
) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(
        controller_id=controller_id,
        controller_epoch=image.controller_epoch,
        topic_states=states,
        live_brokers=_brokers(image),
    )


def _brokers(image: MetadataImage) -> list[UpdateMetadataBroker]:
    return [
        UpdateMetadataBroker(
            id=broker.broker_id,
            endpoints=[
                UpdateMetadataEndpoint(
                    port=endpoint.port,
                    host=endpoint.host,
                    listener=endpoint.listener_name,
                    security_protocol=PROTOCOL_CODES[endpoint.security_protocol],
                )
                for endpoint in broker.endpoints
            ],
            rack=broker.rack,
        )
        for _, broker in sorted(image.brokers.items())
    ]


class _Offline(dict[Replicas, list[int]]):
    """The replicas whose brokers are not live. Many partitions have the same replicas."""

    def __init__(self, live: Container[int]) -> None:
        self._live = live

    def __missing__(self, replicas: Replicas) -> list[int]:
        offline = self[replicas] = [replica for replica in replicas if replica not in self._live]
        return offline


def _topic(topic: Topic, image: MetadataImage) -> UpdateMetadataTopicState:
    """Return a topic. Partitions without a state znode have no leader, and are omitted."""
    offline = _Offline(image.brokers)
    return UpdateMetadataTopicState(
        topic_name=topic.name,
        topic_id=topic.topic_id,
        partition_states=[
            UpdateMetadataPartitionState(
                partition_index=partition,
                controller_epoch=state.controller_epoch,
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                isr=list(state.isr),
                zk_version=state.partition_epoch,
                replicas=list(replicas),
                offline_replicas=offline[replicas],
            )
            for partition, (state, replicas) in enumerate(
                zip(topic.states, topic.assignment, strict=True)
            )
            if state.partition_epoch >= 0
        ],
    )


def _deleted(topic: Topic, image: MetadataImage) -> UpdateMetadataTopicState:
    states = _topic(topic, image)
    for partition in states.partition_states:
        partition.leader = LEADER_DURING_DELETE
    return states
