"""Each property accepts what is right and catches its bug; verdicts keep their order."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from chaos.history import EvidenceError, History, read_history
from chaos.judge import main
from chaos.properties import (
    PROPERTIES,
    acknowledged_is_kept,
    answer_tells_the_truth,
    at_most_once,
    every_write_is_fenced,
)
from chaos.verdicts import Property, Verdict, exit_code, judge, worst
from chaos.witness import LoggedOperation, Transaction

CREATE_TOPICS, DELETE_TOPICS = 19, 20
NONE, UNKNOWN_TOPIC, REQUEST_TIMED_OUT, TOPIC_EXISTS = 0, 3, 7, 36
CONTROLLER, STRANGER = 0xA, 0xB
ME, ANOTHER = (1, "abc", 1), (2, "def", 9)
Identity = tuple[int, str, int]


def _multi(zxid: int, *operations: LoggedOperation, session: int = CONTROLLER) -> Transaction:
    return Transaction(zxid, session, zxid, 0, "multi", operations)


def _create(path: str, data: bytes = b"") -> LoggedOperation:
    return LoggedOperation("create", path, data, 0)


def _check(version: int = 1) -> LoggedOperation:
    return LoggedOperation("check", "/controller_epoch", None, version)


def _outcomes(number: int, *ends: tuple[Identity, str, int]) -> LoggedOperation:
    entries = [
        {
            "id": list(identity),
            "request": f"r{identity[2]}",
            "elements": [[name, error, None, None]],
        }
        for identity, name, error in ends
    ]
    data = json.dumps({"epoch": 1, "outcomes": entries}).encode()
    return _create(f"/bridgehead/outcomes/{number:010}", data)


ELECTED = _multi(1, _create("/controller"), LoggedOperation("set", "/controller_epoch", b"1", 1))


def _created(zxid: int, name: str = "orders", by: Identity = ME) -> Transaction:
    effect = _create(f"/brokers/topics/{name}")
    return _multi(zxid, _check(), _outcomes(zxid, (by, name, NONE)), effect)


def _removed(zxid: int, name: str = "orders") -> Transaction:
    return _multi(zxid, _check(), LoggedOperation("delete", f"/brokers/topics/{name}"))


def _told(
    error: int,
    *,
    zxid: int,
    image_zxid: int = 1,
    api_key: int = CREATE_TOPICS,
    identity: Identity = ME,
    name: str = "orders",
) -> list[Mapping[str, Any]]:
    request_id = f"r{identity[2]}"
    decided = {
        "kind": "request_decided",
        "request_id": request_id,
        "identity": list(identity),
        "api_key": api_key,
        "image_zxid": image_zxid,
        "zxid": zxid,
        "elements": [[name, error]],
        "validate_only": False,
    }
    answered = {"kind": "answered", "request_id": request_id, "error": None, "closed": False}
    return [decided, {**answered, "zxid": zxid}]


def _violations(
    module: Property, transactions: Sequence[Transaction], events: Sequence[Mapping[str, Any]] = ()
) -> tuple[str, ...]:
    return module.check(History([ELECTED, *transactions], events)).violations


W2, D1 = every_write_is_fenced.PROPERTY, acknowledged_is_kept.PROPERTY
D3, D5 = at_most_once.PROPERTY, answer_tells_the_truth.PROPERTY


def test_a_fenced_write_of_the_controller_is_accepted() -> None:
    """The election, registrations and start-up paths are no metadata writes."""
    registration = _multi(2, _create("/brokers/ids/1"), session=STRANGER)
    parents = _multi(3, _create("/brokers/topics"), session=STRANGER)
    finding = W2.check(History([ELECTED, registration, parents, _created(4)], []))
    assert (finding.judged, finding.violations) == (1, ())


def test_a_write_with_the_fence_off_is_caught() -> None:
    """One missing check is enough, whoever is in office."""
    (violation,) = _violations(W2, [_multi(2, _create("/brokers/topics/orders"))])
    assert violation == (
        "zxid 2, session 0xa wrote /brokers/topics/orders without checking /controller_epoch"
    )


def test_a_fenced_write_of_another_session_is_caught() -> None:
    """A zombie that read the new epoch is fenced and still wrong."""
    write = _multi(2, _check(), _create("/brokers/topics/orders"), session=STRANGER)
    (violation,) = _violations(W2, [write])
    assert "session 0xa holds the epoch" in violation


def test_a_refused_write_is_no_write() -> None:
    """The fence held: that is what it is for."""
    refused = Transaction(2, STRANGER, 2, 0, "multi", (LoggedOperation("error"),), failed=True)
    assert W2.check(History([ELECTED, refused], [])).judged == 0


def test_an_acknowledged_write_that_is_committed_is_accepted() -> None:
    """The outcome stands at the answer's zxid."""
    assert _violations(D1, [_created(2)], _told(NONE, zxid=2)) == ()


