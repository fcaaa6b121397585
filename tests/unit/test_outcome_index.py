"""Outcomes: written so that the next controller knows them, forgotten when nobody can ask."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.kafka_wire.errors import ErrorCode
from cluster_model.znode_operations import Create, Delete, SetData
from cluster_model.znodes import FloorZnode, OutcomeZnode, ZnodeContentError
from controller.apis.base import DONE, Outcome
from controller.pruning import Pruning
from controller.store.outcomes import (
    PRUNED_PER_MULTI_MAX,
    OutcomeIndex,
    RequestOutcomes,
    decode_outcomes,
    encode_outcomes,
)
from envelope.messages import RequestIdentity

PATH = OutcomeZnode.path(1)
ME, OTHER = (1, "abc"), (2, "def")
NOBODY: frozenset[tuple[int, str]] = frozenset()
REFUSED = Outcome(ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'a' already exists.")


def ended(sequence: int, of: tuple[int, str] = ME, element: str = "a") -> RequestOutcomes:
    return RequestOutcomes(RequestIdentity(*of, sequence), "r", {element: DONE})


def index(*commits: RequestOutcomes) -> OutcomeIndex:
    """One commit for each, numbered from 1."""
    made = OutcomeIndex()
    for number, outcomes in enumerate(commits, start=1):
        made.add(number, 100 + number, [outcomes])
    return made


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
            st.builds(RequestIdentity, st.integers(0, 2**31 - 1), st.text(), st.integers(0, 2**53)),
            st.text(),
            ELEMENTS,
        ),
        max_size=4,
    )
)
def test_outcomes_come_back_as_they_were_written(outcomes: list[RequestOutcomes]) -> None:
    """Codes, texts, topic ids and their elements, of every request of a multi."""
    assert decode_outcomes(PATH, encode_outcomes(5, outcomes)) == outcomes


def test_outcomes_are_written_as_the_judge_reads_them() -> None:
    """The transaction log's third witness depends on these keys."""
    outcome = RequestOutcomes(RequestIdentity(1, "abc", 9), "r", {"a": REFUSED})
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
def test_content_of_another_kind_is_refused(data: bytes | None) -> None:
    """One error, which loading knows."""
    with pytest.raises(ZnodeContentError):
        decode_outcomes(PATH, data)


def test_elements_of_a_request_that_took_several_multis_are_found_together() -> None:
    """Each multi settles some; the last one's zxid is the request's."""
    made = index(ended(7, element="a"), ended(7, element="b"))
    identity = RequestIdentity(*ME, 7)
    assert made.lookup(identity) == {"a": DONE, "b": DONE}
    assert made.zxids[identity] == 102
    assert made.lookup(RequestIdentity(*OTHER, 7)) == {}
    assert made.lookup(RequestIdentity(1, "another life", 7)) == {}


def test_what_lies_below_its_brokers_floor_is_refused_and_what_stands_on_it_is_not() -> None:
    """A floor never sinks, and is one incarnation's alone."""
    made = OutcomeIndex()
    made.raise_floor(ME, 5)
    made.raise_floor(ME, 3)
    below = [made.is_below_floor(RequestIdentity(*ME, n)) for n in (4, 5)]
    assert below == [True, False]
    assert not made.is_below_floor(RequestIdentity(*OTHER, 4))


def test_an_outcome_stays_as_long_as_one_of_its_requests_may_be_asked_again() -> None:
    """A multi of two brokers' requests goes when both have finished, or are gone."""
    made = OutcomeIndex()
    made.add(1, 101, [ended(4), ended(9, OTHER)])
    assert made.prunable(NOBODY) == []
    made.raise_floor(ME, 5)
    assert made.prunable(NOBODY) == []
    assert made.prunable(frozenset({OTHER})) == [1]
    made.raise_floor(OTHER, 10)
    assert made.prunable(NOBODY) == [1]


def test_pruning_stores_the_floor_in_the_multi_that_removes_the_outcomes() -> None:
    """Or the next controller would execute a late copy of a forgotten request."""
    made = index(ended(1), ended(2), ended(3))
    made.raise_floor(ME, 3)
    commits = made.prunable(NOBODY)
    assert made.plan_pruning(commits, NOBODY) == [
        Delete(OutcomeZnode.path(1)),
        Delete(OutcomeZnode.path(2)),
        Create(FloorZnode.path(*ME), b"3"),
    ]
    made.pruned(commits, NOBODY)
    assert made.lookup(RequestIdentity(*ME, 1)) == {}
    assert made.lookup(RequestIdentity(*ME, 3)) == {"a": DONE}
    assert made.is_below_floor(RequestIdentity(*ME, 2))


def test_a_stored_floor_is_set_when_it_has_risen() -> None:
    """The first one is created, later ones are set, an equal one is left alone."""
    made = index(ended(1), ended(2), ended(2, element="b"))
    made.raise_floor(ME, 2)
    made.pruned(made.prunable(NOBODY), NOBODY)
    made.raise_floor(ME, 3)
    assert made.plan_pruning([2], NOBODY)[1:] == [SetData(FloorZnode.path(*ME), b"3")]
    made.pruned([2], NOBODY)
    assert made.plan_pruning([3], NOBODY) == [Delete(OutcomeZnode.path(3))]


def test_the_floor_of_a_vanished_incarnation_goes_with_its_last_outcome() -> None:
    """Not before: an outcome without its floor could be asked for."""
    gone = frozenset({ME})
    made = index(ended(1), ended(2), ended(9, OTHER))
    made.raise_floor(ME, 2)
    made.pruned([1], NOBODY)
    assert made.known_incarnations() == {ME, OTHER}
    floor = Delete(FloorZnode.path(*ME))
    assert floor not in made.plan_pruning([], gone)
    assert made.plan_pruning([2], gone) == [Delete(OutcomeZnode.path(2)), floor]
    made.pruned([2], gone)
    assert (made.floors, made.stored_floors) == ({}, {})
    assert made.known_incarnations() == {OTHER}


def test_a_pruning_multi_stays_small_and_takes_the_oldest_first() -> None:
    """The rest waits for the next one."""
    made = index(*(ended(n) for n in range(1, PRUNED_PER_MULTI_MAX + 100)))
    made.raise_floor(ME, 10_000)
    assert made.prunable(NOBODY) == list(range(1, PRUNED_PER_MULTI_MAX + 1))


def test_an_incarnation_is_gone_only_after_the_whole_grace_period() -> None:
    """One that registers again in between begins anew."""
    pruning = Pruning(grace_ms=1000)
    known = {ME, OTHER}
    assert pruning.gone(known, {OTHER}, 10.0) == NOBODY
    assert pruning.gone(known, {OTHER}, 11.0) == NOBODY
    assert pruning.gone(known, {OTHER}, 11.1) == {ME}
    assert pruning.gone(known, known, 11.2) == NOBODY
    assert pruning.gone(known, {OTHER}, 11.3) == NOBODY
