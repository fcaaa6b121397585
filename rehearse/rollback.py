"""`python -m rehearse.rollback`: the command behind `bridgehead rehearse rollback`.

It starts a rehearsal again where `run` left it, goes back to ZooKeeper, and may migrate once more.
Kafka's own steps for the way back, with what its documentation leaves out:

1. Brokers in KRaft mode go back to ZooKeeper mode, one by one, while the controller runs.
2. The controllers stop.
3. `/controller_epoch` is raised above every `controller_epoch` of a partition's state. KRaft writes
   its own epoch there, and a ZooKeeper controller elects no leader below it.
4. `/controller`, which is persistent, and `/migration` are deleted.
5. A broker becomes controller.

A trap leaves out one of these steps, to show what follows.
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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from bridgehead.admin import AdminClient, NewTopicWithReplication
from bridgehead.admin.errors import AdminError
from bridgehead.cluster.data_directory import read_json, write_json
from bridgehead.cluster.errors import ClusterError
from bridgehead.exit_codes import ExitCode
from cluster_model.session_state import ConnectionLostError
from judge.terminal import complain
from rehearse.compare import Explain, compare, restarts
from rehearse.copying import (
    CONTROLLER,
    EPOCH,
    MIGRATION,
    delete_if_present,
    raise_epoch,
    read_znode,
)
from rehearse.evidence import ACKNOWLEDGED, ANY, KRAFT, SENT, ZOOKEEPER, Evidence, Facts
from rehearse.metadata import Item, Items, Kind, items_of_znodes
from rehearse.metadata_log import FOLDER
from rehearse.participants import Participants
from rehearse.rehearsal import PATIENCE_S, BlockedError, Rehearsal
from rehearse.report.document import Phase, Report
from rehearse.report.page import write_page
from rehearse.report.terminal import print_report
from rehearse.run import STATE_FILE, clock, only_load
from rehearse.znodes import SourceError, ZnodeTree

TRAPS: Final = ("epochs", "controller", "migration")
_BACK: Final = "zookeeper"  # the phase in the state file after a rollback
_AFTER_ROLLBACK: Final = "rehearsal-after-rollback"
_CREATED: Final[Facts] = {Item(Kind.TOPIC, _AFTER_ROLLBACK): ANY}
# More than a rollback and the restart before it add to /controller_epoch.
_EPOCHS_ABOVE: Final = 5
_ELECTION_S: Final = 20.0
_TRIAL_TIMEOUT_MS: Final = 15_000


class Rollback:
    """The way back of one rehearsal."""

    def __init__(self, options: argparse.Namespace, say: Any) -> None:
        self.folder: Path = options.run
        state = read_json(self.folder / STATE_FILE)
        if state is None or "reported" not in state:
            raise ClusterError(
                f"{self.folder} has no rehearsal that reached a phase: `bridgehead rehearse run` "
                "first."
            )
        self.state = state
        self.phase = str(state["phase"])
        if self.phase == _BACK:
            raise ClusterError(
                "The rehearsal is back in ZooKeeper already: `bridgehead rehearse run` begins a "
                "new one."
            )
        if self.phase == "finalize":
            raise ClusterError(
                "The rehearsal is finalized, and so there is no way back: Kafka writes nothing to "
                "ZooKeeper any more. Rehearse with --until hybrid or --until dual-write."
            )
        self.before: Items = _items(state["before"])
        self.trap: str | None = options.trap
        self.again: bool = options.again
        self.say = say
        self.participants = Participants.open(
            self.folder, node_command=shlex.split(options.node_command)
        )
        # One more: the load of the run may have sent something after its last report.
        self.evidence = Evidence.open(self.folder, phase_number=int(state["reported"]) + 1)
        self.rehearsal = Rehearsal(self.participants, say, patience_s=options.patience)
        self.rehearsal.topics = sum(item.kind is Kind.TOPIC for item in self.before)
        plan = self.participants.plan
        self.report = Report(
            str(self.folder),
            plan.kafka,
            plan.level,
            "rollback",
            [broker.id for broker in plan.brokers],
            list(plan.controllers),
        )

    async def run(self) -> Report:
        """Go back; return the report."""
        began_s = time.monotonic()
        try:
            await self._start_again()
            self._keep_phase(_BACK)
            await self._phase(f"rollback from {self.phase}", self._back)
            if self.again or self.trap == "migration":
                await self._phase("second attempt", self._second_attempt, has_kraft=True)
                self._keep_phase("hybrid")
        except BlockedError as blocked:
            self.report.outcome, self.report.why = blocked.outcome.value, blocked.why
        except (ClusterError, ConnectionLostError, SourceError) as error:
            if not self.report.phases:
                raise
            self.report.outcome, self.report.why = "failed", str(error)
        finally:
            self.participants.stop()
            self.evidence.close()
        self.report.judged(self.evidence.judge())
        self.report.seconds = time.monotonic() - began_s
        self.report.memory_mib = dict(self.participants.rss_max_mib)
        return self.report

    def _keep_phase(self, phase: str) -> None:
        reported = self.evidence.phase_number
        state = {**self.state, "phase": phase, "reported": reported}
        write_json(self.folder / STATE_FILE, state)

    async def _start_again(self) -> None:
        zookeeper = self.participants.zookeeper
        zookeeper.start()
        await asyncio.to_thread(zookeeper.wait_until_serving)
        if self.trap == "epochs":
            await self._raise_krafts_epoch()
        if self.phase == "hybrid":
            await self.rehearsal.start_cluster(awaits_controller=False)
        self.rehearsal.start_controllers()
        if self.phase == "dual-write":
            await self.rehearsal.start_kraft_brokers()
        await self.rehearsal.until_dual_write()
        self.say("the rehearsal is where it was")

    async def _raise_krafts_epoch(self) -> None:
        """Let the quorum remember more elections than ZooKeeper's controllers had."""
        znode = await read_znode(self.participants.connect, EPOCH)
        zookeepers = int(znode.data or b"0") if znode is not None else 0
        epoch = max(self.rehearsal.metadata().epoch, zookeepers) + _EPOCHS_ABOVE
        self._remember_epoch(epoch)
        self.say(f"the next epoch of KRaft is {epoch + 1}; /controller_epoch is {zookeepers}")

    def _remember_epoch(self, epoch: int) -> None:
        """Write the state of a quorum that has had `epoch` elections."""
        voters = [{"voterId": number} for number in self.participants.plan.controllers]
        state = {
            "clusterId": "",
            "leaderId": -1,
            "leaderEpoch": epoch,
            "votedId": -1,
            "appliedOffset": 0,
            "currentVoters": voters,
            "data_version": 0,
        }
        for controller in self.participants.controllers.values():
            folder = controller.log_dir / FOLDER
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "quorum-state").write_bytes(orjson.dumps(state))

    async def _back(self) -> None:
        if self.phase == "dual-write":
            await self.rehearsal.back_to_nodes()
        for controller in self.participants.controllers.values():
            controller.stop()
        self.say("the controllers are stopped: no admin write is possible")
        stopped_s = time.time()
        connect = self.participants.connect
        tree = await self.rehearsal.tree()
        epochs, epoch = _state_epochs(tree), _epoch(tree)
        highest = max(epochs, default=0)
        self.say(f"/controller_epoch is {epoch}, the highest of a partition's state {highest}")
        if highest >= epoch and self.trap != "epochs":
            await raise_epoch(connect, highest + 1)
            self.say(f"/controller_epoch is raised to {highest + 1}")
            epoch = highest + 1
        problem = _epoch_problem(epochs, epoch + 1)
        paths = [
            path
            for path, trap in ((CONTROLLER, "controller"), (MIGRATION, "migration"))
            if self.trap != trap
        ]
        deleted = await delete_if_present(connect, *paths)
        self.say(f"deleted: {', '.join(deleted) or 'nothing'}")
        await self.rehearsal.wait(
            "a ZooKeeper controller",
            self.rehearsal.zookeeper_controller,
            _ELECTION_S,
            lambda: "/controller is persistent, and still KRaft's" if self.trap else "",
        )
        self.report.phases[-1].gap_s = time.time() - stopped_s
        await self._write_something()
        if problem:
            raise ClusterError(problem)

    async def _write_something(self) -> None:
        """Create a topic through the brokers: the ZooKeeper controller must answer again."""
        if not self.participants.serves_clients:
            return
        self.evidence.write("CreateTopics", SENT, _CREATED)
        await asyncio.to_thread(_create_topic, self.participants.client_properties)
        self.evidence.write("CreateTopics", ACKNOWLEDGED, _CREATED)
        self.say("the ZooKeeper controller has created a topic")

    async def _second_attempt(self) -> None:
        """Migrate again, with a new log of the controllers."""
        epoch = self.rehearsal.metadata().epoch
        for controller in self.participants.controllers.values():
            shutil.rmtree(controller.log_dir)
        if self.trap == "migration":
            # Kafka compares epochs first: below the one in /migration, it would wait for ever.
            self._remember_epoch(epoch)
        for progress in self.rehearsal.progress.values():
            progress.begin_again()
        self.rehearsal.start_controllers()
        await self.rehearsal.until_dual_write()

    async def _phase(self, name: str, play: Any, *, has_kraft: bool = False) -> None:
        self.say(f"— {name} —")
        phase = Phase(name, time.time())
        self.report.phases.append(phase)
        seen = len(self.rehearsal.active.transitions)
        await play()
        phase.ended_s = time.time()
        phase.transitions = self.rehearsal.active.transitions[seen:]
        zookeeper = items_of_znodes(await self.rehearsal.tree())
        witnesses = {ZOOKEEPER: only_load(zookeeper)}
        if has_kraft:
            witnesses[KRAFT] = only_load(self.rehearsal.metadata().items())
        self.evidence.report(name, witnesses)
        kept = {item: value for item, value in zookeeper.items() if item in self.before}
        comparison = compare(f"ZooKeeper before → after the {name}", self.before, kept, _explain)
        phase.comparisons.append(comparison)
        self.say(f"{sum(comparison.equal.values()):,} items are as before the migration")


