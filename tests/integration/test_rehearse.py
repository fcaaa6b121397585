"""Rehearsals with a real KRaft controller: until the end, back, and with what they must catch.

Skipped, with the reason, without Java 17 or Kafka's jars (`make kafka-jars`).
"""

from __future__ import annotations

import dataclasses
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest

from bridgehead.admin import AdminClient, TopicPartition
from bridgehead.application import module_command, module_environment, run_module
from bridgehead.cluster.errors import ClusterError
from cluster_model.znodes.operations import SetData
from judge.transaction_log import Transaction, read_transactions
from judge.verdicts import Verdict
from rehearse import records, rollback, run
from rehearse.copying import delete_if_present, write_znodes
from rehearse.findings import Outcome
from rehearse.kraft.jars import find_jars, find_kafkas_java
from rehearse.phases import DriverState
from rehearse.run import UNTIL
from rehearse.seeded import play
from rehearse.seeds import SEEDS, healthy
from rehearse.sources.dump import read_key, write_dump
from tests.integration import ui_page
from tests.integration.pipeline_runs import judged
from tests.integration.processes import wait_until
from tests.integration.rehearsal_sources import large, source_of

pytestmark = [pytest.mark.kafka]
KAFKA = "3.9.1"
STATES = tuple(state.value for state in DriverState)[2:]  # those that can be hit
PHASES = ("dual-write", "finalize")  # after the last state
GUIDE_PICTURES = ui_page.PICTURES.parent / "pictures"
# Starts faster than a node, and serves no client.
STANDIN = shlex.join([sys.executable, "-P", "tests/integration/migrating_standin.py"])


@pytest.fixture(autouse=True, scope="module")
def kafka() -> None:
    """Skip the tests if a real controller cannot run here."""
    try:
        find_kafkas_java()
        find_jars(KAFKA)
    except ClusterError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def source_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("source")


@pytest.fixture(scope="module")
def source(source_folder: Path) -> Iterator[str]:
    with source_of(large(7, 3, healthy()), source_folder) as connect:
        yield connect


