"""`python -m rehearse.run`: the command behind `bridgehead rehearse run`."""

from __future__ import annotations

import argparse
import asyncio
import logging
import shlex
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import orjson

from bridgehead.cluster.data_directory import write_json
from bridgehead.cluster.errors import ClusterError
from bridgehead.exit_codes import ExitCode
from cluster_model.session_state import ConnectionLostError
from judge.terminal import complain
from rehearse.checks import scan
from rehearse.cluster import Cluster, ServerProperties
from rehearse.compare import (
    Comparison,
    changed_znodes,
    compare,
    explained_by,
    restarts,
    rewritten,
    seen_of,
)
from rehearse.copying import MIGRATION, copy_tree
from rehearse.evidence import KRAFT, ZOOKEEPER, Evidence
from rehearse.faults import Fault, FaultResult, parse_faults
from rehearse.findings import KAFKA_VERSIONS, Finding, Severity
from rehearse.kraft.jars import check_memory, find_jars, find_kafkas_java, memory_needed_mib
from rehearse.kraft.storage import feature_level
from rehearse.load import PREFIX, AdminLoad, is_of_the_load, resurrected
from rehearse.metadata import Item, Items, items_of_znodes
from rehearse.metadata_records import MigrationState
from rehearse.participants import Participants, plan_brokers
from rehearse.records import TOPICS, RecordLoad, check_client
from rehearse.rehearsal import PATIENCE_S, BlockedError, Rehearsal
from rehearse.report.document import FindingRow, Phase, Report
from rehearse.report.next_steps import next_steps
from rehearse.report.page import write_page
from rehearse.report.terminal import print_report
from rehearse.sources.arguments import add_source_arguments, read_source
from rehearse.znodes import SourceError, ZnodeTree

UNTIL: Final = ("hybrid", "dual-write", "finalize")
STATE_FILE: Final = "state.json"
_BROKERS_MAX: Final = 5
_SETTLE_S: Final = 20.0
_SETTLE_S_PER_TOPIC: Final = 0.1
_LAG_S: Final = 5.0  # without a change after it, nothing more is written
_ZOOKEEPER_MIB: Final = 512
_LEFTOVER: Final = (
    "/migration is left from an earlier attempt, and the controller's log would be new: Kafka "
    "would take the metadata for migrated, and delete all topics and ACLs from ZooKeeper. Delete "
    "/migration in your cluster (zookeeper-shell: delete /migration). --drop-migration-znode "
    "rehearses without it; --keep-migration-znode shows the loss on the copy."
)
_MIGRATED: Final = "ZooKeeper before → KRaft"
_BLOCKING: Final = (Severity.BLOCKS, Severity.LOSES)


