"""Runs are found, sealed, read and judged; logs are merged; every line is accounted for.

A gap is evidence that is known to be missing.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from cluster_model.direct_writes import DIRECT_PARENT
from cluster_model.znodes.acls import ACL_PATHS
from cluster_model.znodes.layout import BRIDGEHEAD_PATHS, START_UP_PATHS
from cluster_model.znodes.tokens import TOKEN_PATHS
from event_log.commits import START_UP
from event_log.evidence import MANIFEST, RunDescription
from judge.__main__ import main
from judge.evidence.__main__ import main as evidence_main
from judge.evidence.commit_lines import commit_line
from judge.evidence.gaps import out_of_reach
from judge.evidence.kafka_logs import gather_kafka
from judge.evidence.lines import parse_object
from judge.evidence.merge import merge
from judge.evidence.reading import read_sealed
from judge.evidence.run_files import EvidenceError
from judge.evidence.run_lookup import find_runs, read_run
from judge.evidence.sealing import without_tail
from judge.history import History
from judge.seals import Seal
from judge.transaction_log import LoggedOperation, Transaction
from judge.verdicts import Verdict, judge
from tests import golden_histories

RECORDED = Path(__file__).parents[2] / "data" / "zookeeper_transactions.bin"


def _log(zxids: Sequence[int], paths: Sequence[str] = ()) -> bytes:
    """Return a transaction log with one create for each zxid."""
    data = struct.pack(">4siq", b"ZKLG", 2, 0)
    for zxid, name in zip(zxids, paths or ["/x"] * len(zxids), strict=True):
        path = name.encode()
        record = struct.pack(">qiqqi", 0xA, 0, zxid, 0, 1)
        record += struct.pack(">i", len(path)) + path + struct.pack(">iiBi", 0, 0, 0, 1)
        data += struct.pack(">qi", zlib.adler32(record), len(record)) + record + b"B"
    return data + bytes(4096)


def _run(folder: Path, *, logs: Sequence[bytes] = (), **fields: Any) -> Path:
    """Write a folder with one unsealed run: the events of one node and ZooKeeper's logs."""
    run = folder / "evidence" / "run=r"
    members = [folder / "zookeeper" / str(number) for number in range(len(logs))]
    for member, log in zip(members, logs, strict=True):
        (member / "version-2").mkdir(parents=True)
        (member / "version-2" / "log.1").write_bytes(log)
    (run / "node=1").mkdir(parents=True)
    event = {"run_id": "r", "node": "1", "boot": "a", "host_boot_id": "h", "schema_version": 1}
    line = {**event, "kind": "stopped", "seq": 0, "mono_ns": 1, "wall_ms": 1, "reason": "asked"}
    (run / "node=1" / "events-a-0000.jsonl").write_text(json.dumps(line) + "\n")
    described = RunDescription(
        run_id="r", log_folders=[str(member) for member in members] or None, **fields
    )
    (run / "run.json").write_text(json.dumps(asdict(described)))
    (run / "zookeeper").mkdir()
    (run / "zookeeper" / "first.jsonl").touch()
    (run / "zookeeper" / "dumps.json").write_text('{"zookeeper/first.jsonl": 0}')
    return folder


def test_runs_of_a_cluster_are_found_oldest_first(tmp_path: Path) -> None:
    """Each run can also be named by its own folder."""
    first = _run(tmp_path, started_ms=1) / "evidence" / "run=r"
    second = tmp_path / "evidence" / "run=a"
    second.mkdir()
    (second / "run.json").write_text(json.dumps(asdict(RunDescription(run_id="a", started_ms=2))))
    assert find_runs(tmp_path) == [first, second]
    assert find_runs(first) == [first]
    with pytest.raises(EvidenceError, match="has no run"):
        find_runs(first / "node=1")


def test_manifest_names_every_file(tmp_path: Path) -> None:
    """Logs are copied without their preallocated tails, and decoded."""
    _run(tmp_path, logs=[_log([1, 2, 3])])
    assert evidence_main(["seal", str(tmp_path)]) == 0
    (run,) = find_runs(tmp_path)
    manifest = json.loads((run / MANIFEST).read_text())
    assert {file["path"] for file in manifest["files"]} == {
        *("run.json", "node=1/events-a-0000.jsonl", "zookeeper/commits.jsonl"),
        *("zookeeper/dumps.json", "zookeeper/first.jsonl", "zookeeper/member=1/log.1"),
    }
    assert [commit.zxid for commit in read_sealed(run).commits] == [1, 2, 3]
    assert (run / "zookeeper" / "member=1" / "log.1").stat().st_size < 300