_explain: Explain = restarts


def _items(rows: Sequence[Sequence[Any]]) -> dict[Item, Any]:
    return {Item(Kind(kind), name): value for kind, name, value in rows}


def _states(tree: ZnodeTree) -> list[dict[str, Any]]:
    states = []
    for topic in tree.children("/brokers/topics"):
        for partition in tree.children(f"/brokers/topics/{topic}/partitions"):
            data = tree.data(f"/brokers/topics/{topic}/partitions/{partition}/state")
            try:
                content = orjson.loads(data or b"{}")
            except orjson.JSONDecodeError:
                continue
            if isinstance(content, dict):
                states.append(content)
    return states


def _state_epochs(tree: ZnodeTree) -> list[int]:
    epochs = (state.get("controller_epoch", 0) for state in _states(tree))
    return [epoch for epoch in epochs if isinstance(epoch, int)]


def _epoch_problem(epochs: Sequence[int], next_epoch: int) -> str:
    """Return why a Kafka controller with this epoch could not elect leaders; empty if it could.

    Our own controller elects them all the same.
    """
    above = sum(epoch > next_epoch for epoch in epochs)
    if not above:
        return ""
    return (
        f"{above} of {len(epochs)} partitions have an epoch of up to {max(epochs)} in their state, "
        f"and the next ZooKeeper controller has epoch {next_epoch}: if their leader ends, Kafka "
        "elects no other (`the LeaderAndIsr path was already written by another controller`)."
    )


