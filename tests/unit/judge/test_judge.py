"""Each property accepts correct histories and finds its violation."""

from __future__ import annotations

from typing import NoReturn

import pytest

from event_log.commits import CommitOperation
from judge.history import (
    ALTER_CONFIGS,
    CREATE_PARTITIONS,
    DELETE_TOPICS,
    INCREMENTAL_ALTER_CONFIGS,
    NONE,
    History,
)
from judge.properties import single_writer
from judge.verdicts import Verdict, exit_code, judge, worst
from tests.unit.judge.judged_histories import (
    ANOTHER,
    ELECTED,
    ME,
    OTHER_SESSION,
    REQUEST_TIMED_OUT,
    TOPIC_EXISTS,
    UNKNOWN_TOPIC,
    check,
    create,
    created,
    history,
    multi,
    operation,
    outcomes,
    removed,
    responded,
    rows_of,
    violations,
)


def test_fence_is_not_required_of_elections_registrations_and_start_up() -> None:
    registration = multi(2, create("/brokers/ids/1"), session=OTHER_SESSION)
    parents = multi(3, create("/brokers/topics"), session=OTHER_SESSION)
    assert rows_of("W2", [registration, parents, created(4)]) == [None]


def test_fenced_write_of_another_session_is_a_violation() -> None:
    """The session belongs to a former controller that has read the new epoch."""
    write = multi(2, check(), create("/brokers/topics/orders"), session=OTHER_SESSION)
    (violation,) = violations("W1", [write])
    assert violation == (
        "zxid 2: session 0xb wrote /brokers/topics/orders, but session 0xa held controller epoch 1"
    )


def test_failed_multi_is_not_a_write() -> None:
    failed = multi(2, create("/brokers/topics/orders"), session=OTHER_SESSION, failed=True)
    assert rows_of("W2", [failed]) == []


def test_acknowledged_write_with_its_commit_is_accepted() -> None:
    assert violations("D1", [created(2)], responded(NONE, zxid=2)) == ()


@pytest.mark.parametrize(
    ("api_key", "element", "effect"),
    [
        (CREATE_PARTITIONS, "orders", operation("set", "/brokers/topics/orders")),
        (ALTER_CONFIGS, "2:orders", operation("set", "/config/topics/orders")),
        (INCREMENTAL_ALTER_CONFIGS, "4:", create("/config/brokers/<default>")),
        (INCREMENTAL_ALTER_CONFIGS, "4:01", create("/config/brokers/1")),
    ],
)
def test_acknowledged_change_is_in_the_multi_of_its_outcome(
    api_key: int, element: str, effect: CommitOperation
) -> None:
    events = responded(NONE, zxid=2, api_key=api_key, name=element)
    outcome = outcomes((ME, element, NONE))
    assert violations("D1", [multi(2, check(), outcome, effect)], events) == ()
    (violation,) = violations("D1", [multi(2, check(), outcome)], events)
    assert f"{element} was acknowledged, but its commit did not write its znode" in violation


def test_acknowledged_request_with_a_committed_rejection_is_a_violation() -> None:
    marker = multi(2, check(), outcomes((ME, "orders", TOPIC_EXISTS)))
    (violation,) = violations("D1", [marker], responded(NONE, zxid=2))
    assert "never committed" in violation


def test_timed_out_request_is_not_acknowledged() -> None:
    events = responded(REQUEST_TIMED_OUT, zxid=1)
    assert rows_of("D1", [], events) == []


def test_same_sequence_of_another_broker_is_another_request() -> None:
    assert violations("D3", [created(2), created(3, "refunds", ANOTHER)]) == ()


def test_request_executed_again_after_a_deletion_is_a_violation() -> None:
    (violation,) = violations("D3", [created(2), removed(3), created(4)])
    assert violation == "r1: orders was committed more than once, at zxids 2, 4"


def test_topic_exists_error_is_accepted_for_a_topic_of_another_request() -> None:
    events = responded(TOPIC_EXISTS, zxid=2, image_zxid=2)
    assert violations("D5", [created(2, by=ANOTHER)], events) == ()


def test_topic_exists_error_is_a_violation_after_a_deletion() -> None:
    """The decision used an image of zxid 5; the topic had been deleted at zxid 3."""
    log = [created(2, by=ANOTHER), removed(3)]
    (violation,) = violations("D5", log, responded(TOPIC_EXISTS, zxid=5, image_zxid=5))
    assert "did not exist" in violation