def test_a_lost_acknowledgement_is_caught() -> None:
    """Answered NONE, and nothing in ZooKeeper's log."""
    (violation,) = _violations(D1, [], _told(NONE, zxid=2))
    assert violation == "r1: orders was acknowledged and never committed"


def test_an_answer_before_its_commit_is_caught() -> None:
    """The answer stands for an older transaction than the effect."""
    (violation,) = _violations(D1, [_created(5)], _told(NONE, zxid=2))
    assert "before it was committed" in violation


def test_an_outcome_without_its_effect_is_caught() -> None:
    """An outcome znode alone is a claim of the controller, no topic."""
    marker = _multi(2, _check(), _outcomes(2, (ME, "orders", NONE)))
    (violation,) = _violations(D1, [marker], _told(NONE, zxid=2))
    assert "is not there" in violation


def test_a_committed_refusal_does_not_back_an_acknowledgement() -> None:
    """The client was told yes, the outcome says no."""
    marker = _multi(2, _check(), _outcomes(2, (ME, "orders", TOPIC_EXISTS)))
    (violation,) = _violations(D1, [marker], _told(NONE, zxid=2))
    assert "never committed" in violation


def test_a_request_that_timed_out_promises_nothing() -> None:
    """REQUEST_TIMED_OUT may be followed by either end."""
    finding = D1.check(History([ELECTED], _told(REQUEST_TIMED_OUT, zxid=1)))
    assert (finding.judged, finding.violations) == (0, ())


def test_two_requests_for_two_topics_are_once_each() -> None:
    """The same sequence of another broker is another request."""
    assert _violations(D3, [_created(2), _created(3, "refunds", ANOTHER)]) == ()


def test_a_request_that_was_executed_twice_is_caught() -> None:
    """A resend that the new controller did not recognize."""
    (violation,) = _violations(D3, [_created(2), _removed(3), _created(4)])
    assert "committed at 2, 4" in violation


def test_a_topic_that_somebody_else_made_may_be_told_to_exist() -> None:
    """That is what TOPIC_ALREADY_EXISTS means."""
    made = _created(2, by=ANOTHER)
    assert _violations(D5, [made], _told(TOPIC_EXISTS, zxid=2, image_zxid=2)) == ()


def test_a_ghost_is_caught() -> None:
    """TOPIC_ALREADY_EXISTS about the request's own success."""
    (violation,) = _violations(D5, [_created(2)], _told(TOPIC_EXISTS, zxid=2, image_zxid=2))
    assert violation == "r1: orders was answered TOPIC_ALREADY_EXISTS about its own success"


def test_a_topic_that_was_deleted_before_may_not_be_told_to_exist() -> None:
    """The image was older than the transaction it stood for."""
    log = [_created(2, by=ANOTHER), _removed(3)]
    (violation,) = _violations(D5, log, _told(TOPIC_EXISTS, zxid=5, image_zxid=5))
    assert "did not exist" in violation


def test_the_creator_is_found_among_others_of_the_same_commit() -> None:
    """One multi may carry the winner, a loser and a grower of the same topic."""
    loser, grower = (3, "ghi", 4), (3, "ghi", 5)
    ends = [(ME, "orders", NONE), (loser, "orders", TOPIC_EXISTS), (grower, "orders", NONE)]
    made = _multi(2, _check(), _outcomes(2, *ends), _create("/brokers/topics/orders"))
    events = _told(NONE, zxid=2) + _told(TOPIC_EXISTS, zxid=2, identity=loser)
    assert _violations(D5, [made], events) == ()
    assert _violations(D1, [made], _told(NONE, zxid=2)) == ()


