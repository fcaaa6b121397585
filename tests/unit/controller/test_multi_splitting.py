"""Entries (elements with their operations) are put into multis within ZooKeeper's limits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgehead.kafka_wire.errors import ErrorCode
from controller.apis.base import DONE, Decided, Outcome
from controller.loop.multis import Entry, fits_in_multi, outcomes_of, split_into_multis
from controller.requests.pending_request import PendingRequest
from controller.store.outcomes import encode_outcomes
from controller.store.zookeeper import MULTI_BYTES_MAX, OPERATIONS_MAX
from envelope.messages import RequestIdentity
from tests.unit.controller.request_contexts import a_pending_request

FENCE_COUNTER_AND_OUTCOMES = 3


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def pending(loop: asyncio.AbstractEventLoop, sequence: int = 1) -> PendingRequest:
    identity = RequestIdentity(1, "life", sequence)
    return a_pending_request(loop.create_future(), identity=identity)


def entry(of: PendingRequest, element: str, operations: int, size: int) -> Entry:
    return Entry(of, Decided(element, DONE), [b"x" * size] * operations)


SIZES = st.tuples(st.integers(1, 300), st.integers(10, 3000))


@settings(max_examples=50)
@given(sizes=st.lists(SIZES, max_size=60))
def test_multis_contain_every_entry_once_in_order_within_the_limits(
    loop: asyncio.AbstractEventLoop, sizes: list[tuple[int, int]]
) -> None:
    request = pending(loop)
    entries = [
        entry(request, f"topic-{n}", operations, size)
        for n, (operations, size) in enumerate(sizes)
        if operations * size <= MULTI_BYTES_MAX
    ]
    multis = list(split_into_multis(entries))
    assert [item for multi in multis for item in multi] == entries
    for multi in multis:
        effects = [operation for item in multi for operation in item.operations]
        outcomes = len(encode_outcomes(1, outcomes_of(multi)))
        assert len(effects) + FENCE_COUNTER_AND_OUTCOMES <= OPERATIONS_MAX
        # A single large element may exceed our limit; ZooKeeper's limit is higher.
        assert len(multi) == 1 or sum(map(len, effects)) + outcomes <= MULTI_BYTES_MAX
        assert sum(map(len, effects)) + outcomes < 2**20


def test_a_multi_is_filled_before_the_next_one_starts(loop: asyncio.AbstractEventLoop) -> None:
    room = OPERATIONS_MAX - FENCE_COUNTER_AND_OUTCOMES
    entries = [entry(pending(loop), f"t{n}", 1, 10) for n in range(room + 1)]
    assert [len(multi) for multi in split_into_multis(entries)] == [room, 1]


def test_no_entries_give_no_multi() -> None:
    assert list(split_into_multis([])) == []


def test_outcomes_of_a_multi_are_grouped_by_request(loop: asyncio.AbstractEventLoop) -> None:
    one, two = pending(loop, 1), pending(loop, 2)
    multi = [entry(one, "a", 1, 1), entry(two, "a", 1, 1), entry(one, "b", 1, 1)]
    grouped = outcomes_of(multi)
    assert [(outcomes.identity.sequence, list(outcomes.elements)) for outcomes in grouped] == [
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
def test_fits_in_multi_checks_operations_and_bytes(operations: int, size: int, fits: bool) -> None:
    written = Decided("", DONE)
    assert fits_in_multi([b"x" * size] * operations, written) is fits


def test_the_size_of_an_outcome_is_counted_in_bytes(loop: asyncio.AbstractEventLoop) -> None:
    """A deleted ACL may name a principal of characters that take four bytes each."""
    request = pending(loop)
    half = "\N{GRINNING FACE}" * (MULTI_BYTES_MAX // 4 // 2)
    entries = [
        Entry(request, Decided(name, Outcome(ErrorCode.NONE, half)), [b"x"]) for name in ("a", "b")
    ]
    assert all(fits_in_multi(item.operations, item.decided) for item in entries)
    for multi in split_into_multis(entries):
        assert len(encode_outcomes(1, outcomes_of(multi))) <= MULTI_BYTES_MAX