def test_creator_is_found_among_other_requests_of_the_same_commit() -> None:
    """One multi may contain a creation, a rejected creation and new partitions of one topic."""
    rejected, grower = (3, "ghi", 4), (3, "ghi", 5)
    ends = [(ME, "orders", NONE), (rejected, "orders", TOPIC_EXISTS), (grower, "orders", NONE)]
    created = multi(2, check(), outcomes(*ends), create("/brokers/topics/orders"))
    events = responded(NONE, zxid=2) + responded(TOPIC_EXISTS, zxid=2, identity=rejected)
    assert violations("D5", [created], events) == ()
    assert violations("D1", [created], responded(NONE, zxid=2)) == ()


def test_unknown_topic_error_is_a_violation_if_the_topic_existed_throughout() -> None:
    events = responded(UNKNOWN_TOPIC, zxid=4, image_zxid=3, api_key=DELETE_TOPICS)
    (violation,) = violations("D5", [created(2, by=ANOTHER)], events)
    assert "existed since zxid 2" in violation
    assert violations("D5", [created(2, by=ANOTHER), removed(3)], events) == ()


def test_acknowledged_deletion_removes_the_topic_before_its_response() -> None:
    log = [created(2, by=ANOTHER), removed(6)]
    early = responded(NONE, zxid=5, image_zxid=4, api_key=DELETE_TOPICS)
    (violation,) = violations("D5", log, early)
    assert "still existed" in violation
    late = responded(NONE, zxid=6, image_zxid=4, api_key=DELETE_TOPICS)
    assert violations("D5", log, late) == ()


def test_resent_creation_repeats_its_outcome_after_the_topic_was_deleted() -> None:
    log = [created(2), removed(5)]
    assert violations("D5", log, responded(NONE, zxid=7, image_zxid=7)) == ()
    assert violations("D1", log, responded(NONE, zxid=7, image_zxid=7)) == ()


def test_resent_rejection_repeats_its_outcome_after_the_topic_was_deleted() -> None:
    """When the rejection was decided, the topic existed, because another request had created it.

    Our controller records no rejections, but the judge accepts histories that have them.
    """
    rejected = multi(3, check(), outcomes((ME, "orders", TOPIC_EXISTS)))
    log = [created(2, by=ANOTHER), rejected, removed(4)]
    assert violations("D5", log, responded(TOPIC_EXISTS, zxid=6, image_zxid=6)) == ()


def test_resent_deletion_does_not_apply_to_a_recreated_topic() -> None:
    deletion, again = (1, "abc", 2), (2, "def", 10)
    accepted = multi(4, check(), outcomes((deletion, "orders", NONE)))
    log = [created(2, by=ANOTHER), accepted, removed(5), created(7, by=again)]
    events = responded(NONE, zxid=8, image_zxid=8, api_key=DELETE_TOPICS, identity=deletion)
    assert violations("D5", log, events) == ()


def test_set_acl_is_a_write() -> None:
    (violation,) = violations("W2", [multi(2, operation("set_acl", "/config/topics/a"))])
    assert "wrote /config/topics/a without checking" in violation


def test_crashed_check_is_not_a_failed_property() -> None:
    class Crashes:
        SPEC, INPUTS, SQL = single_writer.SPEC, single_writer.INPUTS, single_writer.SQL

        def check(self, _: History) -> NoReturn:
            raise ZeroDivisionError("no")

    ((row, _),) = judge(history([]), [Crashes()])
    assert row.verdict is Verdict.CRASHED
    assert "ZeroDivisionError" in row.why
    assert exit_code(row.verdict) == 3


def test_worst_verdict_decides() -> None:
    gaps = {"commits": ["a gap"]}
    unfenced = multi(2, create("/brokers/topics/orders"))
    for of, expected in (
        (history([]), Verdict.NODATA),
        (history([], gaps=gaps), Verdict.UNKNOWN),
        (history([ELECTED, unfenced], gaps=gaps), Verdict.FAIL),
    ):
        assert worst(judgement.row for judgement in judge(of)) is expected
    assert [exit_code(verdict) for verdict in Verdict] == [1, 3, 1, 3, 3, 0]
    assert exit_code(Verdict.PASS, Verdict.UNKNOWN) == 3
    assert exit_code() == 3
