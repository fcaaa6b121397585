"""The metadata cache applies the controller's updates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from immutables import Map

from bridgehead.kafka_wire.codec import encode_request
from bridgehead.kafka_wire.messages.update_metadata import UpdateMetadataRequest
from broker_proxy.metadata.cache import MetadataCache
from cluster_model.image import BrokerRegistration, Endpoint, MetadataImage
from cluster_model.records import (
    AssignmentRecord,
    PartitionRecord,
    PartitionState,
    TopicRecord,
    TopicRemovalRecord,
)
from cluster_model.update_metadata import PARTITIONS_PER_MESSAGE_MAX, changed_parts, full_parts
from envelope.messages import MetadataUpdate


def broker(broker_id: int) -> BrokerRegistration:
    endpoint = Endpoint("CLIENTS", "PLAINTEXT", f"host{broker_id}", 9000 + broker_id)
    return BrokerRegistration(broker_id, broker_id, (endpoint,), f"rack{broker_id}")


def topic(name: str, number: int, partitions: int = 1) -> list[object]:
    led = PartitionState(1, 0, (1, 2), 3, 0)
    return [
        TopicRecord(name, bytes([number]) * 16, ((1, 2),) * partitions, {}),
        *(PartitionRecord(name, p, led) for p in range(partitions)),
    ]


def image(*records: object, epoch: int = 3, zxid: int = 10) -> MetadataImage:
    empty = MetadataImage(
        zxid=zxid, controller_epoch=epoch, brokers=Map({1: broker(1), 2: broker(2)})
    )
    return empty.replay(records)  # type: ignore[arg-type]


def updates(
    parts: Iterable[UpdateMetadataRequest], of: MetadataImage, *, full: bool
) -> list[MetadataUpdate]:
    all_parts = list(parts)
    return [
        MetadataUpdate(
            controller_id=1,
            controller_epoch=of.controller_epoch,
            zxid=of.zxid,
            update_metadata=encode_request(6, 8, part),
            starts_full_image=full and number == 0,
            complete=number == len(all_parts) - 1 if full else True,
        )
        for number, part in enumerate(all_parts)
    ]


def full(of: MetadataImage) -> list[MetadataUpdate]:
    return updates(full_parts(of, 1), of, full=True)


def cache_of(*images: MetadataImage) -> MetadataCache:
    cache = MetadataCache(lambda: None)
    for past in images:
        for update in full(past):
            assert cache.apply(update)
    return cache


def test_a_full_image_replaces_everything() -> None:
    cache = cache_of(image(*topic("old", 1)), image(*topic("new", 2, partitions=2), zxid=11))
    assert list(cache.topics) == ["new"]
    assert cache.topic_name(bytes([2]) * 16) == "new"
    assert cache.topic_name(bytes([1]) * 16) is None
    assert cache.topics["new"].partitions[1].isr == (1, 2)
    assert cache.brokers[2].endpoints["CLIENTS"].port == 9002
    assert (cache.controller_id, cache.controller_epoch, cache.zxid) == (1, 3, 11)


def test_a_full_image_in_parts_becomes_visible_with_its_last_part() -> None:
    changes: list[int] = []
    cache = MetadataCache(lambda: changes.append(1))
    for update in full(image(*topic("old", 1))):
        cache.apply(update)
    half = PARTITIONS_PER_MESSAGE_MAX // 2 + 1
    records = [r for n in range(3) for r in topic(f"t{n}", 10 + n, partitions=half)]
    first, second = full(image(*records, zxid=12))
    cache.apply(first)
    assert list(cache.topics) == ["old"]
    assert cache.zxid == 10
    cache.apply(second)
    assert sorted(cache.topics) == ["t0", "t1", "t2"]
    assert len(changes) == 2


def test_updates_of_an_older_controller_are_rejected() -> None:
    cache = cache_of(image(*topic("old", 1)))
    half = PARTITIONS_PER_MESSAGE_MAX // 2 + 1
    records = [r for n in range(3) for r in topic(f"t{n}", 10 + n, partitions=half)]
    first, second = full(image(*records, epoch=4))
    assert cache.apply(first)
    assert not cache.apply(full(image(*topic("zombie", 9)))[0])
    assert list(cache.topics) == ["old"]
    assert cache.apply(second)
    assert "zombie" not in cache.topics
    assert cache.controller_epoch == 4


def test_an_update_replaces_the_changed_topics_and_the_live_brokers() -> None:
    before = image(*topic("kept", 1), *topic("gone", 2))
    cache = cache_of(before)
    after = replace(
        before.replay([TopicRemovalRecord("gone"), *topic("new", 3)]),  # type: ignore[list-item]
        brokers=Map({1: broker(1)}),
    )
    parts = changed_parts(before, after, {"gone", "new"}, 1)
    for update in updates(parts, after, full=False):
        cache.apply(update)
    assert sorted(cache.topics) == ["kept", "new"]
    assert cache.topic_name(bytes([2]) * 16) is None
    assert list(cache.brokers) == [1]
    assert cache.topics["new"].partitions[0].offline_replicas == (2,)


def test_a_recreated_topic_replaces_the_deleted_one() -> None:
    before = image(*topic("same", 1, partitions=3))
    cache = cache_of(before)
    after = before.replay([TopicRemovalRecord("same"), *topic("same", 2)])  # type: ignore[list-item]
    for update in updates(changed_parts(before, after, {"same"}, 1), after, full=False):
        cache.apply(update)
    assert list(cache.topics["same"].partitions) == [0]
    assert cache.topic_name(bytes([1]) * 16) is None
    assert cache.topic_name(bytes([2]) * 16) == "same"


def test_a_partition_without_a_state_is_not_sent() -> None:
    grown = AssignmentRecord("t", ((1, 2), (2, 1)))
    cache = cache_of(image(*topic("t", 1), grown))
    assert list(cache.topics["t"].partitions) == [0]


def test_a_change_of_only_the_live_brokers_is_one_update() -> None:
    (update,) = changed_parts(image(), image(), (), 1)
    assert [b.id for b in update.live_brokers] == [1, 2]
    assert not update.topic_states


async def test_a_cached_response_is_valid_until_the_next_update() -> None:
    cache = cache_of(image())
    encoded: list[bytes] = []

    async def encode() -> bytes:
        encoded.append(b"%d" % len(encoded))
        return encoded[-1]

    assert await cache.cached_response("key", encode) == b"0"
    assert await cache.cached_response("key", encode) == b"0"
    cache.apply(full(image(zxid=11))[0])
    assert await cache.cached_response("key", encode) == b"1"


async def test_cached_responses_are_bounded() -> None:
    cache = cache_of(image())
    calls: list[int] = []

    async def encode() -> bytes:
        calls.append(1)
        return b"x"

    for number in range(5_000):
        await cache.cached_response(number, encode)
    await cache.cached_response(0, encode)
    assert len(calls) == 5_001


async def test_a_response_that_was_built_during_an_update_is_not_kept() -> None:
    cache = cache_of(image())
    calls: list[int] = []

    async def encode() -> bytes:
        calls.append(1)
        cache.apply(full(image(zxid=11 + len(calls)))[0])
        return b"old"

    assert await cache.cached_response("key", encode) == b"old"
    assert await cache.cached_response("key", encode) == b"old"
    assert len(calls) == 2