def _rehearse(
    command: str, *arguments: str, timeout_s: float = 200, folder: Path | None = None
) -> tuple[int, str]:
    ended = subprocess.run(
        module_command(f"rehearse.{command}", *arguments),
        cwd=folder,
        env=module_environment(),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    return ended.returncode, ended.stdout + ended.stderr


def _report(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = orjson.loads((folder / "report.json").read_bytes())
    return document


@pytest.mark.long
def test_hybrid_and_back_keep_everything(source: str, source_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    before = [transaction.zxid for transaction in read_transactions(source_folder)]
    code, text = _rehearse("run", f"--zookeeper={source}", f"--out={out}", "--load")
    assert code == 0, text
    report = _report(out)
    assert _without_sessions(source_folder, before[-1]) == []
    # The zxid moves by the end of the first reading session and the begin of the second one.
    assert report["zxid_after"] == report["zxid_before"] + 2
    phase = report["phases"][0]
    assert [t["state"] for t in phase["transitions"]][-1] == "DUAL_WRITE"
    assert phase["load"]["acknowledged"] > 0
    assert report["verdict"]["verdict"] == "PASS"
    assert report["verdict"]["judged"] > phase["load"]["acknowledged"]
    assert report["source_changes"] == 0
    for comparison in phase["comparisons"]:
        changed = {difference["item"]["kind"] for difference in comparison["differences"]}
        assert len({*comparison["equal"], *changed}) == 9, comparison  # every kind of item
        assert all(difference["why"] for difference in comparison["differences"])
    assert "stored_key" not in text + (out / "report.html").read_text()
    code, text = _rehearse("rollback", str(out), "--again")
    assert code == 0, text
    rolled_back = _report(out / "rollback")
    names = [phase["name"] for phase in rolled_back["phases"]]
    assert names == ["rollback from hybrid", "second attempt"]
    assert rolled_back["verdict"]["verdict"] == "PASS"
    assert rolled_back["verdict"]["judged"] > report["verdict"]["judged"]


@pytest.fixture
def signals() -> Iterator[None]:
    """Restore the handlers that a command replaces."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.long
@pytest.mark.usefixtures("signals")
def test_judges_find_what_is_not_written_back_and_what_a_rollback_loses(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seeded bugs: dual-write leaves out the configs of a topic; the rollback loses the topic."""
    out, topic = tmp_path / "out", "rehearsal-2"
    settled, back = run.Run._settled, rollback.Rollback._back

    async def settled_without_configs(self: run.Run) -> Any:
        connect = self.participants.connect
        lost = SetData(f"/config/topics/{topic}", b'{"version":1,"config":{}}')
        await write_znodes(connect, lost)
        return await settled(self)

    async def back_without_topic(self: rollback.Rollback) -> None:
        await back(self)
        path = f"/brokers/topics/{topic}"
        tree = await self.rehearsal.tree()
        paths = [p for p in tree.znodes if p == path or p.startswith(f"{path}/")]
        await delete_if_present(self.participants.connect, *sorted(paths, reverse=True))

    monkeypatch.setattr(run.Run, "_settled", settled_without_configs)
    monkeypatch.setattr(rollback.Rollback, "_back", back_without_topic)
    assert run.main([f"--zookeeper={source}", f"--out={out}", "--load"]) == 1
    (sentence,) = _report(out)["lost"]
    assert sentence == (
        f"config topic {topic} retention.ms: 10002 was acknowledged, but after hybrid, "
        "ZooKeeper has none"
    )
    assert rollback.main([str(out)]) == 1
    judgement = judged(out)["D12"]
    assert judgement.row.verdict is Verdict.FAIL
    assert f"topic {topic}: its creation was acknowledged, but after rollback from hybrid" in str(
        judgement.violations
    )
    tables = tmp_path / "tables"
    arguments = ("run", f"--evidence={out}", f"--out={tables}")
    pipeline = run_module("pipeline", *arguments, timeout_s=300)
    assert pipeline.returncode == 1, pipeline.stdout + pipeline.stderr
    verdicts = orjson.loads((tables / "verdicts.json").read_bytes())
    (row,) = [r for r in verdicts[0]["properties"] if r["property"] == "D12"]
    assert (row["verdict"], row["judged"], row["violations"]) == (
        "FAIL",
        judgement.row.judged,
        judgement.row.violations,
    )


def _without_sessions(folder: Path, zxid: int) -> list[Transaction]:
    """Return a server's later transactions that are not the begin or the end of a session."""
    kinds = ("create_session", "close_session")
    return [t for t in read_transactions(folder) if t.zxid > zxid and t.kind not in kinds]


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("signals")
def test_records_are_kept_and_deleted_ones_are_missed(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: the first record of a partition is deleted before the look."""
    out = tmp_path / "out"
    arguments = [f"--zookeeper={source}", "--records", "--patience=120"]
    code, text = _rehearse("run", *arguments, f"--out={out}", timeout_s=290)
    assert code == 0, text
    load = _report(out)["phases"][0]["record_load"]
    assert min(load["acknowledged"], load["consumed"]) > 20
    assert (load["lost"], load["errors"]) == (0, {})
    assert load["longest_wait_s"] > 0

    look = records.RecordLoad.look

    def look_after_deletion(self: records.RecordLoad) -> None:
        with AdminClient(self._admin) as client:
            client.delete_records({TopicPartition(records.TOPIC, 1): 1})
        look(self)

    monkeypatch.setattr(records.RecordLoad, "look", look_after_deletion)
    assert run.main([*arguments, f"--out={out}"]) == 1
    assert _report(out)["phases"][0]["record_load"]["lost"] == 1


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.timeout(900)
def test_until_the_end_with_real_brokers(source: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = [f"--zookeeper={source}", f"--out={out}", "--load", "--records"]
    arguments += ["--until=finalize", "--patience=180"]
    code, text = _rehearse("run", *arguments, timeout_s=850)
    assert code == 0, text
    report = _report(out)
    assert [phase["name"] for phase in report["phases"]] == ["hybrid", "dual-write", "finalize"]
    assert report["verdict"]["verdict"] == "PASS"
    loads = [phase["record_load"] for phase in report["phases"]]
    assert [load["lost"] for load in loads] == [0, 0, 0]
    assert min(load["acknowledged"] for load in loads) > 20
    # Before the first node leaves, and after each.
    assert text.count("all replicas are in sync") == 4
    for phase in report["phases"]:
        assert phase["load"]["acknowledged"] > 0
    code, text = _rehearse("rollback", str(out))
    assert code == 4
    assert "there is no way back" in text


@pytest.fixture(scope="module")
def report_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Rehearse metadata with a finding; return the address of the report."""
    folder = tmp_path_factory.mktemp("page")
    seed = next(seed for seed in SEEDS if seed.name == "config_of_no_topic")
    key = read_key(folder / "key", create=True)
    write_dump(seed.planted(large(7, 3, healthy())), folder / "znodes.jsonl", key)
    arguments = ["--dump=znodes.jsonl", "--key=key", "--load", "--out=out", "--patience=240"]
    code, text = _rehearse("run", *arguments, timeout_s=500, folder=folder)
    assert code == 0, text
    return (folder / "out" / "report.html").as_uri()


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("width", [1280, 390])
def test_report_is_readable_in_a_browser(report_page: str, width: int) -> None:
    """The pictures of the guide are made here (`tests.integration.ui_page.RENEW`)."""
    with ui_page.browser() as chromium:
        page = chromium.new_page(viewport={"width": width, "height": 800})
        seen: list[str] = []
        page.on("console", lambda message: seen.append(message.text))
        page.on("request", lambda request: seen.append(request.url))
        page.goto(report_page)
        assert seen == [report_page]  # it fetches nothing
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for name, heading in (
            ("rehearsal-phases", "Phases"),
            ("rehearsal-clients", "What clients saw"),
            ("rehearsal-findings", "Findings of the scan"),
        ):
            place = page.get_by_role("heading", name=heading)
            place.evaluate("heading => heading.scrollIntoView()")
            assert place.is_visible()
            if width == 1280:
                ui_page.picture(page, name, GUIDE_PICTURES)


@pytest.mark.long
@pytest.mark.parametrize("name", ["acl_unreadable", "quota_fraction", "state_missing"])
async def test_seed_has_the_outcome_of_its_rule(name: str, tmp_path: Path) -> None:
    seed = next(seed for seed in SEEDS if seed.name == name)
    played = await play(seed, KAFKA, tmp_path / name, shlex.split(STANDIN))
    assert played.agrees, played


@pytest.mark.long
async def test_seed_with_a_wrong_rule_is_noticed(tmp_path: Path) -> None:
    """The negative control: a seed that names another seed's rule does not agree."""
    seed = next(seed for seed in SEEDS if seed.name == "acl_unreadable")
    wrong = dataclasses.replace(seed, rule="topic-without-id")
    played = await play(wrong, KAFKA, tmp_path / "wrong", shlex.split(STANDIN))
    assert (played.observed, played.agrees) == (Outcome.DELETED, False)


def test_leftover_migration_is_rejected_before_anything_starts(tmp_path: Path) -> None:
    seed = next(seed for seed in SEEDS if seed.name == "migration_leftover")
    out = tmp_path / "out"
    with source_of(seed.planted(healthy()), tmp_path / "source") as connect:
        code, text = _rehearse("run", f"--zookeeper={connect}", f"--out={out}")
    assert code == 4
    assert "/migration is left from an earlier attempt" in text
    assert not out.exists()


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_rehearsal_leaves_no_process_and_can_start_again(
    number: signal.Signals, source: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    arguments = (f"--zookeeper={source}", f"--out={out}", f"--node-command={STANDIN}")
    command = [*module_command("rehearse.run", *arguments), "--hold-controller"]
    process = subprocess.Popen(command, env=module_environment(), stdout=subprocess.DEVNULL)
    logs = out / "controllers" / "3000" / "server.log"
    wait_until(logs.exists, timeout_s=60)
    process.send_signal(number)
    assert process.wait(60) == 130
    assert not _processes_in(out)
    assert (out / "rehearsal.json").exists()
    with source_of(healthy(), tmp_path / "other") as connect:
        again = [f"--zookeeper={connect}", *arguments[1:], "--hold-controller"]
        code, text = _rehearse("run", *again)
    assert code == 0, text


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the options of a dump that keeps the controller busy for a while in each step."""
    folder = tmp_path_factory.mktemp("dump")
    key = read_key(folder / "key", create=True)
    write_dump(large(100, 3, healthy()), folder / "znodes.jsonl", key)
    return [f"--dump={folder / 'znodes.jsonl'}", f"--key={folder / 'key'}"]


def _arguments(dump: list[str], moment: str, out: Path) -> list[str]:
    until = moment if moment in UNTIL else "hybrid"
    return [*dump, f"--out={out}", f"--until={until}", "--patience=180"]


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.parametrize(
    ("participant", "moments"),
    [
        # Without it the driver does not go on, so it can be killed in each state of one run.
        ("controller", STATES),
        ("zookeeper", STATES),
        ("broker", ("WAIT_FOR_BROKERS",)),
        ("broker", ("ZK_MIGRATION",)),
        ("controller", PHASES),
        ("zookeeper", PHASES),
        ("broker", PHASES),
    ],
)
def test_migration_completes_although_a_participant_is_killed(
    participant: str, moments: tuple[str, ...], dump: list[str], tmp_path: Path
) -> None:
    """The participant starts again after three seconds. No acknowledged write may be missing.

    A restarted controller loses SCRAM credentials if one was deleted, as the load does (a bug of
    Kafka 3.9).
    """
    out = tmp_path / "out"
    faults = [f"--fault={moment}:kill-{participant}" for moment in moments]
    load = [] if participant == "controller" else ["--load"]
    arguments = (*_arguments(dump, moments[-1], out), *faults, *load)
    code, text = _rehearse("run", *arguments, timeout_s=590)
    assert code == 0, text
    report = _report(out)
    assert [result["fault"] for result in report["faults"]] == [f[8:] for f in faults]
    assert all(result["recovered_s"] > 0 for result in report["faults"])
    hit = {result["hit"] for result in report["faults"]}
    assert hit <= set(DriverState)
    assert len(hit) >= len(moments) // 2  # a fast driver leaves a short state before the fault
    assert bool(report["acknowledged"]) is bool(load)


@pytest.mark.long
@pytest.mark.soak
def test_migration_completes_although_connections_are_cut(dump: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    faults = [
        "WAIT_FOR_BROKERS:cut-broker",
        "ZK_MIGRATION:cut-controller",
        "SYNC_KRAFT_TO_ZK:cut-zookeeper",
    ]
    options = [f"--fault={fault}" for fault in faults]
    code, text = _rehearse("run", *_arguments(dump, "hybrid", out), *options, "--load")
    assert code == 0, text
    results = _report(out)["faults"]
    assert [result["fault"] for result in results] == faults
    # Without ZooKeeper the controller stays where it is.
    assert results[1]["left"].startswith("ZK_MIGRATION")


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.parametrize(
    "moment", ["WAIT_FOR_BROKERS", "ZK_MIGRATION", "DUAL_WRITE", "dual-write", "finalize"]
)
def test_killed_rehearsal_leaves_no_process_and_can_start_again(
    moment: str, dump: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    command = module_command("rehearse.run", *_arguments(dump, moment, out))
    with subprocess.Popen(command, env=module_environment(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert next(line for line in process.stdout if moment.encode() in line)
        process.kill()
    wait_until(lambda: _processes_in(out), lambda pids: not pids, timeout_s=30)
    code, text = _rehearse("run", *_arguments(dump, moment, out), timeout_s=590)
    assert code == 0, text


def _processes_in(folder: Path) -> list[int]:
    present = []
    for process in psutil.process_iter():
        if process.pid != os.getpid() and any(str(folder) in part for part in _command(process)):
            present.append(process.pid)
    return present


def _command(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []
