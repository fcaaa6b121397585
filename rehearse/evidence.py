"""The evidence of a rehearsal and its rollback: one run, which `bridgehead judge` reads.

It has the requests and responses of the load, and what the witnesses have after each phase. A
rollback adds to the run and seals it again.
"""

from __future__ import annotations

import dataclasses
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bridgehead.cluster.data_directory import write_json
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.event_lines import EventLines, host_boot_id, software_versions
from bridgehead.kafka_wire.api_key import ApiKey
from event_log.evidence import RUN, RunDescription
from judge.evidence.reading import read_sealed
from judge.evidence.run_files import EvidenceError
from judge.evidence.run_lookup import find_runs, seal_now
from judge.history import History
from judge.properties import migrated_write_is_kept
from judge.verdicts import Judgement, judge
from rehearse.metadata import Item, Items

FOLDER: Final = "evidence"
SENT: Final = "sent"
ACKNOWLEDGED: Final = migrated_write_is_kept.ACKNOWLEDGED
ANY: Final = migrated_write_is_kept.ANY
KRAFT, ZOOKEEPER = migrated_write_is_kept.KRAFT, migrated_write_is_kept.ZOOKEEPER
Facts = Mapping[Item, str | None]
"""What must hold once a request is acknowledged; a value of None: the item must not exist."""
_PAGE_ITEMS_MAX: Final = 500


class Evidence:
    """What one command adds to the run of a rehearsal. Thread-safe."""

    def __init__(self, run: Path, run_id: str, phase_number: int) -> None:
        """`phase_number` is the number of phases that were reported."""
        self.run = run
        self.phase_number = phase_number
        self._lines = EventLines(run, run_id, "client", "rehearsal")

    @classmethod
    def create(cls, folder: Path, *, brokers: int) -> Evidence:
        """Begin the run of a rehearsal in `folder`."""
        run_id = secrets.token_hex(8)
        run = folder / FOLDER / f"run={run_id}"
        run.mkdir(mode=0o700, parents=True)
        description = RunDescription(
            run_id=run_id,
            expected=[migrated_write_is_kept.SPEC.id],
            versions=software_versions(),
            host_boot_id=host_boot_id(),
            started_ms=time.time_ns() // 1_000_000,
            brokers=brokers,
        )
        write_json(run / RUN, dataclasses.asdict(description))
        return cls(run, run_id, 0)

    @classmethod
    def open(cls, folder: Path, *, phase_number: int) -> Evidence:
        """Continue the run of the rehearsal in `folder`. Raises ClusterError."""
        try:
            run = find_runs(folder / FOLDER)[-1]
        except EvidenceError as error:
            raise ClusterError(f"{error} Run the rehearsal again.") from error
        return cls(run, run.name.removeprefix("run="), phase_number)

    def write(self, api: str, outcome: str, facts: Facts) -> None:
        """Note that a request is sent, or has got its response. `api` is Kafka's name of it."""
        self._lines.append(
            "metadata_write",
            phase_number=self.phase_number,
            api_key=_api_key(api),
            outcome=outcome,
            present=[f"{item}\t{value}" for item, value in facts.items() if value is not None],
            absent=[str(item) for item, value in facts.items() if value is None],
        )

    def report(self, name: str, witnesses: Mapping[str, Items]) -> None:
        """Note what each witness has of the load's items after the phase of this name.

        The load must be paused: what it sends from now on belongs to the next phase.
        """
        for witness, items in witnesses.items():
            entries = [f"{item}\t{value}" for item, value in items.items()]
            starts = range(0, max(1, len(entries)), _PAGE_ITEMS_MAX)
            for start in starts:
                self._lines.append(
                    "metadata_held",
                    phase_number=self.phase_number,
                    name=name,
                    witness=witness,
                    items=entries[start : start + _PAGE_ITEMS_MAX],
                    is_last=start == starts[-1],
                )
        self.phase_number += 1

    def close(self) -> None:
        """End the events of this command. May be called twice."""
        self._lines.close("the command ends")

    def judge(self) -> Judgement:
        """Seal the run, and judge whether what was acknowledged was kept.

        Raises:
            ClusterError: the run cannot be sealed, or something else changed it.
        """
        self.close()
        try:
            seal_now(self.run)
            return judge(History(read_sealed(self.run)), (migrated_write_is_kept,))[0]
        except EvidenceError as error:
            raise ClusterError(f"{self.run} cannot be judged: {error}") from error


def _api_key(api: str) -> int:
    """Return the key of an API, such as 19 of CreateTopics."""
    return next(int(key) for key in ApiKey if key.name.replace("_", "").lower() == api.lower())
