"""`python -m rehearse.seeded [NAME...]`: give each seeded inconsistency to a real controller.

What the controller does must be what the rule says that names the seed in a scan. `make
rehearse-all` runs it.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bridgehead.cluster.errors import ClusterError
from bridgehead.exit_codes import ExitCode
from cluster_model.session_state import ConnectionLostError
from cluster_model.znodes.operations import Create, Delete, Operation, SetData
from judge.terminal import complain
from rehearse.checks import scan
from rehearse.cluster import Cluster
from rehearse.compare import changed_znodes, compare, explained_by, restarts
from rehearse.copying import MIGRATION, copy_tree, write_znodes
from rehearse.findings import KAFKA_VERSIONS, Finding, Outcome
from rehearse.kraft.jars import find_jars, find_kafkas_java
from rehearse.metadata import Items, items_of_znodes
from rehearse.metadata_records import MigrationState
from rehearse.participants import Participants
from rehearse.rehearsal import BlockedError, Rehearsal
from rehearse.report.document import FindingRow, Phase, Report
from rehearse.run import note_seen, row_of, written_back
from rehearse.seeds import SEEDS, Seed, healthy
from rehearse.znodes import SourceError, ZnodeTree

# The controller repeats what it waits for after 0.1 to 5 s.
PATIENCE_S: Final = 15.0
_AFTER_S: Final = 2.0  # the controller writes the metadata back before this
_WORST_FIRST: Final = (Outcome.DELETED, Outcome.LOST, Outcome.CHANGED, Outcome.KEPT)


class Played(NamedTuple):
    """What a controller did with a seed, and the report of it."""

    seed: Seed
    expected: Outcome
    observed: Outcome
    report: Report
    is_comparable: bool
    """Whether a comparison has the seed's items. What Kafka cannot read is in none."""
    seconds: float

    @property
    def row(self) -> FindingRow | None:
        """What the report says of the seed's finding; None if the scan does not name it."""
        rows = [row for row in self.report.findings if row.rule == self.seed.rule]
        # One of several places may be all that differs.
        return next((row for row in rows if row.seen), rows[0] if rows else None)

    @property
    def is_reported(self) -> bool:
        """Whether the report says what happened."""
        if self.row is None or self.row.outcome != self.observed.value:
            return False
        if self.observed is Outcome.LOST and not self.is_comparable:
            return True
        return bool(self.row.seen) is (self.observed is not Outcome.KEPT)

    @property
    def agrees(self) -> bool:
        """Whether controller, rule, scan and report agree, and nothing else differs."""
        is_explained = not self.report.unexplained
        return self.is_reported and is_explained and self.observed is self.expected


async def play(
    seed: Seed,
    kafka: str,
    folder: Path,
    node_command: Sequence[str] = (),
    patience_s: float = PATIENCE_S,
) -> Played:
    """Migrate a healthy cluster with one seed. Raises ClusterError."""
    began_s = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    tree = healthy()
    participants = Participants.create(
        folder, tree, kafka=kafka, level="3.9", controllers=1, broker_ids=(),
        node_command=node_command,
    )  # fmt: skip
    rehearsal = Rehearsal(participants, lambda _sentence: None, patience_s=patience_s)
    try:
        participants.zookeeper.start()
        await asyncio.to_thread(participants.zookeeper.wait_until_serving)
        await copy_tree(tree, participants.connect, with_migration=True)
        await rehearsal.start_cluster(hold_controller=True)
        await _plant(seed, await rehearsal.tree(), participants.connect)
        before = await rehearsal.tree()
        findings = scan(Cluster(before))
        rows = [row_of(finding, kafka) for finding in findings]
        report = Report("", kafka, "3.9", "hybrid", (), (), findings=rows)
        rehearsal.start_controllers()
        items = items_of_znodes(before)
        try:
            await rehearsal.until_dual_write()
            await asyncio.sleep(_AFTER_S)
            migrated = rehearsal.metadata(MigrationState.MIGRATION).items()
            after, items = await rehearsal.tree(), {**migrated, **items}
            observed = outcome_of(seed, before, migrated, after)
            report.phases.append(_compared(findings, before, migrated, rehearsal, after))
            report.changes = changed_znodes(before, after)
        except BlockedError as blocked:
            observed = blocked.outcome
            report.outcome, report.why = blocked.outcome.value, blocked.why
    finally:
        participants.kill()
    active = rehearsal.active
    report.writes, report.notices = active.writes, active.notices
    note_seen(report, findings)
    is_comparable = any(str(item) in seed.items for item in items)
    seconds = time.monotonic() - began_s
    return Played(seed, seed.outcome_in(kafka), observed, report, is_comparable, seconds)


def _compared(
    findings: Sequence[Finding],
    before: ZnodeTree,
    migrated: Items,
    rehearsal: Rehearsal,
    after: ZnodeTree,
) -> Phase:
    """Return the phase of a report that has what a rehearsal compares."""
    written, kraft = items_of_znodes(after), rehearsal.metadata().items()
    explain = explained_by(findings, [restarts])
    comparisons = [
        compare("", items_of_znodes(before), migrated, explain),
        written_back(findings, kraft, written),
    ]
    return Phase("hybrid", 0.0, comparisons=comparisons)