def test_an_unknown_topic_must_have_been_unknown() -> None:
    """It existed throughout, and its deletion was refused."""
    told = _told(UNKNOWN_TOPIC, zxid=4, image_zxid=3, api_key=DELETE_TOPICS)
    (violation,) = _violations(D5, [_created(2, by=ANOTHER)], told)
    assert "existed since zxid 2" in violation
    assert _violations(D5, [_created(2, by=ANOTHER), _removed(3)], told) == ()


def test_a_deletion_that_left_the_topic_is_caught() -> None:
    """NONE to DeleteTopics means gone, as of the zxid of the answer."""
    log = [_created(2, by=ANOTHER), _removed(6)]
    (violation,) = _violations(D5, log, _told(NONE, zxid=5, image_zxid=4, api_key=DELETE_TOPICS))
    assert "was still there" in violation
    assert _violations(D5, log, _told(NONE, zxid=6, image_zxid=4, api_key=DELETE_TOPICS)) == ()


def test_verdicts_keep_their_order_and_exit_codes() -> None:
    """A failure outshines a hole, a hole an empty run; only PASS is 0."""
    empty = list(judge(History([], []), PROPERTIES))
    holes = list(judge(History([], [], ("a hole",)), PROPERTIES))
    bad = list(judge(History([ELECTED], _told(NONE, zxid=2), ("a hole",)), PROPERTIES))
    assert worst(empty) is Verdict.NODATA
    assert worst(holes) is Verdict.UNKNOWN
    assert worst(bad) is Verdict.FAIL
    assert [exit_code(v) for v in Verdict] == [1, 2, 1, 2, 2, 0]


def _run_folder(folder: Path, lines: Sequence[Mapping[str, Any]], torn: str = "") -> Path:
    events = folder / "nodes" / "1" / "events"
    events.mkdir(parents=True)
    text = "".join(json.dumps(line) + "\n" for line in lines) + torn
    (events / "events-abc-0000.jsonl").write_text(text, encoding="utf-8")
    return folder


def _line(seq: int) -> dict[str, Any]:
    return {"kind": "stopped", "node": "1", "boot": "abc", "seq": seq, "reason": "asked"}


def test_a_missing_line_is_a_hole_and_a_torn_one_is_counted(tmp_path: Path) -> None:
    """`seq` is dense in a boot; the last line may be cut off by a kill."""
    history = read_history(_run_folder(tmp_path, [_line(0), _line(2)], '{"kind":"st'))
    assert history.holes[0] == "node 1 boot abc: 1 to 2 missing"
    assert history.torn_lines == 1
    assert len(history.events) == 2


def test_a_relayed_answer_without_its_decision_is_a_hole(tmp_path: Path) -> None:
    """The controller's evidence is gone, and with it what the client was told."""
    answered = {"kind": "answered", "request_id": "r1", "error": None, "closed": False, "zxid": 3}
    relayed = {"kind": "forward_answered", "request_id": "r1", "error": 0}
    lines = [_line(0) | relayed, _line(1) | answered]
    holes = read_history(_run_folder(tmp_path, lines)).holes
    assert "the decision behind the answer to r1 is missing" in holes


def test_the_command_says_no_data_and_exits_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that proves nothing is not green."""
    with pytest.raises(EvidenceError, match="holds no events"):
        read_history(tmp_path)
    assert main([str(tmp_path)]) == 2
    assert "holds no events" in capsys.readouterr().err


def test_the_command_judges_a_real_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A real server's log, and the answer that one node's events tell of."""
    log = tmp_path / "zookeeper" / "version-2" / "log.1"
    log.parent.mkdir(parents=True)
    recorded = Path(__file__).parents[1] / "data" / "zookeeper_transactions.bin"
    log.write_bytes(recorded.read_bytes())
    made = next(iter(read_history(_run_folder(tmp_path, [_line(0)])).outcomes))
    told = _told(NONE, zxid=made.zxid, identity=made.identity)
    events = tmp_path / "nodes" / "1" / "events" / "events-abc-0000.jsonl"
    lines = [_line(number) | dict(event) for number, event in enumerate(told)]
    events.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert main([str(tmp_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {each["verdict"] for each in document["properties"]} == {"PASS"}
