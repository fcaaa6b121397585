"""Outcomes: their encoding, their index, and when they are pruned."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.kafka_wire.errors import ErrorCode
from cluster_model.znodes.layout import FloorZnode, OutcomeZnode
from cluster_model.znodes.operations import Create, Delete, SetData
from cluster_model.znodes.values import ZnodeContentError
from controller.apis.base import DONE, Outcome
from controller.store.outcomes import (
    PRUNED_PER_MULTI_MAX,
    OutcomeIndex,
    RequestOutcomes,
    decode_outcomes,
    encode_outcomes,
)
from controller.term.outcome_pruning import OutcomePruner
from envelope.messages import RequestIdentity

PATH = OutcomeZnode.path(1)
ME, OTHER = (1, "abc"), (2, "def")
NONE: frozenset[tuple[int, str]] = frozenset()
EXISTS = Outcome(ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'a' already exists.")


def ended(sequence: int, of: tuple[int, str] = ME, element: str = "a") -> RequestOutcomes:
    return RequestOutcomes(RequestIdentity(*of, sequence), "r", {element: DONE})


def index_of(*commits: RequestOutcomes) -> OutcomeIndex:
    """Return an index with one commit for each argument, numbered from 1."""
    index = OutcomeIndex()
    for number, outcomes in enumerate(commits, start=1):
        index.add(number, [outcomes])
    return index


ELEMENTS = st.dictionaries(
    st.text(max_size=20),
    st.builds(
        Outcome,
        st.sampled_from(ErrorCode),
        st.none() | st.text(max_size=20),
        st.none() | st.binary(min_size=16, max_size=16),
    ),
    max_size=4,
)


@given(
    st.lists(
        st.builds(
            RequestOutcomes,
            st.builds(
                RequestIdentity,
                st.integers(0, 2**31 - 1),
                st.from_regex("[0-9a-f]{1,12}", fullmatch=True),
                st.integers(0, 2**53),
            ),
            st.text(),
            ELEMENTS,
        ),
        max_size=4,
    )
)
def test_outcomes_survive_encoding(outcomes: list[RequestOutcomes]) -> None:
    assert decode_outcomes(PATH, encode_outcomes(5, outcomes)) == outcomes


def test_outcomes_are_encoded_as_the_judge_reads_them() -> None:
    outcome = RequestOutcomes(RequestIdentity(1, "abc", 9), "r", {"a": EXISTS})
    assert json.loads(encode_outcomes(5, [outcome])) == {
        "epoch": 5,
        "outcomes": [
            {
                "id": [1, "abc", 9],
                "request": "r",
                "elements": [["a", 36, "Topic 'a' already exists.", None]],
            }
        ],
    }


@pytest.mark.parametrize("data", [None, b"", b"[]", b"{}", b'{"outcomes":[{}]}', b"\xff"])
def test_decode_outcomes_rejects_other_content(data: bytes | None) -> None:
    with pytest.raises(ZnodeContentError):
        decode_outcomes(PATH, data)


def test_lookup_returns_the_outcomes_of_all_multis_of_a_request() -> None:
    index = index_of(ended(7, element="a"), ended(7, element="b"))
    identity = RequestIdentity(*ME, 7)
    assert index.lookup(identity) == {"a": DONE, "b": DONE}
    assert index.lookup(RequestIdentity(*OTHER, 7)) == {}
    assert index.lookup(RequestIdentity(1, "another life", 7)) == {}


def test_a_floor_only_rises_and_belongs_to_one_incarnation() -> None:
    index = OutcomeIndex()
    index.raise_floor(ME, 5)
    index.raise_floor(ME, 3)
    below = [index.is_below_floor(RequestIdentity(*ME, n)) for n in (4, 5)]
    assert below == [True, False]
    assert not index.is_below_floor(RequestIdentity(*OTHER, 4))


def test_a_commit_is_prunable_when_its_requests_are_finished_or_their_brokers_are_gone() -> None:
    index = OutcomeIndex()
    index.add(1, [ended(4), ended(9, OTHER)])
    assert index.prunable(NONE) == []
    index.raise_floor(ME, 5)
    assert index.prunable(NONE) == []
    assert index.prunable(frozenset({OTHER})) == [1]
    index.raise_floor(OTHER, 10)
    assert index.prunable(NONE) == [1]


def test_pruning_stores_the_floor_in_the_multi_that_deletes_the_outcomes() -> None:
    """Without the stored floor, the next controller could execute a late resend."""
    index = index_of(ended(1), ended(2), ended(3))
    index.raise_floor(ME, 3)
    commits = index.prunable(NONE)
    pruning = index.plan_pruning(commits, NONE)
    assert pruning.operations == [
        Delete(OutcomeZnode.path(1)),
        Delete(OutcomeZnode.path(2)),
        Create(FloorZnode.path(*ME), b"3"),
    ]
    index.pruned(pruning)
    assert index.lookup(RequestIdentity(*ME, 1)) == {}
    assert index.lookup(RequestIdentity(*ME, 3)) == {"a": DONE}
    assert index.is_below_floor(RequestIdentity(*ME, 2))


def test_a_stored_floor_is_written_again_only_if_it_rose() -> None:
    index = index_of(ended(1), ended(2), ended(2, element="b"))
    index.raise_floor(ME, 2)
    index.pruned(index.plan_pruning(index.prunable(NONE), NONE))
    index.raise_floor(ME, 3)
    pruning = index.plan_pruning([2], NONE)
    assert pruning.operations[1:] == [SetData(FloorZnode.path(*ME), b"3")]
    index.pruned(pruning)
    assert index.plan_pruning([3], NONE).operations == [Delete(OutcomeZnode.path(3))]


def test_a_floor_that_rises_while_a_lower_one_is_stored_is_stored_with_the_next_pruning() -> None:
    """Otherwise the next controller could execute a late copy of a finished request."""
    index = index_of(ended(1), ended(2))
    index.raise_floor(ME, 2)
    pruning = index.plan_pruning(index.prunable(NONE), NONE)
    index.raise_floor(ME, 3)  # while the multi is in flight
    index.pruned(pruning)
    assert index.plan_pruning(index.prunable(NONE), NONE).operations == [
        Delete(OutcomeZnode.path(2)),
        SetData(FloorZnode.path(*ME), b"3"),
    ]


def test_the_floor_of_a_vanished_incarnation_is_deleted_with_its_last_outcome() -> None:
    gone = frozenset({ME})
    index = index_of(ended(1), ended(2), ended(9, OTHER))
    index.raise_floor(ME, 2)
    index.pruned(index.plan_pruning([1], NONE))
    assert index.known_incarnations() == {ME, OTHER}
    floor = Delete(FloorZnode.path(*ME))
    assert floor not in index.plan_pruning([], gone).operations
    pruning = index.plan_pruning([2], gone)
    assert pruning.operations == [Delete(OutcomeZnode.path(2)), floor]
    index.pruned(pruning)
    assert (index.floors, index.stored_floors) == ({}, {})
    assert index.known_incarnations() == {OTHER}


def test_prunable_returns_the_oldest_commits_that_fit_in_one_multi() -> None:
    index = index_of(*(ended(n) for n in range(1, PRUNED_PER_MULTI_MAX + 100)))
    index.raise_floor(ME, 10_000)
    assert index.prunable(NONE) == list(range(1, PRUNED_PER_MULTI_MAX + 1))


def test_an_incarnation_is_gone_after_the_whole_grace_period() -> None:
    """If it registers again and then disappears again, a new grace period starts."""
    pruner = OutcomePruner(grace_ms=1000)
    incarnations = {ME, OTHER}
    assert pruner.gone(incarnations, {OTHER}, 10.0) == NONE
    assert pruner.gone(incarnations, {OTHER}, 11.0) == NONE
    assert pruner.gone(incarnations, {OTHER}, 11.1) == {ME}
    assert pruner.gone(incarnations, incarnations, 11.2) == NONE
    assert pruner.gone(incarnations, {OTHER}, 11.3) == NONE