async def _plant(seed: Seed, tree: ZnodeTree, connect: str) -> None:
    """Write a seed into a running cluster, as a careless hand would."""
    planted = seed.planted(tree)
    removed = sorted((path for path in tree.znodes if path not in planted), reverse=True)
    operations: list[Operation] = [Delete(path) for path in removed]
    for path in sorted(planted.znodes):
        data = planted.data(path)
        if path not in tree:
            operations.append(Create(path, data))
        elif path in seed.put and data != tree.data(path):
            operations.append(SetData(path, data or b""))
    await write_znodes(connect, *operations)


def outcome_of(seed: Seed, before: ZnodeTree, migrated: Items, after: ZnodeTree) -> Outcome:
    """Return the worst that became of a seed's items, or of its znodes if it has no items."""
    outcomes = set(_of_items(seed, before, migrated, after)) or set(_of_znodes(seed, after))
    return next(outcome for outcome in _WORST_FIRST if outcome in outcomes)


def _of_items(
    seed: Seed, before: ZnodeTree, migrated: Items, after: ZnodeTree
) -> Iterator[Outcome]:
    was, written = items_of_znodes(before), items_of_znodes(after)
    created = any(path not in before and path.startswith("/config/users/") for path in after.znodes)
    renamed = {item.kind for item in migrated.keys() - was.keys()}
    changes = changed_znodes(before, after)
    created = created or any("rewritten" in c.what and c.path in seed.put for c in changes)
    for item in was.keys() | migrated.keys():
        if str(item) not in seed.items:
            continue
        if item in migrated:
            is_kept = was.get(item) == migrated[item] and not created
            yield Outcome.KEPT if is_kept else Outcome.CHANGED
        elif item.kind in renamed:
            yield Outcome.CHANGED  # such as an ACL with another operation
        else:
            yield Outcome.LOST if item in written else Outcome.DELETED
    unreadable = set(seed.items) - set(map(str, was.keys() | migrated.keys()))
    if unreadable:
        yield from _of_znodes(seed, after)


def _of_znodes(seed: Seed, after: ZnodeTree) -> Iterator[Outcome]:
    for path, data in seed.put.items():
        if path == MIGRATION and after.data(path) != data:
            yield Outcome.KEPT  # the controller took it for its own, and went on
        else:
            yield Outcome.LOST if path in after else Outcome.DELETED
    if not seed.put:
        yield Outcome.KEPT


def main(arguments: Sequence[str] | None = None) -> int:
    """Play seeds; return the exit code."""
    parser = argparse.ArgumentParser(prog="seeded", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--kafka", choices=KAFKA_VERSIONS, default=KAFKA_VERSIONS[0])
    parser.add_argument("--out", type=Path, default=Path(".rehearsal-seeds"))
    parser.add_argument("--jobs", type=int, default=3, help="seeds at a time; each takes 1 GiB")
    parser.add_argument(
        "--patience", type=float, default=PATIENCE_S, help="seconds; more on a busy machine"
    )
    parser.add_argument("--node-command", default="", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    logging.getLogger().addHandler(logging.NullHandler())  # kazoo logs each attempt
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell lets background jobs ignore SIGINT
        signal.signal(number, signal.default_int_handler)
    unknown = set(options.names) - {seed.name for seed in SEEDS}
    if unknown:
        complain(ClusterError(f"There is no seed {', '.join(sorted(unknown))}."))
        return ExitCode.USAGE
    chosen = [seed for seed in SEEDS if not options.names or seed.name in options.names]
    try:
        find_kafkas_java()
        find_jars(options.kafka)
        disagreeing = asyncio.run(_play_all(chosen, options))
    except ClusterError as error:
        complain(error)
        return ExitCode.CANNOT_RUN
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    return ExitCode.FAILED if disagreeing else ExitCode.OK


async def _play_all(seeds: Sequence[Seed], options: argparse.Namespace) -> int:
    """Play seeds, some at once; return how many disagree."""
    jobs = asyncio.Semaphore(options.jobs)
    command = shlex.split(options.node_command)

    async def play_one(seed: Seed) -> bool:
        async with jobs:
            try:
                folder = options.out / seed.name
                played = await play(seed, options.kafka, folder, command, options.patience)
            except (ClusterError, ConnectionLostError, SourceError) as error:
                sys.stdout.write(f"FAIL {seed.name}: {error}\n")
                return False
        sys.stdout.writelines(f"{line}\n" for line in _lines(played))
        sys.stdout.flush()
        return played.agrees

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(play_one(seed)) for seed in seeds]
    return sum(not task.result() for task in tasks)


def _lines(played: Played) -> Iterator[str]:
    mark = "ok  " if played.agrees else "FAIL"
    yield f"{mark} {played.seed.name:<28}{played.observed.value:<16}{played.seconds:6.1f} s"
    if not played.agrees:
        row, unexplained = played.row, played.report.unexplained
        yield (
            f"     expected: {played.expected.value}; the scan names it: {row is not None}; "
            f"the report says: {row and row.seen!r}; {unexplained} unexplained"
        )
        if played.report.why:
            yield f"     {played.report.why}"


if __name__ == "__main__":
    sys.exit(main())
