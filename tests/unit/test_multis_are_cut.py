"""Decisions cut into multis: in order, within ZooKeeper's limits, no element in two of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.apis.base import DONE, Decided
from controller.store.outcomes import encode_outcomes
from controller.store.zookeeper import MULTI_BYTES_MAX, OPERATIONS_MAX
from controller.work import Entry, Work, cut_into_multis, fits_a_multi, outcomes_of
from envelope.messages import RequestIdentity
from tests.unit.topic_decisions import context

FENCE_COUNTER_AND_OUTCOMES = 3


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def work(loop: asyncio.AbstractEventLoop, sequence: int = 1) -> Work:
    api: Any = None  # Cutting asks the API nothing.
    identity = RequestIdentity(1, "life", sequence)
    return Work(identity, context(7), api, None, 0, 0.0, loop.create_future())


def entry(of: Work, element: str, operations: int, size: int) -> Entry:
    return Entry(of, Decided(element, DONE), [b"x" * size] * operations)


SIZES = st.tuples(st.integers(1, 300), st.integers(10, 3000))


@settings(max_examples=50)
@given(sizes=st.lists(SIZES, max_size=60))
def test_whatever_was_decided_is_in_a_multi_once_in_order_and_within_the_limits(
    loop: asyncio.AbstractEventLoop, sizes: list[tuple[int, int]]
) -> None:
    """The outcomes' own znode counts."""
    asked = work(loop)
    entries = [
        entry(asked, f"topic-{n}", operations, size)
        for n, (operations, size) in enumerate(sizes)
        if operations * size <= MULTI_BYTES_MAX
    ]
    multis = list(cut_into_multis(entries))
    assert [each for multi in multis for each in multi] == entries
    for multi in multis:
        effects = [operation for each in multi for operation in each.operations]
        outcomes = len(encode_outcomes(1, outcomes_of(multi)))
        assert len(effects) + FENCE_COUNTER_AND_OUTCOMES <= OPERATIONS_MAX
        # A single large element may need the outcomes' room: ZooKeeper's limit is higher.
        assert len(multi) == 1 or sum(map(len, effects)) + outcomes <= MULTI_BYTES_MAX
        assert sum(map(len, effects)) + outcomes < 2**20


def test_a_multi_is_filled_before_the_next_one_begins(loop: asyncio.AbstractEventLoop) -> None:
    """497 creations of one operation fit; one more begins the second."""
    room = OPERATIONS_MAX - FENCE_COUNTER_AND_OUTCOMES
    entries = [entry(work(loop), f"t{n}", 1, 10) for n in range(room + 1)]
    assert [len(multi) for multi in cut_into_multis(entries)] == [room, 1]


def test_nothing_decided_is_no_multi() -> None:
    """An empty multi would move the counter for nothing."""
    assert list(cut_into_multis([])) == []


def test_outcomes_of_a_multi_are_grouped_by_request(loop: asyncio.AbstractEventLoop) -> None:
    """Elements of two requests that come mixed are told apart, each in its order."""
    one, two = work(loop, 1), work(loop, 2)
    multi = [entry(one, "a", 1, 1), entry(two, "a", 1, 1), entry(one, "b", 1, 1)]
    grouped = outcomes_of(multi)
    assert [(each.identity.sequence, list(each.elements)) for each in grouped] == [
        (1, ["a", "b"]),
        (2, ["a"]),
    ]


@pytest.mark.parametrize(
    ("operations", "size", "fits"),
    [
        (1, MULTI_BYTES_MAX - 160, True),
        (1, MULTI_BYTES_MAX, False),
        (497, 1, True),
        (498, 1, False),
    ],
)
def test_an_element_fits_a_multi_or_does_not(operations: int, size: int, fits: bool) -> None:
    """By its operations and by its bytes."""
    written = Decided("", DONE)
    assert fits_a_multi([b"x" * size] * operations, written) is fits