class Run:
    """One rehearsal, from the copy to its report."""

    def __init__(
        self,
        options: argparse.Namespace,
        source: str,
        tree: ZnodeTree,
        files: Sequence[ServerProperties],
        say: Callable[[str], None],
    ) -> None:
        self.options = options
        self.tree = tree
        self.files = files
        self.say = say
        self.folder: Path = options.out
        self.findings = scan(Cluster(tree, files))
        self.faults = parse_faults(options.fault)
        level = options.level or _level_of(files)
        self._check(level)
        self.participants = Participants.create(
            self.folder,
            tree,
            kafka=options.kafka,
            level=level,
            controllers=options.controllers,
            broker_ids=options.brokers,
            node_command=shlex.split(options.node_command),
            with_links=any(fault.action == "cut" for fault in self.faults),
        )
        plan = self.participants.plan
        self.rehearsal = Rehearsal(self.participants, self.tell, patience_s=options.patience)
        self.rehearsal.topics = len(tree.children("/brokers/topics"))
        self.evidence = Evidence.create(self.folder, brokers=len(plan.brokers))
        self.load = AdminLoad(self.participants.client_properties, len(plan.brokers), self.evidence)
        self.records = (
            RecordLoad(
                self.participants.librdkafka_properties,
                self.participants.client_properties,
                len(plan.brokers),
            )
            if options.records
            else None
        )
        self.report = Report(
            source,
            options.kafka,
            level,
            options.until,
            [broker.id for broker in plan.brokers],
            list(plan.controllers),
            zxid_before=tree.zxid,
            findings=[row_of(finding, options.kafka) for finding in self.findings],
        )
        self.before_tree = tree
        self.before: Items = {}
        self._pending = list(self.faults)

    def tell(self, sentence: str) -> None:
        """Say a sentence of the rehearsal."""
        self.say(sentence)

    def _check(self, level: str) -> None:
        options = self.options
        feature_level(level)
        find_kafkas_java()
        find_jars(options.kafka)
        if options.records:
            check_client()
        brokers = len(plan_brokers(self.tree, options.brokers))
        if options.until != "hybrid" and brokers > _BROKERS_MAX:
            raise ClusterError(
                f"The cluster has {brokers} brokers, and {options.until} needs a JVM for each: "
                f"at most {_BROKERS_MAX}. Use --until hybrid, or name fewer with --brokers if all "
                "replicas are on them."
            )
        keeps = options.keep_migration_znode or options.drop_migration_znode
        if not keeps and _migrated_before(self.tree):
            raise ClusterError(_LEFTOVER)
        real = brokers if options.until != "hybrid" else 0
        needed_mib = memory_needed_mib(
            nodes=brokers,
            controllers=options.controllers,
            brokers=real,
            zookeeper_mib=_ZOOKEEPER_MIB,
        )
        self_help = "stop other programs, or use --until hybrid and --controllers 1"
        check_memory(needed_mib, self_help)
        self.say(f"the rehearsal takes up to {needed_mib} MiB of memory")

    async def run(self) -> Report:
        """Play the phases; return the report, which is written, too."""
        began_s = time.monotonic()
        try:
            await self._phases()
        except BlockedError as blocked:
            self.report.outcome, self.report.why = blocked.outcome.value, blocked.why
            self._note_changes(await self.rehearsal.tree())
        except (ClusterError, ConnectionLostError, SourceError) as error:
            if not self.report.phases:
                raise
            self.rehearsal.pump()
            self.report.outcome, self.report.why = "failed", str(error)
        finally:
            self.load.stop()
            if self.records is not None:
                self.records.stop()
            self.participants.stop()
            self.evidence.close()
        self.report.seconds = time.monotonic() - began_s
        self._finish()
        return self.report

    async def _phases(self) -> None:
        await self._start()
        await self._phase("hybrid", self._hybrid)
        if self.options.until != "hybrid":
            if len(self.participants.plan.brokers) == 1 and self.records is not None:
                self.say("the records end here: Kafka's broker begins with an empty disk")
                await self._end_records()
            await self._phase("dual-write", self._dual_write)
        if self.options.until == "finalize":
            await self._phase("finalize", self.rehearsal.finalize)
        await self._end_records()

    async def _dual_write(self) -> None:
        await self.rehearsal.to_kraft_brokers(TOPICS if self.records is not None else ())

    async def _end_records(self) -> None:
        """End the records once the group has read what was acknowledged."""
        records = self.records
        if records is None:
            return

        async def is_read() -> bool:
            return records.unread == 0

        await asyncio.to_thread(records.end)
        what, why = "the end of the group's reading", lambda: f"{records.unread:,} records are left"
        await self.rehearsal.wait(what, is_read, self.rehearsal.patience_s, why)
        await asyncio.to_thread(records.stop)
        self.records = None

    async def _start(self) -> None:
        zookeeper = self.participants.zookeeper
        zookeeper.start()
        await asyncio.to_thread(zookeeper.wait_until_serving)
        await self.participants.start_links()
        connect = self.participants.connect
        keep = not self.options.drop_migration_znode
        self.report.znodes = await copy_tree(self.tree, connect, with_migration=keep)
        self.say(f"{self.report.znodes:,} znodes are copied into the rehearsal's ZooKeeper")
        self.report.hidden = sum(znode.hidden is not None for znode in self.tree.znodes.values())
        await self.rehearsal.start_cluster(hold_controller=self.options.hold_controller)
        patience_s = self.rehearsal.patience_s
        if self.records is not None:
            await asyncio.to_thread(self.records.start)
            await self.rehearsal.wait("the first records", self._are_records_flowing, patience_s)
        if self.options.load:
            self.load.start()
            await self.rehearsal.wait("the load's first writes", self._is_loaded, patience_s)
            self.load.pause()
        self.before_tree = await self.rehearsal.tree()
        self.before = _without_load(items_of_znodes(self.before_tree))
        self.load.resume()

    async def _is_loaded(self) -> bool:
        return self.load.acknowledged >= 10

    async def _are_records_flowing(self) -> bool:
        return self.records is not None and self.records.is_flowing

    async def _hybrid(self) -> None:
        self.rehearsal.start_controllers()
        await self.rehearsal.until_dual_write(self._inject_at)

    async def _phase(self, name: str, play: Callable[[], Awaitable[None]]) -> None:
        """Play one phase, and compare what there is after it."""
        self.say(f"— {name} —")
        phase = Phase(name, time.time())
        self.report.phases.append(phase)
        seen = len(self.rehearsal.active.transitions)
        self.load.begin_phase(name)
        phase.load = self.load.phases[-1] if self.options.load else None
        if self.records is not None:
            phase.record_load = self.records.begin_phase(name)
        await self._inject_at(name)
        await play()
        phase.ended_s = time.time()
        if self.records is not None:
            await asyncio.to_thread(self.records.look)
        for result in self.report.faults:
            if result.recovered_s is None:
                result.recovered_s = phase.ended_s - result.returned_s
        active = self.rehearsal.active
        phase.transitions = active.transitions[seen:] if name == "hybrid" else []
        if name == "hybrid":
            phase.gap_s, phase.records = active.gap_s(), active.records
        await self._compare(phase)
        self._keep_state(name)

    def _take(self, moment: str) -> list[Fault]:
        taken = [fault for fault in self._pending if fault.moment == moment]
        self._pending = [fault for fault in self._pending if fault.moment != moment]
        return taken

    async def _inject_at(self, moment: str) -> None:
        for fault in self._take(moment):
            self.report.faults.append(await self.rehearsal.inject(fault))

    async def _compare(self, phase: Phase) -> None:
        findings = self._still_there()
        explain = explained_by(findings, [restarts])
        name = phase.name
        if name == "hybrid":
            migrated = self.rehearsal.metadata(MigrationState.MIGRATION).items()
            without = _without_load(migrated)
            phase.comparisons.append(compare(_MIGRATED, self.before, without, explain))
        self.load.pause()
        try:
            kraft, tree = await self._settled()
            written = items_of_znodes(tree)
            if name != "hybrid":
                after = _without_load(kraft)
                title = f"ZooKeeper before → KRaft after {name}"
                phase.comparisons.append(compare(title, self.before, after, explain))
            witnesses = {KRAFT: only_load(kraft)}
            if name != "finalize":
                phase.comparisons.append(written_back(findings, kraft, written))
                witnesses[ZOOKEEPER] = only_load(written)
            self.evidence.report(name, witnesses)
            self._note_changes(tree)
        finally:
            self.load.resume()
        for comparison in phase.comparisons:
            self.say(_summary(comparison))

    def _still_there(self) -> list[Finding]:
        """Return the findings without those of a /migration that was not copied."""
        is_dropped = self.options.drop_migration_znode
        return [f for f in self.findings if not (is_dropped and f.place.where == MIGRATION)]

    async def _settled(self) -> tuple[Items, ZnodeTree]:
        """Return what KRaft and ZooKeeper have once both have the same, or change no more.

        ZooKeeper is behind after many changes of ISRs: Kafka writes them one by one.
        """
        is_written = self.report.phases[-1].name != "finalize"
        deadline = time.monotonic() + _SETTLE_S + _SETTLE_S_PER_TOPIC * self.rehearsal.topics
        before, changed_s = None, time.monotonic()
        while True:
            kraft, tree = self.rehearsal.metadata().items(), await self.rehearsal.tree()
            written = items_of_znodes(tree)
            if (kraft, written) != before:
                before, changed_s = (kraft, written), time.monotonic()
            rests = time.monotonic() - changed_s > _LAG_S
            if kraft == written or not is_written or rests or time.monotonic() > deadline:
                return kraft, tree
            await asyncio.sleep(0.5)

    def _note_changes(self, after: ZnodeTree) -> None:
        names = self.load.tokens
        self.report.changes = [
            change
            for change in changed_znodes(self.before_tree, after)
            if PREFIX not in change.path and change.path.rpartition("/")[2] not in names
        ]

    def _keep_state(self, phase: str) -> None:
        """Note how far the rehearsal is, for a rollback."""
        before = [[item.kind, item.name, value] for item, value in self.before.items()]
        reported = self.evidence.phase_number
        state = {"phase": phase, "reported": reported, "before": before}
        write_json(self.folder / STATE_FILE, state)

    def _finish(self) -> None:
        report = self.report
        report.faults += [
            FaultResult(str(fault), "nothing", "its moment did not come", time.time())
            for fault in self._pending
        ]
        active = self.rehearsal.active
        report.writes, report.notices = dict(active.writes), list(active.notices)
        report.acknowledged = self.load.acknowledged
        report.judged(self.evidence.judge())
        note_seen(report, self.findings)
        self.participants.measure()
        report.memory_mib = dict(self.participants.rss_max_mib)
        remedies = [
            finding.remedy
            for finding in self.findings
            if finding.rule.severity_in(self.options.kafka) in _BLOCKING
        ]
        reached = report.phases[-1].name if report.is_good and report.phases else None
        report.steps = next_steps(reached, remedies, self.files, report.level)