def test_sealed_run_can_be_sealed_again_without_its_cluster(tmp_path: Path) -> None:
    _run(tmp_path, logs=[_log([1, 2, 3])])
    assert evidence_main(["seal", str(tmp_path)]) == 0
    (run,) = find_runs(tmp_path)
    before = read_sealed(run).commits
    (tmp_path / "zookeeper" / "0" / "version-2" / "log.1").unlink()
    assert evidence_main(["seal", str(run)]) == 0
    assert read_sealed(run).commits == before


def test_reading_an_unsealed_run_does_not_change_it(tmp_path: Path) -> None:
    _run(tmp_path, logs=[_log([1])])
    evidence = read_run(tmp_path)
    assert evidence.seal is Seal.UNSEALED
    assert len(evidence.commits) == 1
    assert not list(tmp_path.rglob(MANIFEST))


def test_operations_outside_the_chroot_are_omitted(tmp_path: Path) -> None:
    """/kafka2 is not below /kafka."""
    paths = ("/kafka", "/kafka2", "/kafka2/config/topics/a", "/kafka/config/topics/b")
    _run(tmp_path, logs=[_log([1, 2, 3, 4], paths)], chroot="/kafka")
    commits = read_run(tmp_path).commits
    operated = [operation.path for commit in commits for operation in commit.operations]
    assert operated == ["/config/topics/b"]
    assert [commit.zxid for commit in commits] == [1, 2, 3, 4]


def test_unreadable_outcome_of_another_program_is_a_foreign_write(tmp_path: Path) -> None:
    """It neither stops the judge nor counts as an outcome."""
    _run(tmp_path, logs=[_log([1], ["/bridgehead/outcomes/x"])])
    evidence = read_run(tmp_path)
    assert [commit.outcomes for commit in evidence.commits] == [[]]
    (judgement,) = (
        candidate for candidate in judge(History(evidence)) if candidate.row.property == "W6"
    )
    assert judgement.row.verdict is Verdict.FAIL


@pytest.mark.parametrize(
    "outcome",
    [
        {"request": "r", "id": [1, "a", 10**30], "elements": [["t", 0]]},
        {"request": "r", "id": [1, "a", True], "elements": [["t", 0]]},
        {"request": "r", "id": [1, "a", 1], "elements": [["\ud800", 0]]},
        {"request": "r", "id": [1, "a", 1], "elements": [["t", "0"]]},
        {"request": None, "id": [1, "a", 1], "elements": [["t", 0]]},
        "deep",
    ],
)
def test_malformed_outcome_is_omitted(outcome: object) -> None:
    """With such an outcome, the judge would reject the line, or the run could not be sealed."""
    data = json.dumps({"outcomes": [outcome]}).replace('"deep"', "[" * 100_000).encode()
    operation = LoggedOperation("create", "/bridgehead/outcomes/1", data)
    line = commit_line(Transaction(1, 0xA, 0, 0, "multi", (operation,)))
    assert line.outcomes == []
    assert parse_object(orjson.dumps(line)) == json.loads(orjson.dumps(line))


def test_transactions_before_the_first_dump_are_omitted(tmp_path: Path) -> None:
    run = _run(tmp_path, logs=[_log([1, 2, 3])]) / "evidence" / "run=r"
    (run / "zookeeper" / "dumps.json").write_text('{"zookeeper/first.jsonl": 2}')
    evidence = read_run(tmp_path)
    assert [commit.zxid for commit in evidence.commits] == [3]
    assert not evidence.gaps["commits"]


def test_logs_of_an_external_zookeeper_can_be_named_when_sealing(tmp_path: Path) -> None:
    _run(tmp_path)
    assert "commits" in out_of_reach(read_run(tmp_path).manifest)
    logs = tmp_path / "elsewhere"
    logs.mkdir()
    (logs / "log.1").write_bytes(_log([1]))
    arguments = ["seal", str(tmp_path), "--zookeeper-logs", str(logs)]
    assert evidence_main(arguments) == 0
    assert len(read_run(tmp_path).commits) == 1


def test_damaged_log_is_a_gap(tmp_path: Path) -> None:
    log = bytearray(_log([1, 2]))
    log[40] ^= 1
    _run(tmp_path, logs=[bytes(log)])
    assert "a damaged record" in read_run(tmp_path).gaps["commits"][0]


