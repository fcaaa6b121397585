"""Each property accepts what is right and catches its bug; verdicts keep their order."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
from chaos.verdicts import Finding, Property, Verdict, exit_code, judge, worst
from chaos.witness import LoggedOperation, Transaction

CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS = 19, 20, 37
ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS = 33, 44
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


@pytest.mark.parametrize(
    ("api_key", "element", "effect"),
    [
        (CREATE_PARTITIONS, "orders", LoggedOperation("set", "/brokers/topics/orders", b"", 1)),
        (ALTER_CONFIGS, "2:orders", LoggedOperation("set", "/config/topics/orders", b"", 1)),
        (INCREMENTAL_ALTER_CONFIGS, "4:", _create("/config/brokers/<default>")),
        (INCREMENTAL_ALTER_CONFIGS, "4:01", _create("/config/brokers/1")),
    ],
)
def test_an_acknowledged_change_stands_in_the_multi_of_its_outcome(
    api_key: int, element: str, effect: LoggedOperation
) -> None:
    """The outcome without the effect is a claim; with it the acknowledgement is kept."""
    told = _told(NONE, zxid=2, api_key=api_key, name=element)
    outcome = _outcomes(2, (ME, element, NONE))
    assert _violations(D1, [_multi(2, _check(), outcome, effect)], told) == ()
    (violation,) = _violations(D1, [_multi(2, _check(), outcome)], told)
    assert f"{element} was acknowledged and {effect.path} was not written" in violation


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


def test_a_creation_that_was_resent_after_the_topic_had_gone_is_accepted() -> None:
    """The answer repeats the outcome of the first execution, on an image without the topic."""
    log = [_created(2), _removed(5)]
    assert _violations(D5, log, _told(NONE, zxid=7, image_zxid=7)) == ()
    assert _violations(D1, log, _told(NONE, zxid=7, image_zxid=7)) == ()


def test_a_refusal_that_was_resent_after_the_topic_had_gone_is_accepted() -> None:
    """Somebody else's topic existed when the committed outcome was decided."""
    loser = _multi(3, _check(), _outcomes(3, (ME, "orders", TOPIC_EXISTS)))
    log = [_created(2, by=ANOTHER), loser, _removed(4)]
    assert _violations(D5, log, _told(TOPIC_EXISTS, zxid=6, image_zxid=6)) == ()


def test_a_deletion_that_was_resent_is_not_about_the_next_topic_of_that_name() -> None:
    """What it deleted is gone; that the name lives again is somebody else's doing."""
    deletion, again = (1, "abc", 2), (2, "def", 10)
    accepted = _multi(4, _check(), _outcomes(4, (deletion, "orders", NONE)))
    log = [_created(2, by=ANOTHER), accepted, _removed(5), _created(7, by=again)]
    told = _told(NONE, zxid=8, image_zxid=8, api_key=DELETE_TOPICS, identity=deletion)
    assert _violations(D5, log, told) == ()


def test_a_change_of_rights_alone_is_a_write() -> None:
    """setACL on a metadata znode, by anybody, without a check."""
    (violation,) = _violations(W2, [_multi(2, LoggedOperation("set_acl", "/config/topics/a"))])
    assert "wrote /config/topics/a without checking" in violation


def test_a_property_that_breaks_is_crashed_and_not_failed() -> None:
    """A bug of the judge is no finding about the system."""

    def breaks(history: History) -> Finding:
        raise ZeroDivisionError("no")

    (judgement,) = judge(History([], []), [replace(D1, check=breaks)])
    assert judgement.verdict is Verdict.CRASHED
    assert "ZeroDivisionError" in judgement.why
    assert exit_code(judgement.verdict) == 2


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


def _logged(folder: Path, *transactions: Transaction, chroot: str = "") -> None:
    """Write plain creates as ZooKeeper would, with a cluster.json that names the chroot."""
    data = struct.pack(">4siq", b"ZKLG", 2, 0)
    for each in transactions:
        (operation,) = each.operations
        path = operation.path.encode()
        record = struct.pack(">qiqqi", each.session, 0, each.zxid, 0, 1)
        record += struct.pack(">i", len(path)) + path + struct.pack(">iiBi", 0, 0, 0, 1)
        data += struct.pack(">qi", zlib.adler32(record), len(record)) + record + b"B"
    log = folder / "zookeeper" / "version-2" / "log.1"
    log.parent.mkdir(parents=True)
    log.write_bytes(data + bytes(64))
    document = {"zookeeper_connect": f"127.0.0.1:2181{chroot}"}
    (folder / "cluster.json").write_text(json.dumps(document), encoding="utf-8")


def test_another_tenant_of_the_same_zookeeper_is_not_judged(tmp_path: Path) -> None:
    """Only what lies below the chroot is the cluster's; /kafka2 does not lie below /kafka."""
    paths = ("/kafka", "/kafka2", "/kafka2/config/topics/a", "/kafka/config/topics/b")
    made = [_multi(zxid, _create(path)) for zxid, path in enumerate(paths, start=1)]
    _logged(_run_folder(tmp_path, [_line(0)]), *made, chroot="/kafka")
    finding = W2.check(read_history(tmp_path))
    assert finding.judged == 1
    assert "/config/topics/b" in finding.violations[0]


@pytest.mark.parametrize(
    ("zxids", "hole"),
    [
        ((1, 2, 4), "ZooKeeper's log jumps from zxid 2 to 4"),
        ((5, 6), "ZooKeeper's log begins at zxid 5"),
        ((1, 2, 0x100000002), "ZooKeeper's log jumps from zxid 2 to 4294967298"),
    ],
)
def test_a_log_with_missing_transactions_is_a_hole(
    tmp_path: Path, zxids: Sequence[int], hole: str
) -> None:
    """What was written in between cannot be known, so that absence proves nothing."""
    _logged(_run_folder(tmp_path, [_line(0)]), *(_multi(z, _create("/x")) for z in zxids))
    holes = read_history(tmp_path).holes
    assert len(holes) == 1
    assert hole in holes[0]


def test_a_new_epoch_of_an_ensemble_is_no_hole(tmp_path: Path) -> None:
    """A new leader counts from 1 again, below a higher epoch."""
    zxids = (0x100000001, 0x100000002, 0x200000001)
    _logged(_run_folder(tmp_path, [_line(0)]), *(_multi(z, _create("/x")) for z in zxids))
    assert read_history(tmp_path).holes == ()


def test_an_outcome_that_is_not_understood_is_not_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence and exit 2: neither green nor a finding."""
    _run_folder(tmp_path, [{"kind": "request_decided", "node": "1", "boot": "a", "seq": 0}])
    assert main([str(tmp_path)]) == 2
    assert "request_id" in capsys.readouterr().err


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
