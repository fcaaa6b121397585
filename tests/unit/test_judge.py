"""Each property accepts what is right and catches its bug; verdicts keep their order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaos.history import History
from chaos.properties import PROPERTIES
from chaos.verdicts import Finding, Verdict, exit_code, judge, worst
from event_log.commits import CommitOperation
from tests.unit.judged_histories import (
    ALTER_CONFIGS,
    ANOTHER,
    CREATE_PARTITIONS,
    D1,
    D3,
    D5,
    DELETE_TOPICS,
    ELECTED,
    INCREMENTAL_ALTER_CONFIGS,
    ME,
    NONE,
    REQUEST_TIMED_OUT,
    STRANGER,
    TOPIC_EXISTS,
    UNKNOWN_TOPIC,
    W1,
    W2,
    check,
    create,
    created,
    history,
    multi,
    operation,
    outcomes,
    removed,
    told,
    violations,
)


def test_a_fenced_write_of_the_controller_is_accepted() -> None:
    """The election, registrations and start-up paths are no metadata writes."""
    registration = multi(2, create("/brokers/ids/1"), session=STRANGER)
    parents = multi(3, create("/brokers/topics"), session=STRANGER)
    finding = W2.check(history([ELECTED, registration, parents, created(4)], []))
    assert (finding.judged, finding.violations) == (1, ())


def test_a_write_with_the_fence_off_is_caught() -> None:
    """One missing check is enough, whoever is in office."""
    (violation,) = violations(W2, [multi(2, create("/brokers/topics/orders"))])
    assert violation == (
        "zxid 2: session 0xa wrote /brokers/topics/orders without checking /controller_epoch"
    )


def test_a_fenced_write_of_another_session_is_caught() -> None:
    """A zombie that read the new epoch is fenced and still wrong."""
    write = multi(2, check(), create("/brokers/topics/orders"), session=STRANGER)
    (violation,) = violations(W1, [write])
    assert "session 0xa holds epoch 1" in violation


def test_a_refused_write_is_no_write() -> None:
    """The fence held: that is what it is for."""
    refused = multi(2, create("/brokers/topics/orders"), session=STRANGER, failed=True)
    assert W2.check(history([ELECTED, refused], [])).judged == 0


def test_an_acknowledged_write_that_is_committed_is_accepted() -> None:
    """The outcome stands at the answer's zxid."""
    assert violations(D1, [created(2)], told(NONE, zxid=2)) == ()


def test_a_lost_acknowledgement_is_caught() -> None:
    """Answered NONE, and nothing in ZooKeeper's log."""
    (violation,) = violations(D1, [], told(NONE, zxid=2))
    assert violation == "r1: orders was acknowledged and never committed"


def test_an_answer_before_its_commit_is_caught() -> None:
    """The answer stands for an older transaction than the effect."""
    (violation,) = violations(D1, [created(5)], told(NONE, zxid=2))
    assert "before it was committed" in violation


def test_an_outcome_without_its_effect_is_caught() -> None:
    """An outcome znode alone is a claim of the controller, no topic."""
    marker = multi(2, check(), outcomes((ME, "orders", NONE)))
    (violation,) = violations(D1, [marker], told(NONE, zxid=2))
    assert "its topic was not made" in violation


@pytest.mark.parametrize(
    ("api_key", "element", "effect"),
    [
        (CREATE_PARTITIONS, "orders", operation("set", "/brokers/topics/orders")),
        (ALTER_CONFIGS, "2:orders", operation("set", "/config/topics/orders")),
        (INCREMENTAL_ALTER_CONFIGS, "4:", create("/config/brokers/<default>")),
        (INCREMENTAL_ALTER_CONFIGS, "4:01", create("/config/brokers/1")),
    ],
)
def test_an_acknowledged_change_stands_in_the_multi_of_its_outcome(
    api_key: int, element: str, effect: CommitOperation
) -> None:
    """The outcome without the effect is a claim; with it the acknowledgement is kept."""
    answers = told(NONE, zxid=2, api_key=api_key, name=element)
    outcome = outcomes((ME, element, NONE))
    assert violations(D1, [multi(2, check(), outcome, effect)], answers) == ()
    (violation,) = violations(D1, [multi(2, check(), outcome)], answers)
    assert f"{element} was acknowledged and {effect.path} was not written" in violation


def test_a_committed_refusal_does_not_back_an_acknowledgement() -> None:
    """The client was told yes, the outcome says no."""
    marker = multi(2, check(), outcomes((ME, "orders", TOPIC_EXISTS)))
    (violation,) = violations(D1, [marker], told(NONE, zxid=2))
    assert "never committed" in violation


def test_a_request_that_timed_out_promises_nothing() -> None:
    """REQUEST_TIMED_OUT may be followed by either end."""
    finding = D1.check(history([ELECTED], told(REQUEST_TIMED_OUT, zxid=1)))
    assert (finding.judged, finding.violations) == (0, ())


def test_two_requests_for_two_topics_are_once_each() -> None:
    """The same sequence of another broker is another request."""
    assert violations(D3, [created(2), created(3, "refunds", ANOTHER)]) == ()


def test_a_request_that_was_executed_twice_is_caught() -> None:
    """A resend that the new controller did not recognize."""
    (violation,) = violations(D3, [created(2), removed(3), created(4)])
    assert "committed at 2, 4" in violation


def test_a_topic_that_somebody_else_made_may_be_told_to_exist() -> None:
    """That is what TOPIC_ALREADY_EXISTS means."""
    made = created(2, by=ANOTHER)
    assert violations(D5, [made], told(TOPIC_EXISTS, zxid=2, image_zxid=2)) == ()


