"""From folders to verdicts: runs are found, sealed and read; logs are merged; nothing vanishes."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from chaos.evidence.__main__ import main as evidence_main
from chaos.evidence.finding import find_runs, read_run
from chaos.evidence.lines import parse_object
from chaos.evidence.merge import merge
from chaos.evidence.reading import EvidenceError, read_sealed
from chaos.evidence.sealing import without_tail
from chaos.judge import main
from chaos.witness import LoggedOperation, Transaction
from cluster_model.acl_znodes import ACL_PATHS
from cluster_model.direct_writes import DIRECT_PARENT
from cluster_model.token_znodes import TOKEN_PATHS
from cluster_model.znodes import BRIDGEHEAD_PATHS, START_UP_PATHS
from event_log.commits import START_UP
from event_log.evidence import MANIFEST, RunDescription
from tests import golden_histories

RECORDED = Path(__file__).parents[1] / "data" / "zookeeper_transactions.bin"


def _log(zxids: Sequence[int], paths: Sequence[str] = ()) -> bytes:
    """Plain creates as ZooKeeper would log them."""
    data = struct.pack(">4siq", b"ZKLG", 2, 0)
    for zxid, name in zip(zxids, paths or ["/x"] * len(zxids), strict=True):
        path = name.encode()
        record = struct.pack(">qiqqi", 0xA, 0, zxid, 0, 1)
        record += struct.pack(">i", len(path)) + path + struct.pack(">iiBi", 0, 0, 0, 1)
        data += struct.pack(">qi", zlib.adler32(record), len(record)) + record + b"B"
    return data + bytes(4096)


def _run(folder: Path, *, logs: Sequence[bytes] = (), **fields: Any) -> Path:
    """A cluster's folder with one run that is not sealed: a boot in good order, members' logs."""
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


def test_the_last_run_of_a_cluster_is_meant(tmp_path: Path) -> None:
    """A second `up` in the same folder leaves a second run; each can be named itself."""
    first = _run(tmp_path, started_ms=1) / "evidence" / "run=r"
    second = tmp_path / "evidence" / "run=a"
    second.mkdir()
    (second / "run.json").write_text(json.dumps(asdict(RunDescription(run_id="a", started_ms=2))))
    assert find_runs(tmp_path) == [first, second]
    assert find_runs(first) == [first]
    with pytest.raises(EvidenceError, match="holds no run"):
        find_runs(first / "node=1")


def test_a_run_is_sealed_with_everything_that_is_in_it(tmp_path: Path) -> None:
    """Logs are copied without their preallocated tails and decoded; then nothing may change."""
    _run(tmp_path, logs=[_log([1, 2, 3])])
    assert evidence_main(["seal", str(tmp_path)]) == 0
    (run,) = find_runs(tmp_path)
    manifest = json.loads((run / MANIFEST).read_text())
    assert {each["path"] for each in manifest["files"]} == {
        *("run.json", "node=1/events-a-0000.jsonl", "zookeeper/commits.jsonl"),
        *("zookeeper/dumps.json", "zookeeper/first.jsonl", "zookeeper/member=1/log.1"),
    }
    assert [commit.zxid for commit in read_sealed(run).commits] == [1, 2, 3]
    assert (run / "zookeeper" / "member=1" / "log.1").stat().st_size < 300


def test_a_sealed_run_outlives_its_cluster(tmp_path: Path) -> None:
    """Sealed again from the logs that were copied, it says the same."""
    _run(tmp_path, logs=[_log([1, 2, 3])])
    assert evidence_main(["seal", str(tmp_path)]) == 0
    (run,) = find_runs(tmp_path)
    before = read_sealed(run).commits
    (tmp_path / "zookeeper" / "0" / "version-2" / "log.1").unlink()
    assert evidence_main(["seal", str(run)]) == 0
    assert read_sealed(run).commits == before


def test_an_unsealed_run_is_judged_as_it_is_and_left_alone(tmp_path: Path) -> None:
    """Its cluster may go on writing."""
    _run(tmp_path, logs=[_log([1])])
    evidence = read_run(tmp_path)
    assert evidence.unsealed
    assert len(evidence.commits) == 1
    assert not list(tmp_path.rglob(MANIFEST))


def test_another_tenant_of_the_same_zookeeper_is_not_judged(tmp_path: Path) -> None:
    """Only what lies below the chroot is the cluster's; /kafka2 does not lie below /kafka."""
    paths = ("/kafka", "/kafka2", "/kafka2/config/topics/a", "/kafka/config/topics/b")
    _run(tmp_path, logs=[_log([1, 2, 3, 4], paths)], chroot="/kafka")
    commits = read_run(tmp_path).commits
    found = [operation.path for commit in commits for operation in commit.operations]
    assert found == ["/config/topics/b"]
    assert [commit.zxid for commit in commits] == [1, 2, 3, 4]