def _epoch(tree: ZnodeTree) -> int:
    text = (tree.data(EPOCH) or b"").decode("ascii", "replace")
    if not text.isdecimal():
        raise ClusterError(f"{EPOCH} has no number, so no broker can become controller.")
    return int(text)


def _create_topic(properties: Mapping[str, object]) -> None:
    with AdminClient({**properties, "default.api.timeout.ms": _TRIAL_TIMEOUT_MS}) as client:
        try:
            client.create_topic(NewTopicWithReplication(_AFTER_ROLLBACK, 1, 1))
        except AdminError as error:
            raise ClusterError(f"The ZooKeeper controller creates no topic: {error}") from error


def main(arguments: Sequence[str] | None = None) -> int:
    """Roll back; return the exit code."""
    parser = argparse.ArgumentParser(prog="rollback", description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--trap", choices=TRAPS)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--patience", type=float, default=PATIENCE_S)
    parser.add_argument("--node-command", default="", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    logging.getLogger().addHandler(logging.NullHandler())  # kazoo logs each attempt
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell lets background jobs ignore SIGINT
        signal.signal(number, signal.default_int_handler)
    folder: Path = options.run / "rollback"
    try:
        report = asyncio.run(Rollback(options, clock()).run())
    except (SourceError, ClusterError, ConnectionLostError, OSError) as error:
        complain(error)
        return ExitCode.CANNOT_RUN
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    folder.mkdir(exist_ok=True)
    report.write(folder)
    write_page(folder, report)
    print_report(report, folder)
    return ExitCode.OK if report.is_good else ExitCode.FAILED


if __name__ == "__main__":
    sys.exit(main())