def test_a_ghost_is_caught() -> None:
    """TOPIC_ALREADY_EXISTS about the request's own success."""
    (violation,) = violations(D5, [created(2)], told(TOPIC_EXISTS, zxid=2, image_zxid=2))
    assert violation == "r1: orders was answered TOPIC_ALREADY_EXISTS about its own success"


def test_a_topic_that_was_deleted_before_may_not_be_told_to_exist() -> None:
    """The image was older than the transaction it stood for."""
    log = [created(2, by=ANOTHER), removed(3)]
    (violation,) = violations(D5, log, told(TOPIC_EXISTS, zxid=5, image_zxid=5))
    assert "did not exist" in violation


def test_the_creator_is_found_among_others_of_the_same_commit() -> None:
    """One multi may carry the winner, a loser and a grower of the same topic."""
    loser, grower = (3, "ghi", 4), (3, "ghi", 5)
    ends = [(ME, "orders", NONE), (loser, "orders", TOPIC_EXISTS), (grower, "orders", NONE)]
    made = multi(2, check(), outcomes(*ends), create("/brokers/topics/orders"))
    events = told(NONE, zxid=2) + told(TOPIC_EXISTS, zxid=2, identity=loser)
    assert violations(D5, [made], events) == ()
    assert violations(D1, [made], told(NONE, zxid=2)) == ()


def test_an_unknown_topic_must_have_been_unknown() -> None:
    """It existed throughout, and its deletion was refused."""
    answers = told(UNKNOWN_TOPIC, zxid=4, image_zxid=3, api_key=DELETE_TOPICS)
    (violation,) = violations(D5, [created(2, by=ANOTHER)], answers)
    assert "existed since zxid 2" in violation
    assert violations(D5, [created(2, by=ANOTHER), removed(3)], answers) == ()


def test_a_deletion_that_left_the_topic_is_caught() -> None:
    """NONE to DeleteTopics means gone, as of the zxid of the answer."""
    log = [created(2, by=ANOTHER), removed(6)]
    (violation,) = violations(D5, log, told(NONE, zxid=5, image_zxid=4, api_key=DELETE_TOPICS))
    assert "was still there" in violation
    assert violations(D5, log, told(NONE, zxid=6, image_zxid=4, api_key=DELETE_TOPICS)) == ()


def test_a_creation_that_was_resent_after_the_topic_had_gone_is_accepted() -> None:
    """The answer repeats the outcome of the first execution, on an image without the topic."""
    log = [created(2), removed(5)]
    assert violations(D5, log, told(NONE, zxid=7, image_zxid=7)) == ()
    assert violations(D1, log, told(NONE, zxid=7, image_zxid=7)) == ()


def test_a_refusal_that_was_resent_after_the_topic_had_gone_is_accepted() -> None:
    """Somebody else's topic existed when the committed outcome was decided."""
    loser = multi(3, check(), outcomes((ME, "orders", TOPIC_EXISTS)))
    log = [created(2, by=ANOTHER), loser, removed(4)]
    assert violations(D5, log, told(TOPIC_EXISTS, zxid=6, image_zxid=6)) == ()


def test_a_deletion_that_was_resent_is_not_about_the_next_topic_of_that_name() -> None:
    """What it deleted is gone; that the name lives again is somebody else's doing."""
    deletion, again = (1, "abc", 2), (2, "def", 10)
    accepted = multi(4, check(), outcomes((deletion, "orders", NONE)))
    log = [created(2, by=ANOTHER), accepted, removed(5), created(7, by=again)]
    answers = told(NONE, zxid=8, image_zxid=8, api_key=DELETE_TOPICS, identity=deletion)
    assert violations(D5, log, answers) == ()


def test_a_change_of_rights_alone_is_a_write() -> None:
    """setACL on a metadata znode, by anybody, without a check."""
    (violation,) = violations(W2, [multi(2, operation("set_acl", "/config/topics/a"))])
    assert "wrote /config/topics/a without checking" in violation


def test_a_property_that_breaks_is_crashed_and_not_failed() -> None:
    """A bug of the judge is no finding about the system."""

    def breaks(_: History) -> Finding:
        raise ZeroDivisionError("no")

    (judgement,) = judge(history([]), [replace(D1, check=breaks)])
    assert judgement.verdict is Verdict.CRASHED
    assert "ZeroDivisionError" in judgement.why
    assert exit_code(judgement.verdict) == 2


def test_verdicts_keep_their_order_and_exit_codes() -> None:
    """A failure outshines a hole, a hole an empty run; only PASS is 0."""
    holed = {"commits": ["a hole"]}
    empty = list(judge(history([]), PROPERTIES))
    holes = list(judge(history([], holes=holed), PROPERTIES))
    unfenced = multi(2, create("/brokers/topics/orders"))
    bad = list(judge(history([ELECTED, unfenced], holes=holed), PROPERTIES))
    assert worst(empty) is Verdict.NODATA
    assert worst(holes) is Verdict.UNKNOWN
    assert worst(bad) is Verdict.FAIL
    assert [exit_code(v) for v in Verdict] == [1, 2, 1, 2, 2, 0]


def test_what_seems_to_be_missing_may_be_in_a_hole() -> None:
    """An acknowledgement whose commit is not found accuses nobody while the log has a hole."""
    of_a_log = history([ELECTED], told(NONE, zxid=2), {"commits": ["a hole"]})
    (judgement,) = judge(of_a_log, [D1])
    assert judgement.verdict is Verdict.UNKNOWN
    assert len(judgement.violations) == 1
