"""The judge reads a folder: what is missing in it is a hole, never green, never a finding."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from chaos.history import EvidenceError, read_history
from chaos.judge import main
from chaos.witness import Transaction
from tests.unit.judged_histories import (
    NONE,
    W2,
    create,
    multi,
    told,
)


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
    made = [multi(zxid, create(path)) for zxid, path in enumerate(paths, start=1)]
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
    _logged(_run_folder(tmp_path, [_line(0)]), *(multi(z, create("/x")) for z in zxids))
    holes = read_history(tmp_path).holes
    assert len(holes) == 1
    assert hole in holes[0]


def test_a_new_epoch_of_an_ensemble_is_no_hole(tmp_path: Path) -> None:
    """A new leader counts from 1 again, below a higher epoch."""
    zxids = (0x100000001, 0x100000002, 0x200000001)
    _logged(_run_folder(tmp_path, [_line(0)]), *(multi(z, create("/x")) for z in zxids))
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
    answers = told(NONE, zxid=made.zxid, identity=made.identity)
    events = tmp_path / "nodes" / "1" / "events" / "events-abc-0000.jsonl"
    lines = [_line(number) | dict(event) for number, event in enumerate(answers)]
    events.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert main([str(tmp_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {each["verdict"] for each in document["properties"]} == {"PASS"}