def test_what_was_there_before_the_run_is_not_judged(tmp_path: Path) -> None:
    """A reused data directory: the first dump says as of when the run begins."""
    run = _run(tmp_path, logs=[_log([1, 2, 3])]) / "evidence" / "run=r"
    (run / "zookeeper" / "dumps.json").write_text('{"zookeeper/first.jsonl": 2}')
    evidence = read_run(tmp_path)
    assert [commit.zxid for commit in evidence.commits] == [3]
    assert not evidence.holes["commits"]


def test_logs_that_are_out_of_reach_can_be_named_later(tmp_path: Path) -> None:
    """An external ZooKeeper: first NODATA, then what its members' folders say."""
    _run(tmp_path)
    assert "commits" in read_run(tmp_path).out_of_reach
    logs = tmp_path / "elsewhere"
    logs.mkdir()
    (logs / "log.1").write_bytes(_log([1]))
    arguments = ["seal", str(tmp_path), "--zookeeper-logs", str(logs)]
    assert evidence_main(arguments) == 0
    assert len(read_run(tmp_path).commits) == 1


def test_a_damaged_log_is_a_hole(tmp_path: Path) -> None:
    """The member's other records are not believed either."""
    log = bytearray(_log([1, 2]))
    log[40] ^= 1
    _run(tmp_path, logs=[bytes(log)])
    assert "a damaged record" in read_run(tmp_path).holes["commits"][0]


def test_a_real_log_is_decoded_and_its_tail_is_nothing(tmp_path: Path) -> None:
    """A real server's log, with outcomes; cutting the zeros off loses no transaction."""
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


def test_what_a_majority_holds_is_committed() -> None:
    """One member was away for a while."""
    merged = merge([_member(A + 1, A + 2), _member(A + 1, A + 2), _member(A + 1)], first_zxid=0)
    assert [t.zxid for t in merged.transactions] == [A + 1, A + 2]
    assert merged.holes == ()


def test_the_tail_of_a_deposed_leader_is_no_truth() -> None:
    """Its proposals stay in its file; another member went straight into the next epoch."""
    members = [_member(A + 1, A + 2, A + 3, B + 1), _member(A + 1, B + 1), _member(A + 1, B + 1)]
    merged = merge(members, first_zxid=0)
    assert [t.zxid for t in merged.transactions] == [A + 1, B + 1]
    assert (merged.denied, merged.holes) == (2, ())


def test_a_proposal_that_nobody_denies_is_not_known() -> None:
    """The last entry of one log, and nothing after it anywhere."""
    merged = merge([_member(A + 1, A + 2), _member(A + 1), _member(A + 1)], first_zxid=0)
    assert [t.zxid for t in merged.transactions] == [A + 1]
    assert merged.holes == (f"whether zxid {A + 2} was committed cannot be told from the logs",)