@pytest.mark.parametrize(
    ("zxids", "final", "gaps"),
    [
        ((1, 2, 3), 3, []),
        ((1, 2, 3), 2, []),
        ((1, 2), 3, ["ZooKeeper's log ends at zxid 2, but the final dump is of zxid 3"]),
        ((), 3, ["ZooKeeper's log ends at zxid 0, but the final dump is of zxid 3"]),
        ((1, 2), 1 << 32, []),
    ],
)
def test_log_that_ends_before_the_final_dump_is_a_gap(
    zxids: Sequence[int], final: int, gaps: list[str], tmp_path: Path
) -> None:
    """The last row has the first zxid of a ZooKeeper epoch. No transaction has such a zxid."""
    zookeeper = _run(tmp_path, logs=[_log(zxids)]) / "evidence" / "run=r" / "zookeeper"
    (zookeeper / "final.jsonl").touch()
    dumps = {"zookeeper/first.jsonl": 0, "zookeeper/final.jsonl": final}
    (zookeeper / "dumps.json").write_text(json.dumps(dumps))
    assert read_run(tmp_path).gaps["commits"] == gaps


def test_recorded_log_is_decoded_and_loses_only_its_tail(tmp_path: Path) -> None:
    _run(tmp_path, logs=[RECORDED.read_bytes()])
    evidence = read_run(tmp_path)
    assert any(commit.outcomes for commit in evidence.commits)
    assert any(operation.role == "epoch" for c in evidence.commits for operation in c.operations)
    assert without_tail(RECORDED.read_bytes() + bytes(1 << 16)).rstrip(b"\0") == (
        RECORDED.read_bytes().rstrip(b"\0")
    )


def _member(*zxids: int) -> list[Transaction]:
    return [
        Transaction(zxid, 1, 0, 0, "create", (LoggedOperation("create", f"/{zxid}"),))
        for zxid in zxids
    ]


A, B = 0x100000000, 0x200000000


def test_transactions_of_a_majority_are_committed() -> None:
    merged = merge([_member(A + 1, A + 2), _member(A + 1, A + 2), _member(A + 1)], first_zxid=0)
    assert [t.zxid for t in merged.transactions] == [A + 1, A + 2]
    assert merged.gaps == ()


def test_transactions_that_only_a_deposed_leader_logged_are_dropped() -> None:
    """The logs of the other members continue with the next epoch."""
    members = [_member(A + 1, A + 2, A + 3, B + 1), _member(A + 1, B + 1), _member(A + 1, B + 1)]
    merged = merge(members, first_zxid=0)
    assert [t.zxid for t in merged.transactions] == [A + 1, B + 1]
    assert (merged.denied, merged.gaps) == (2, ())


def test_minority_proposal_is_a_gap_if_no_other_log_contradicts_it() -> None:
    """No other log goes past the proposal, so it may have been committed."""
    merged = merge([_member(A + 1, A + 2), _member(A + 1), _member(A + 1)], first_zxid=0)
    assert [t.zxid for t in merged.transactions] == [A + 1]
    assert merged.gaps == (f"the logs do not show whether zxid {A + 2} was committed",)


def test_minority_proposal_is_committed_if_the_final_dump_has_it() -> None:
    members = [_member(A + 1, A + 2), _member(A + 1), _member(A + 1)]
    merged = merge(members, first_zxid=0, final_zxids={f"/{A + 2}": (A + 2, A + 2)})
    assert [t.zxid for t in merged.transactions] == [A + 1, A + 2]
    assert merged.gaps == ()


def test_different_content_of_one_zxid_is_a_gap() -> None:
    other = [Transaction(A + 1, 2, 0, 0, "create", (LoggedOperation("create", "/y"),))]
    assert "disagree" in merge([_member(A + 1), other, other], first_zxid=0).gaps[0]


def test_logs_of_a_rejected_multi_agree_although_the_leaders_log_has_other_operations() -> None:
    """ZooKeeper 3.9.5: the leader changes the types of the operations while it logs them."""
    check = LoggedOperation("check", "/controller_epoch", version=1)
    rejected = LoggedOperation("error", error=-103)
    follower = Transaction(A, 7, 1, 1, "multi", (check, rejected), failed=True)
    leader = replace(follower, operations=(LoggedOperation("error", error=17), rejected))
    assert merge([[leader], [follower], [follower]], first_zxid=A - 1).gaps == ()
    applied = replace(leader, failed=False)
    assert "disagree" in merge([[applied], [follower], [follower]], first_zxid=A - 1).gaps[0]
    other = replace(leader, cxid=2)
    assert "disagree" in merge([[other], [follower], [follower]], first_zxid=A - 1).gaps[0]


@pytest.mark.parametrize(
    ("zxids", "gap"),
    [
        ((1, 2, 4), "ZooKeeper's log jumps from zxid 2 to 4"),
        ((5, 6), "ZooKeeper's log begins at zxid 5"),
        ((1, 2, 0x100000002), "ZooKeeper's log jumps from zxid 2 to 4294967298"),
    ],
)
def test_missing_transactions_are_a_gap(zxids: Sequence[int], gap: str) -> None:
    assert merge([_member(*zxids)], first_zxid=0).gaps == (gap,)


