"""Full images are sent in parts, with changes in between. Only changes can be delayed."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from immutables import Map

from bridgehead.kafka_wire.primitives import WireError
from broker_proxy.metadata.cache import MetadataCache
from cluster_model import update_metadata
from cluster_model.image import BrokerRegistration, MetadataImage
from cluster_model.records import (
    AssignmentRecord,
    PartitionRecord,
    PartitionState,
    Record,
    TopicRecord,
    TopicRemovalRecord,
)
from controller.term import publish
from controller.term.publish import Publisher
from envelope.messages import MetadataUpdate
from tests.unit.turns import turns_during

NAMES = ("a", "b", "c", "d", "e")
OLD, NEW = 3, 4  # controller epochs


class Peer:
    """A broker: applies updates, and records their flags and delays.

    A remote peer gets updates without the decoded message, as over a channel.
    """

    def __init__(self, *, is_remote: bool) -> None:
        self.is_remote = is_remote
        self.cache = MetadataCache(lambda: self.changes.append(self.cache.changed))
        self.changes: list[frozenset[str] | None] = []
        self.updates: list[MetadataUpdate] = []
        self.delays: list[float] = []

    def push(self, update: MetadataUpdate, delay_s: float = 0.0) -> None:
        assert self.cache.apply(replace(update, message=None) if self.is_remote else update)
        self.updates.append(update)
        self.delays.append(delay_s)

    def shown(self, name: str) -> Any:
        topic = self.cache.topics.get(name)
        if topic is None:
            return None
        partitions = sorted(topic.partitions.items())
        return topic.topic_id, [(n, p.leader, p.leader_epoch, p.replicas) for n, p in partitions]


def of_image(image: MetadataImage, name: str) -> Any:
    topic = image.topics.get(name)
    if topic is None:
        return None
    pairs = enumerate(zip(topic.states, topic.assignment, strict=True))
    return topic.topic_id, [(n, s.leader, s.leader_epoch, tuple(r)) for n, (s, r) in pairs]


class Cluster:
    """A controller that changes topics, with one topic in each part of a full image."""

    def __init__(self, *topics: str) -> None:
        self.image = MetadataImage(controller_epoch=OLD, brokers=Map({1: _broker(1)}))
        self.ids = 0
        self.leader_epoch = 0
        self.own_peer = Peer(is_remote=False)
        self.peers = [self.own_peer]
        before = Publisher(9, self.own_peer)  # of the earlier controller
        for name in topics:
            self.replay(*self.create(name))
        before.activate(self.image)
        while before.push_part():
            pass
        self.publisher = Publisher(1, self.own_peer, 0.5)

    def create(self, name: str) -> list[Record]:
        self.ids += 1
        self.leader_epoch += 1
        state = PartitionState(1, self.leader_epoch, (1, 2), 1, self.leader_epoch)
        record = TopicRecord(name, self.ids.to_bytes(16), ((1, 2),), {})
        return [record, PartitionRecord(name, 0, state)]

    def replay(self, *records: Record) -> None:
        image = self.image.replay(records)
        self.image = replace(image, zxid=image.zxid + 1)

    def activate(self) -> None:
        self.image = replace(self.image, controller_epoch=NEW, zxid=self.image.zxid + 1)
        self.publisher.activate(self.image)

    def connect(self) -> Peer:
        self.peers.append(Peer(is_remote=True))
        self.publisher.connected(self.peers[-1])
        return self.peers[-1]

    def change(self, kind: str, name: str) -> None:
        """Change one topic, publish it, and check that every broker shows it at once."""
        topic = self.image.topics.get(name)
        if topic is None:
            self.replay(*self.create(name))
        elif kind == "delete":
            self.replay(TopicRemovalRecord(name))
        elif kind == "recreate":
            self.replay(TopicRemovalRecord(name), *self.create(name))
        elif kind == "grow":
            self.leader_epoch += 1
            state = PartitionState(2, self.leader_epoch, (2,), 1, self.leader_epoch)
            number = len(topic.assignment)
            grown = AssignmentRecord(name, (*topic.assignment, (2, 1)))
            self.replay(grown, PartitionRecord(name, number, state))
        else:
            self.leader_epoch += 1
            state = PartitionState(2, self.leader_epoch, (2,), 1, self.leader_epoch)
            self.replay(PartitionRecord(name, 0, state))
        asyncio.run(self.publisher.publish(self.image, frozenset((name,))))
        for peer in self.peers:
            assert peer.shown(name) == of_image(self.image, name)

    def finish(self) -> None:
        while self.publisher.push_part():
            pass
        for peer in self.peers:
            assert {n: peer.shown(n) for n in NAMES} == {n: of_image(self.image, n) for n in NAMES}
            assert peer.cache.zxid == self.image.zxid
            assert peer.cache.controller_epoch == NEW


def _broker(broker_id: int) -> BrokerRegistration:
    return BrokerRegistration(broker_id, broker_id, ())


CHANGES = st.tuples(
    st.sampled_from(("create", "delete", "recreate", "grow", "elect")), st.sampled_from(NAMES)
)
STEPS = st.lists(CHANGES | st.sampled_from(("part", "connect", "disconnect")), max_size=25)


@given(topics=st.lists(st.sampled_from(NAMES), unique=True), later=CHANGES | st.none(), steps=STEPS)
def test_every_broker_gets_every_topic_whatever_changes_between_the_parts(
    topics: list[str], later: tuple[str, str] | None, steps: list[Any]
) -> None:
    with patch.object(update_metadata, "PARTITIONS_PER_MESSAGE_MAX", 1):
        cluster = Cluster(*topics)
        if later is not None and later[1] in cluster.image.topics:
            # The broker has not seen this change of the earlier controller.
            cluster.replay(TopicRemovalRecord(later[1]))
        cluster.activate()
        for step in steps:
            if step == "part":
                cluster.publisher.push_part()
            elif step == "connect":
                cluster.connect()
            elif step == "disconnect":
                if len(cluster.peers) > 1:
                    cluster.publisher.disconnected(cluster.peers.pop())
            else:
                cluster.change(*step)
        asyncio.run(cluster.publisher.publish(cluster.image, frozenset()))
        cluster.finish()


def test_a_topic_that_was_published_as_a_change_is_not_in_a_later_part() -> None:
    with patch.object(update_metadata, "PARTITIONS_PER_MESSAGE_MAX", 1):
        cluster = Cluster("a", "b", "c")
        cluster.activate()
        cluster.change("elect", "a")
        cluster.finish()
    assert [(u.between_parts, u.complete) for u in cluster.own_peer.updates[-3:]] == [
        (False, False),
        (True, False),
        (False, True),
    ]


def test_a_change_between_two_parts_is_visible_but_does_not_raise_the_zxid() -> None:
    with patch.object(update_metadata, "PARTITIONS_PER_MESSAGE_MAX", 1):
        cluster = Cluster("a", "b", "c")
        before = cluster.own_peer.cache.zxid
        cluster.activate()
        cluster.change("elect", "a")
        cluster.change("delete", "b")
        assert cluster.own_peer.cache.zxid == before
        assert cluster.own_peer.changes[-2:] == [{"a"}, {"b"}]
        cluster.finish()
        assert cluster.own_peer.changes[-1] is None


def test_a_change_in_several_parts_raises_the_zxid_with_the_last_part() -> None:
    """Otherwise a broker that has only the first part would count as one that has the change."""
    with patch.object(update_metadata, "PARTITIONS_PER_MESSAGE_MAX", 1):
        cluster = Cluster()
        cluster.activate()
        own_broker = cluster.own_peer
        before = own_broker.cache.zxid
        cluster.replay(*cluster.create("a"), *cluster.create("b"))
        asyncio.run(cluster.publisher.publish(cluster.image, frozenset(("a", "b"))))
        assert own_broker.changes[-2:] == [{"a"}, {"b"}]
        assert [(u.between_parts, u.complete) for u in own_broker.updates[-2:]] == [
            (True, False),
            (False, True),
        ]
        assert own_broker.cache.zxid > before
        part = own_broker.updates[-2]
    lagging = cluster.connect()
    zxid = lagging.cache.zxid
    lagging.push(replace(part, zxid=zxid + 1))
    assert (lagging.cache.zxid, lagging.shown("a")) == (zxid, of_image(cluster.image, "a"))


async def test_many_topics_are_published_while_other_tasks_run() -> None:
    """A broker that connects meanwhile gets every topic, and the zxid only with the last one."""
    cluster = Cluster()
    cluster.activate()
    names = [f"many-{number}" for number in range(5_000)]
    cluster.replay(*(record for name in names for record in cluster.create(name)))
    before = cluster.own_peer.cache.zxid
    with patch.object(update_metadata, "PARTITIONS_PER_MESSAGE_MAX", 1_000):
        publishing = asyncio.create_task(cluster.publisher.publish(cluster.image, frozenset(names)))
        while len(cluster.own_peer.cache.topics) < 2_000:
            await asyncio.sleep(0)
        assert len(cluster.own_peer.cache.topics) < 5_000
        assert cluster.own_peer.cache.zxid == before
        late = cluster.connect()
        _, turns = await turns_during(asyncio.wait_for(publishing, 60))
        cluster.finish()
    assert turns > 5
    for peer in (cluster.own_peer, late):
        assert len(peer.cache.topics) == 5_000
        assert peer.cache.zxid == cluster.image.zxid


def test_a_term_sends_full_images_again_after_a_resignation_between_two_parts() -> None:
    with patch.object(update_metadata, "PARTITIONS_PER_MESSAGE_MAX", 1):
        cluster = Cluster("a", "b")
        cluster.activate()
        other = cluster.connect()
        cluster.publisher.deactivate()
        assert not cluster.publisher.push_part()
        cluster.activate()
        assert [u.starts_full_image for u in other.updates] == [True, True]
        cluster.finish()


def test_only_changes_are_delayed() -> None:
    cluster = Cluster()
    cluster.activate()
    other = cluster.connect()
    asyncio.run(cluster.publisher.publish(cluster.image, frozenset()))
    for peer in (cluster.own_peer, other):
        started = [u.starts_full_image for u in peer.updates[-2:]]
        assert list(zip(started, peer.delays[-2:], strict=True)) == [(True, 0.0), (False, 0.5)]


def test_a_term_whose_first_publication_fails_leaves_no_broker_without_metadata() -> None:
    """The next term of the same candidate publishes to its own broker and to all others."""
    cluster = Cluster("a")
    other = cluster.connect()
    sound = cluster.image
    cluster.image = replace(sound, brokers=sound.brokers.set(7, _broker(2**40)))
    with pytest.raises(WireError):
        cluster.activate()
    cluster.publisher.deactivate()
    cluster.image = replace(sound, zxid=cluster.image.zxid)
    cluster.activate()
    assert other.cache.controller_epoch == NEW
    cluster.finish()


def test_a_publication_that_fails_while_a_broker_connects_leaves_no_broker_out() -> None:
    cluster = Cluster("a")
    cluster.activate()
    sound = cluster.image
    with patch.object(publish, "take_part", side_effect=WireError), pytest.raises(WireError):
        cluster.connect()
    cluster.publisher.deactivate()
    cluster.image = sound
    cluster.activate()
    assert [peer.cache.controller_epoch for peer in cluster.peers] == [NEW, NEW]
    cluster.finish()


def test_a_topic_that_becomes_unreadable_is_not_deleted_at_any_broker() -> None:
    """Another program damaged its znode. A deletion would make the brokers delete their logs."""
    with patch.object(update_metadata, "PARTITIONS_PER_MESSAGE_MAX", 1):
        cluster = Cluster("a", "b", "c")
        cluster.activate()
        before = cluster.image
        cluster.replay(TopicRemovalRecord("b"))
        cluster.image = replace(cluster.image, unreadable=frozenset({"b"}))
        asyncio.run(cluster.publisher.publish(cluster.image, frozenset(NAMES)))
        assert cluster.own_peer.shown("b") == of_image(before, "b")  # what it knew
        late = cluster.connect()
        while cluster.publisher.push_part():
            pass
        assert (late.shown("b"), "b" in late.cache.unreadable) == (None, True)
        assert "a" not in late.cache.unreadable
        cluster.image = replace(before, zxid=cluster.image.zxid + 1)  # the znode is repaired
        asyncio.run(cluster.publisher.publish(cluster.image, frozenset({"b"})))
        cluster.finish()
        assert "b" not in late.cache.unreadable