def written_back(findings: Sequence[Finding], kraft: Items, written: Items) -> Comparison:
    """Compare what KRaft has with what it wrote back to ZooKeeper."""
    explain = explained_by(findings, [rewritten, lambda d: resurrected(d.item, written)])
    return compare("KRaft → written back to ZooKeeper", kraft, written, explain)


def note_seen(report: Report, findings: Sequence[Finding]) -> None:
    """Note in the rows of a report's findings what the rehearsal saw of them."""
    comparisons = [c for phase in report.phases for c in phase.comparisons]
    log = [*report.notices, *(f"{kind}=" for kind in report.writes)]
    for row, finding in zip(report.findings, findings, strict=True):
        rule = finding.rule
        if report.outcome == "completed":
            row.seen = seen_of(finding, comparisons, report.changes, log)
        elif report.outcome == row.outcome and any(
            rule.log in line for line in (report.why, *report.notices)
        ):
            row.seen = f"the migration {report.outcome}"


def only_load(items: Items) -> dict[Item, str]:
    """Return the items that the load wrote."""
    return {item: value for item, value in items.items() if is_of_the_load(item, value)}


def _without_load(items: Items) -> dict[Item, str]:
    return {item: value for item, value in items.items() if not is_of_the_load(item, value)}


def row_of(finding: Finding, kafka: str) -> FindingRow:
    """Return a finding as a report has it."""
    rule = finding.rule
    outcome = rule.outcome_in(kafka).value
    return FindingRow(rule.id, rule.what, finding.place.where, outcome, finding.remedy, rule.issue)


