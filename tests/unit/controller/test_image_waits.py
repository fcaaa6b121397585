"""Responses that wait for conditions of the image."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from cluster_model.image import MetadataImage
from cluster_model.records import PartitionRecord, PartitionState, TopicRecord, TopicRemovalRecord
from controller.apis.base import Wait, WaitFor
from controller.loop.image_waits import ImageWaits
from controller.requests.pending_request import PendingRequest
from tests.unit.controller.request_contexts import a_pending_request
from tests.unit.controller.topic_decisions import ID

OTHER_ID = bytes([8]) * 16
Waits = Callable[..., PendingRequest]
LED, OFFLINE = PartitionState(1, 0, (1,), 5, 0), PartitionState(-1, 1, (1,), 5, 1)


@pytest.fixture
def waits() -> Iterator[Waits]:
    """`waits(WaitFor.X, timeout_ms=...)` makes a request that waits for X."""
    loop = asyncio.new_event_loop()

    def make(wait_for: WaitFor = WaitFor.LEADERS, timeout_ms: int = 1000) -> PendingRequest:
        pending = a_pending_request(loop.create_future())
        pending.wait = Wait(wait_for, {}, timeout_ms)
        return pending

    yield make
    loop.close()


def cluster(*names: str) -> MetadataImage:
    """An image of topics with two partitions each. The partitions have no leaders."""
    ids = (ID, OTHER_ID)
    return MetadataImage().replay(
        TopicRecord(name, topic_id, ((1,), (1,)), {})
        for name, topic_id in zip(names, ids, strict=False)
    )


def led(image: MetadataImage, name: str, *partitions: int) -> MetadataImage:
    return image.replay(PartitionRecord(name, partition, LED) for partition in partitions)


def test_a_wait_for_leaders_ends_when_every_partition_has_one_and_only_once(waits: Waits) -> None:
    """The request is returned when every partition has a leader, and only once."""
    waiting, request, image = ImageWaits(), waits(), cluster("a")
    assert waiting.add(request, {"a": "a"}, image)
    half = led(image, "a", 0)
    assert waiting.reached(half, {"a"}) == []
    whole = led(half, "a", 1)
    assert waiting.reached(whole, {"a"}) == [request]
    assert waiting.reached(whole, {"a"}) == []
    assert waiting.give_up(request) is None


def test_a_met_condition_needs_no_wait(waits: Waits) -> None:
    waiting, image = ImageWaits(), led(cluster("a"), "a", 0, 1)
    assert not waiting.add(waits(), {"a": "a"}, image)
    assert waiting.drain() == []


def test_one_slow_topic_delays_its_own_request_only(waits: Waits) -> None:
    waiting, both, one, image = ImageWaits(), waits(), waits(), cluster("a", "b")
    waiting.add(both, {"a": "a", "b": "b"}, image)
    waiting.add(one, {"a": "a"}, image)
    image = led(image, "a", 0, 1)
    assert waiting.reached(image, {"a"}) == [one]
    assert waiting.give_up(both) == {"b"}
    assert waiting.reached(led(image, "b", 0, 1), {"b"}) == []


def test_a_deletion_waits_until_the_topic_id_is_gone(waits: Waits) -> None:
    """The wait ends when the id is gone, even if there is a new topic of the same name."""
    waiting, request, image = ImageWaits(), waits(WaitFor.DELETION), cluster("a")
    assert waiting.add(request, {"a": ID}, image)
    assert waiting.reached(image, {"a"}) == []
    again = image.replay([TopicRemovalRecord("a"), TopicRecord("a", OTHER_ID, ((1,),), {})])
    assert waiting.reached(again, {"a"}) == [request]
    assert not waiting.add(waits(WaitFor.DELETION), {"a": ID}, again)


def test_an_election_waits_for_its_own_partition_only(waits: Waits) -> None:
    waiting, request, image = ImageWaits(), waits(WaitFor.ELECTION), cluster("a")
    assert waiting.add(request, {"a-1": ("a", 1)}, image)
    assert waiting.reached(led(image, "a", 0), {"a"}) == []
    assert waiting.reached(led(image, "a", 1), {"a"}) == [request]


def test_a_wait_for_leaders_includes_a_partition_that_lost_its_leader(waits: Waits) -> None:
    image = led(cluster("a"), "a", 0, 1).replay([PartitionRecord("a", 1, OFFLINE)])
    waiting = ImageWaits()
    assert waiting.add(waits(), {"a": "a"}, image)


def test_a_wait_for_leaders_of_a_deleted_topic_never_ends(waits: Waits) -> None:
    waiting, request, image = ImageWaits(), waits(), cluster("a")
    waiting.add(request, {"a": "a"}, image)
    assert waiting.reached(image.replay([TopicRemovalRecord("a")]), {"a"}) == []
    assert waiting.give_up(request) == {"a"}


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_every_element_is_unfinished_if_the_timeout_is_not_positive(
    waits: Waits, timeout_ms: int
) -> None:
    """Kafka answers such requests REQUEST_TIMED_OUT even if the conditions are met."""
    waiting, image = ImageWaits(), led(cluster("a"), "a", 0, 1)
    request = waits(timeout_ms=timeout_ms)
    assert waiting.add(request, {"a": "a"}, image)
    assert waiting.give_up(request) == {"a"}


def test_drain_pops_every_request(waits: Waits) -> None:
    waiting, image = ImageWaits(), cluster("a", "b")
    requests = [waits(), waits()]
    for request, name in zip(requests, ("a", "b"), strict=True):
        waiting.add(request, {name: name}, image)
    assert waiting.drain() == requests
    assert waiting.drain() == []
    assert waiting.reached(led(image, "a", 0, 1), {"a"}) == []


def test_a_missing_topic_has_no_leaders_and_broker_0_is_one(waits: Waits) -> None:
    waiting, image = ImageWaits(), cluster("a")
    assert waiting.add(waits(), {"gone": "gone"}, image)
    by_broker_0 = [PartitionRecord("a", n, PartitionState(0, 2, (0,), 5, 3)) for n in (0, 1)]
    assert not waiting.add(waits(), {"a": "a"}, image.replay(by_broker_0))


@pytest.mark.parametrize(("timeout_ms", "waits_for"), [(-1, True), (0, True), (1, False)])
def test_without_a_timeout_even_a_met_condition_times_out(
    timeout_ms: int, waits_for: bool, waits: Waits
) -> None:
    """As in Kafka, every success is then reported as timed out."""
    waiting, image = ImageWaits(), led(cluster("a"), "a", 0, 1)
    assert waiting.add(waits(timeout_ms=timeout_ms), {"a": "a"}, image) is waits_for