def test_new_epoch_of_an_ensemble_is_not_a_gap() -> None:
    """The counter in a new leader's zxids starts at 1 again."""
    assert merge([_member(A + 1, A + 2, B + 1)], first_zxid=0).gaps == ()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"\xff", "utf8"),
        (b'{"a":1,}', "not_json"),
        (b'{"a":Infinity}', "not_json"),
        (b"[" * 100_000, "not_json"),
        (b"7", "not_an_object"),
        (b'{"a":{"b":1,"b":1}}', "duplicate_key"),
        (b'{"a":' + b"9" * 10_000 + b"}", "overflow"),
        (b'{"a":9223372036854775808}', "overflow"),
        (b'{"a":-9223372036854775809}', "overflow"),
    ],
)
def test_malformed_line_has_its_reason(line: bytes, reason: str) -> None:
    assert parse_object(line) == reason


@pytest.mark.parametrize("value", [2**53, 2**63 - 1, -(2**63), 0.5, "\u00e9", [[]]])
def test_spaces_and_escapes_do_not_change_the_value_of_a_line(value: object) -> None:
    compact = json.dumps({"a": value}, separators=(",", ":"), ensure_ascii=False).encode()
    assert parse_object(compact) == parse_object(json.dumps({"a": value}).encode()) == {"a": value}


def test_nodes_create_exactly_the_start_up_paths() -> None:
    """Nodes create these paths before there is a controller, so no fence is required for them."""
    created: set[str] = set()
    ours = (*BRIDGEHEAD_PATHS, DIRECT_PARENT)
    for path in (*ACL_PATHS, *TOKEN_PATHS, *START_UP_PATHS, *ours):
        parts = path.split("/")[1:]
        created |= {"/" + "/".join(parts[:depth]) for depth in range(1, len(parts) + 1)}
    assert START_UP - created == {"/cluster", "/cluster/id", "/bridgehead/commit"}
    assert created <= START_UP


def test_command_prints_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The document has the verdict, the gaps and a row for each property."""
    golden = golden_histories.load("event_missing")
    golden_histories.expand(golden, tmp_path)
    assert main([str(tmp_path), "--json"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == "UNKNOWN"
    assert document["gaps"] == {"events": ["node 1 boot a: 1 of 15 events missing"]}
    assert [row["property"] for row in document["properties"] if row["verdict"] == "PASS"] == [
        *("W1", "W2", "W4", "W5", "D3", "R2", "K6"),
    ]


def test_command_prints_violations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    golden_histories.expand(golden_histories.load("write_without_fence"), tmp_path)
    assert main([str(tmp_path)]) == 1
    assert "zxid 5: session 0xa wrote /bridgehead/commit without" in capsys.readouterr().out


def test_command_exits_3_without_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 3
    assert "has no run" in capsys.readouterr().err


@pytest.mark.parametrize(
    "change",
    [
        {"files": [{"path": "../x", "kind": "node", "bytes": 1, "sha256": ""}]},
        {"files": [{"path": "/etc/passwd", "kind": "node", "bytes": 1, "sha256": ""}]},
        {"files": [{"path": "x", "kind": "node", "bytes": "1", "sha256": ""}]},
        {"files": [{"path": "x"}]},
        {"files": 7},
        {"run": None},
        {"zookeeper": []},
        {"format": 99},
    ],
)
def test_invalid_manifest_is_rejected(change: dict[str, Any], tmp_path: Path) -> None:
    golden_histories.expand(golden_histories.load("forwarded_creation"), tmp_path)
    document = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps({**document, **change}))
    with pytest.raises(EvidenceError, match=r"manifest\.json"):
        read_sealed(tmp_path)


def test_what_a_healthy_kafka_violates_is_said_where_its_run_is_imported_and_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = [f"1={tmp_path / 'logs'}"]
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "kafka-request.log").write_text("a line\n")
    imported = gather_kafka(tmp_path / "runs", logs, [])
    main([str(tmp_path / "runs")])
    for text in (imported, " ".join(capsys.readouterr().out.split())):
        assert "A healthy Kafka violates W2 (every_write_is_fenced)" in text


def test_the_run_of_a_cluster_says_nothing_of_kafka(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = golden_histories.expand(golden_histories.load("forwarded_creation"), tmp_path / "run=x")
    main([str(run)])
    assert "healthy Kafka" not in capsys.readouterr().out