def _level_of(files: Sequence[ServerProperties]) -> str:
    """Return the brokers' `inter.broker.protocol.version`; the default of Kafka 3.9 is 3.9."""
    levels = (file.get("inter.broker.protocol.version") for file in files)
    return next((level for level in levels if level), "3.9")


def _migrated_before(tree: ZnodeTree) -> bool:
    """Return whether `/migration` says that metadata was migrated."""
    try:
        content = orjson.loads(tree.data(MIGRATION) or b"{}")
    except orjson.JSONDecodeError:
        return False  # a finding of the scan; Kafka does not go on
    offset = content.get("kraft_metadata_offset", -1) if isinstance(content, dict) else -1
    return isinstance(offset, int) and offset > 0


def _summary(comparison: Comparison) -> str:
    equal = sum(comparison.equal.values())
    different = len(comparison.differences)
    unexplained = len(comparison.unexplained)
    text = f"{comparison.name}: {equal:,} items equal"
    if different:
        text += f", {different:,} different"
    return f"{text}, {unexplained:,} of them unexplained" if unexplained else text


def clock() -> Callable[[str], None]:
    """Return a function that prints sentences with the seconds since now."""
    began_s = time.monotonic()

    def say(sentence: str) -> None:
        sys.stdout.write(f"{time.monotonic() - began_s:7.1f} s  {sentence}\n")
        sys.stdout.flush()

    return say


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of a run, without those that name its source."""
    parser.add_argument("--kafka", choices=KAFKA_VERSIONS, default=KAFKA_VERSIONS[0])
    parser.add_argument("--controllers", type=int, choices=(1, 3), default=1)
    parser.add_argument("--brokers", type=_numbers, default=())
    parser.add_argument("--level", default="")
    parser.add_argument("--fault", action="append", default=[])
    parser.add_argument("--load", action="store_true")
    parser.add_argument("--records", action="store_true")
    parser.add_argument("--out", type=Path, default=Path(".rehearsal"))
    parser.add_argument("--patience", type=float, default=PATIENCE_S)
    migration = parser.add_mutually_exclusive_group()
    migration.add_argument("--keep-migration-znode", action="store_true")
    migration.add_argument("--drop-migration-znode", action="store_true")
    parser.add_argument("--hold-controller", action="store_true")
    parser.add_argument("--node-command", default="", help=argparse.SUPPRESS)


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of broker ids, such as 1,2,3"
        ) from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Rehearse; return the exit code."""
    parser = argparse.ArgumentParser(prog="run", description=__doc__)
    add_source_arguments(parser)
    parser.add_argument("--until", choices=UNTIL, default=UNTIL[0])
    add_run_arguments(parser)
    options = parser.parse_args(arguments)
    logging.getLogger().addHandler(logging.NullHandler())  # kazoo logs each attempt
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell lets background jobs ignore SIGINT
        signal.signal(number, signal.default_int_handler)
    try:
        source, tree, files = read_source(options)
        rehearsed = Run(options, source, tree, files, clock())
        report = asyncio.run(rehearsed.run())
        if options.zookeeper is not None:
            _, again, _ = read_source(options)
            report.zxid_after = again.zxid
            report.source_changes = len(changed_znodes(tree, again))
    except (SourceError, ClusterError, ConnectionLostError, OSError) as error:
        complain(error)
        return ExitCode.CANNOT_RUN
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    report.write(options.out)
    write_page(options.out, report)
    print_report(report, options.out)
    return ExitCode.OK if report.is_good else ExitCode.FAILED


if __name__ == "__main__":
    sys.exit(main())
