"""DeleteTopics where recorded answers do not reach: names against ids, rights, resends."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from immutables import Map

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from cluster_model.image import MetadataImage
from cluster_model.records import (
    DeletionMarkerRecord,
    TopicRemovalRecord,
)
from controller.apis.base import (
    DONE,
    Decision,
    Outcome,
    RequestContext,
    WaitFor,
)
from controller.apis.delete_topics import DeleteTopics
from tests.unit.topic_decisions import (
    ID,
    config,
    context,
    image,
    only,
    outcomes,
    replayed,
    with_topic,
    without,
)


def by_name(*names: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=[DeleteTopicState(name) for name in names], timeout_ms=9)


def by_id(*ids: bytes) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=[DeleteTopicState(None, i) for i in ids], timeout_ms=9)


def deleted(
    request: DeleteTopicsRequest,
    before: MetadataImage,
    asks: RequestContext | None = None,
    settled: Mapping[str, Outcome] = Map(),
    api: DeleteTopics | None = None,
) -> tuple[Decision, list[tuple[int, str | None]]]:
    """Decide and answer; return the decision and (code, name) of each entry."""
    api, asks = api or DeleteTopics(config()), asks or context(6)
    decision = api.decide(asks, request, before, settled)
    after = replayed(before, decision)
    after = after.replay([TopicRemovalRecord(name) for name in after.deletions])
    answer = api.answer(asks, request, {**settled, **outcomes(decision)}, after, frozenset())
    return decision, [(r.error_code, r.name) for r in answer.responses]


def test_a_deletion_is_marked_and_waits_for_its_id_to_go() -> None:
    """By name and by id; the id is answered with the name, though the topic is gone by then."""
    for request in (by_name("t"), by_id(ID)):
        decision, results = deleted(request, with_topic("t"))
        assert only(decision).records == (DeletionMarkerRecord("t"),)
        assert decision.wait.what is WaitFor.DELETION
        assert list(decision.wait.topics.values()) == [ID]
        assert results == [(0, "t")]


def test_a_topic_asked_for_by_name_and_id_is_deleted_once() -> None:
    """Both entries succeed, and one marker is written."""
    request = DeleteTopicsRequest(topics=[DeleteTopicState("t"), DeleteTopicState(None, ID)])
    decision, results = deleted(request, with_topic("t"))
    assert results == [(0, "t"), (0, "t")]
    assert sum(len(decided.records) for decided in decision.elements) == 1


def test_of_a_topic_that_is_named_twice_the_first_entry_tells_what_became_of_it() -> None:
    """Kafka tells the result to one of them; the other keeps the NONE that it began with."""
    api, image = DeleteTopics(config()), with_topic("t")
    entries = [DeleteTopicState("t"), DeleteTopicState("none"), DeleteTopicState("t")]
    request = DeleteTopicsRequest(topics=[*entries, DeleteTopicState(None, ID)], timeout_ms=0)
    decision = api.decide(context(6), request, image, {})
    late = frozenset(decision.wait.topics)
    answer = api.answer(context(6), request, outcomes(decision), image, late)
    assert [(r.error_code, r.name) for r in answer.responses] == [
        (7, "t"),
        (3, "none"),
        (0, "t"),
        (0, "t"),
    ]


def test_a_topic_that_is_already_marked_succeeds_and_waits() -> None:
    """Nothing is written a second time."""
    marked = with_topic("t").replay([DeletionMarkerRecord("t")])
    decision, results = deleted(by_name("t"), marked)
    assert only(decision).records == ()
    assert list(decision.wait.topics.values()) == [ID]
    assert results == [(0, "t")]


def test_a_deletion_that_comes_again_is_not_told_that_the_topic_is_missing() -> None:
    """Settled entries keep their outcome; other entries of the same topic share it."""
    settled = {"t": Outcome(ErrorCode.NONE, None, ID)}
    both = DeleteTopicsRequest(topics=[DeleteTopicState("t"), DeleteTopicState(None, ID)])
    decision, results = deleted(both, image(), settled=settled)
    assert results == [(0, "t"), (0, "t")]
    assert all(not decided.records for decided in decision.elements)


@pytest.mark.parametrize(
    ("denied", "exists", "code", "name"),
    [
        ("DESCRIBE TOPIC", True, 100, None),
        ("DELETE TOPIC", True, 29, "t"),
        ("DESCRIBE TOPIC", False, 100, None),
    ],
)
def test_an_id_without_the_rights_hides_the_name(
    denied: str, exists: bool, code: int, name: str | None
) -> None:
    """Who may not know of a topic cannot tell its id from one that nobody has."""
    before = with_topic("t") if exists else image()
    _, results = deleted(by_id(ID), before, context(6, without(denied)))
    assert results == [(code, name)]


def test_a_name_without_the_right_is_answered_alike_whether_it_exists_or_not() -> None:
    """29 for both, and no marker."""
    decision, results = deleted(
        by_name("t", "missing"), with_topic("t"), context(6, without("DELETE TOPIC"))
    )
    assert results == [(29, "t"), (29, "missing")]
    assert all(not decided.records for decided in decision.elements)


@pytest.mark.parametrize(("version", "code"), [(1, 42), (3, 73), (6, 73)])
def test_a_broker_that_forbids_deletion_refuses_every_entry(version: int, code: int) -> None:
    """With the code of the version."""
    request = by_name("t") if version >= 6 else DeleteTopicsRequest(topic_names=["t"])
    api = DeleteTopics(config(delete_topic_enable="false"))
    decision, results = deleted(request, with_topic("t"), context(version), api=api)
    assert results == [(code, "t")]
    assert not only(decision).records


def test_one_entry_with_name_and_id_spoils_the_whole_request() -> None:
    """Kafka refuses all of it, and nothing is deleted."""
    request = DeleteTopicsRequest(topics=[DeleteTopicState("t", ID), DeleteTopicState("u")])
    decision, results = deleted(request, with_topic("t"))
    assert results == [(42, "t"), (42, "u")]
    assert all(not decided.records for decided in decision.elements)


def test_a_topic_without_any_leader_can_be_deleted() -> None:
    """Kafka does not find it in its cache and leaves it for ever; we do."""
    decision, results = deleted(by_name("t"), with_topic("t", ((8, 9),)))
    assert results == [(0, "t")]
    assert only(decision).records


def test_a_marker_that_somebody_else_wrote_is_as_good() -> None:
    """The deletion is under way: the asker waits for it."""
    assert DeleteTopics(config()).conflict("t") == DONE
