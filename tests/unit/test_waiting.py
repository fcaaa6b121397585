"""Who waits for what: answered when it is there, once, and never forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cluster_model.image import MetadataImage
from cluster_model.records import PartitionRecord, PartitionState, TopicRecord, TopicRemovalRecord
from controller.apis.base import Wait, WaitFor
from controller.waiting import Waiting
from controller.work import Work
from envelope.messages import RequestIdentity
from tests.unit.topic_decisions import ID, context

OTHER_ID = bytes([8]) * 16
Waits = Callable[..., Work]
LED, OFFLINE = PartitionState(1, 0, (1,), 5, 0), PartitionState(-1, 1, (1,), 5, 1)


@pytest.fixture
def waits() -> Iterator[Waits]:
    """`waits(WaitFor.X, timeout_ms=...)` makes a request that waits."""
    loop = asyncio.new_event_loop()

    def make(what: WaitFor = WaitFor.LEADERS, timeout_ms: int = 1000) -> Work:
        api: Any = None  # Waiting asks the API nothing.
        made = Work(RequestIdentity(1, "a", 1), context(7), api, None, 0, 0.0, loop.create_future())
        made.wait = Wait(what, {}, timeout_ms)
        return made

    yield make
    loop.close()


def cluster(*names: str) -> MetadataImage:
    """Topics of two partitions without leaders."""
    ids = (ID, OTHER_ID)
    return MetadataImage().replay(
        TopicRecord(name, topic_id, ((1,), (1,)), {})
        for name, topic_id in zip(names, ids, strict=False)
    )


def led(image: MetadataImage, name: str, *partitions: int) -> MetadataImage:
    return image.replay(PartitionRecord(name, partition, LED) for partition in partitions)


def test_leaders_are_there_when_the_last_partition_has_one(waits: Waits) -> None:
    """Not one partition earlier, and only once."""
    waiting, work, image = Waiting(), waits(), cluster("a")
    assert waiting.add(work, {"a": "a"}, image)
    half = led(image, "a", 0)
    assert waiting.reached(half, {"a"}) == []
    whole = led(half, "a", 1)
    assert waiting.reached(whole, {"a"}) == [work]
    assert waiting.reached(whole, {"a"}) == []
    assert waiting.give_up(work) is None


def test_what_is_there_already_needs_no_wait(waits: Waits) -> None:
    """The request is answered at once."""
    waiting, image = Waiting(), led(cluster("a"), "a", 0, 1)
    assert not waiting.add(waits(), {"a": "a"}, image)
    assert waiting.drain() == []


def test_one_slow_topic_holds_up_its_whole_request_and_no_other(waits: Waits) -> None:
    """Two requests: the one that also waits for b waits on."""
    waiting, both, one, image = Waiting(), waits(), waits(), cluster("a", "b")
    waiting.add(both, {"a": "a", "b": "b"}, image)
    waiting.add(one, {"a": "a"}, image)
    image = led(image, "a", 0, 1)
    assert waiting.reached(image, {"a"}) == [one]
    assert waiting.give_up(both) == {"b"}
    assert waiting.reached(led(image, "b", 0, 1), {"b"}) == []


def test_a_deletion_is_over_when_that_very_topic_is_gone(waits: Waits) -> None:
    """By id: a new topic of the same name is another one."""
    waiting, work, image = Waiting(), waits(WaitFor.DELETION), cluster("a")
    assert waiting.add(work, {"a": ID}, image)
    assert waiting.reached(image, {"a"}) == []
    again = image.replay([TopicRemovalRecord("a"), TopicRecord("a", OTHER_ID, ((1,),), {})])
    assert waiting.reached(again, {"a"}) == [work]
    assert not waiting.add(waits(WaitFor.DELETION), {"a": ID}, again)


def test_an_election_waits_for_its_partitions_alone(waits: Waits) -> None:
    """Another partition of the topic may stay without a leader."""
    waiting, work, image = Waiting(), waits(WaitFor.ELECTION), cluster("a")
    assert waiting.add(work, {"a-1": ("a", 1)}, image)
    assert waiting.reached(led(image, "a", 0), {"a"}) == []
    assert waiting.reached(led(image, "a", 1), {"a"}) == [work]


def test_a_partition_that_lost_its_leader_is_waited_for(waits: Waits) -> None:
    """Having had a state is not having a leader."""
    image = led(cluster("a"), "a", 0, 1).replay([PartitionRecord("a", 1, OFFLINE)])
    waiting = Waiting()
    assert waiting.add(waits(), {"a": "a"}, image)


def test_a_topic_that_is_deleted_meanwhile_never_gets_its_leaders(waits: Waits) -> None:
    """The wait ends at its timeout, with the topic unfinished."""
    waiting, work, image = Waiting(), waits(), cluster("a")
    waiting.add(work, {"a": "a"}, image)
    assert waiting.reached(image.replay([TopicRemovalRecord("a")]), {"a"}) == []
    assert waiting.give_up(work) == {"a"}


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_without_time_to_wait_everything_is_unfinished(waits: Waits, timeout_ms: int) -> None:
    """Kafka says REQUEST_TIMED_OUT even of what is there."""
    waiting, image = Waiting(), led(cluster("a"), "a", 0, 1)
    work = waits(timeout_ms=timeout_ms)
    assert waiting.add(work, {"a": "a"}, image)
    assert waiting.give_up(work) == {"a"}


def test_at_the_end_of_office_everybody_who_waits_is_handed_over(waits: Waits) -> None:
    """Once; afterwards nobody waits."""
    waiting, image = Waiting(), cluster("a", "b")
    works = [waits(), waits()]
    for work, name in zip(works, ("a", "b"), strict=True):
        waiting.add(work, {name: name}, image)
    assert waiting.drain() == works
    assert waiting.drain() == []
    assert waiting.reached(led(image, "a", 0, 1), {"a"}) == []