def test_the_final_dump_tells_of_a_proposal_that_nobody_denies() -> None:
    """Its znode stands there."""
    members = [_member(A + 1, A + 2), _member(A + 1), _member(A + 1)]
    merged = merge(members, first_zxid=0, final_zxids={f"/{A + 2}": (A + 2, A + 2)})
    assert [t.zxid for t in merged.transactions] == [A + 1, A + 2]
    assert merged.holes == ()


def test_members_that_disagree_are_a_hole() -> None:
    """Two logs hold different things under one zxid."""
    other = [Transaction(A + 1, 2, 0, 0, "create", (LoggedOperation("create", "/y"),))]
    assert "disagree" in merge([_member(A + 1), other, other], first_zxid=0).holes[0]


@pytest.mark.parametrize(
    ("zxids", "hole"),
    [
        ((1, 2, 4), "ZooKeeper's log jumps from zxid 2 to 4"),
        ((5, 6), "ZooKeeper's log begins at zxid 5"),
        ((1, 2, 0x100000002), "ZooKeeper's log jumps from zxid 2 to 4294967298"),
    ],
)
def test_a_log_with_missing_transactions_is_a_hole(zxids: Sequence[int], hole: str) -> None:
    """What was written in between cannot be known, so that absence proves nothing."""
    assert merge([_member(*zxids)], first_zxid=0).holes == (hole,)


def test_a_new_epoch_of_an_ensemble_is_no_hole() -> None:
    """A new leader counts from 1 again, below a higher epoch."""
    assert merge([_member(A + 1, A + 2, B + 1)], first_zxid=0).holes == ()


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
        (b'{"a":-9223372036854775809}', "overflow"),
    ],
)
def test_a_hostile_line_has_its_reason(line: bytes, reason: str) -> None:
    """None of them is read as something that it is not, and none takes the judge down."""
    assert parse_object(line) == reason


def test_every_start_up_path_is_known_to_be_one() -> None:
    """A node makes them before there is a controller: they are no unfenced writes of metadata."""
    made: set[str] = set()
    ours = (*BRIDGEHEAD_PATHS, DIRECT_PARENT)
    for path in (*ACL_PATHS, *TOKEN_PATHS, *START_UP_PATHS, *ours):
        parts = path.split("/")[1:]
        made |= {"/" + "/".join(parts[:depth]) for depth in range(1, len(parts) + 1)}
    assert START_UP - made == {"/cluster", "/cluster/id", "/bridgehead/commit"}
    assert made <= START_UP


def test_the_command_prints_what_both_judges_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As JSON: verdicts with their rows, files with their lines, holes."""
    golden = golden_histories.load("a_hole_in_a_boot")
    golden_histories.expand(golden, tmp_path)
    assert main([str(tmp_path), "--json"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == "UNKNOWN"
    assert document["holes"] == {"events": ["node 1 boot a: 7 to 7 missing"]}
    assert [row["property"] for row in document["properties"] if row["verdict"] == "PASS"] == [
        *("W1", "W2", "W4", "W5", "D3", "R2", "K6"),
    ]


def test_the_command_names_the_counter_example(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 1, and the sentence that says where to look."""
    golden_histories.expand(golden_histories.load("a_write_without_the_fence"), tmp_path)
    assert main([str(tmp_path)]) == 1
    assert "zxid 5: session 0xa wrote /bridgehead/commit without" in capsys.readouterr().out


def test_the_command_says_no_data_and_exits_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that proves nothing is not green."""
    assert main([str(tmp_path)]) == 2
    assert "holds no run" in capsys.readouterr().err


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
def test_a_manifest_that_is_none_is_refused_in_a_sentence(
    change: dict[str, Any], tmp_path: Path
) -> None:
    """It names only files of its own folder, with the sizes that they had."""
    golden_histories.expand(golden_histories.load("a_forwarded_creation"), tmp_path)
    document = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps({**document, **change}))
    with pytest.raises(EvidenceError, match=r"manifest\.json"):
        read_sealed(tmp_path)
