"""A rehearsal's report as plain values, kept in `report.json`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from bridgehead.cluster.data_directory import write_private
from judge.verdicts import Judgement, Verdict, VerdictRow
from rehearse.compare import Comparison, ZnodeChange
from rehearse.faults import FaultResult
from rehearse.load import PhaseLoad
from rehearse.phases import Transition
from rehearse.records import PhaseRecords

SCHEMA_VERSION: Final = 1
FILE: Final = "report.json"
_OWN_TRANSACTIONS: Final = 2
PAGE: Final = "report.html"


@dataclass(slots=True)
class Phase:
    """One phase. Times are seconds since 1970; `ended_s` is None if the phase did not end."""

    name: str
    began_s: float
    ended_s: float | None = None
    transitions: Sequence[Transition] = ()
    """What Kafka's driver did in this phase."""
    gap_s: float | None = None
    """How long no controller could write: from the claim of /controller to DUAL_WRITE."""
    records: int | None = None
    comparisons: list[Comparison] = field(default_factory=list)
    load: PhaseLoad | None = None
    record_load: PhaseRecords | None = None

    @property
    def seconds(self) -> float | None:
        """How long the phase took."""
        return None if self.ended_s is None else self.ended_s - self.began_s


@dataclass(slots=True)
class FindingRow:
    """A finding of the scan."""

    rule: str
    what: str
    where: str
    outcome: str
    remedy: str
    issue: str
    seen: str = ""
    """What the rehearsal saw of it; empty if it saw nothing."""


@dataclass(slots=True)
class Report:
    """A rehearsal."""

    source: str
    kafka: str
    level: str
    until: str
    brokers: Sequence[int]
    controllers: Sequence[int]
    znodes: int = 0
    hidden: int = 0
    """Znodes of which the source has not all data: a dump without secrets, or no right to read."""
    zxid_before: int | None = None
    zxid_after: int | None = None
    source_changes: int = 0
    """Znodes of the source that others changed meanwhile; the rehearsal only reads."""
    findings: list[FindingRow] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)
    outcome: str = "completed"
    """`completed`, or what became of the migration (`rehearse.findings.Outcome`)."""
    why: str = ""
    """Why it did not complete, in Kafka's words."""
    writes: dict[str, int] = field(default_factory=dict)
    """What the controller wrote to ZooKeeper in its syncs, by Kafka's names."""
    notices: list[str] = field(default_factory=list)
    """Lines of the controller's log that name a lost or changed item."""
    changes: list[ZnodeChange] = field(default_factory=list)
    """What the controller removed or created in ZooKeeper."""
    acknowledged: int = 0
    verdict: VerdictRow | None = None
    """The judge's, on whether both witnesses have the acknowledged writes after each phase."""
    lost: list[str] = field(default_factory=list)
    """A sentence for each that a witness does not have."""
    faults: list[FaultResult] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    """The next steps for the real cluster."""
    memory_mib: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def others_wrote(self) -> int | None:
        """How many transactions of others the source had meanwhile; None if that is unknown.

        The end of the first reading session and the begin of the second one are the own two.
        """
        if self.zxid_before is None or self.zxid_after is None:
            return None
        difference = self.zxid_after - self.zxid_before - _OWN_TRANSACTIONS
        return difference if difference >= 0 and not difference >> 32 else None

    @property
    def unexplained(self) -> int:
        """The number of differences that nothing explains."""
        return sum(len(c.unexplained) for phase in self.phases for c in phase.comparisons)

    def judged(self, judgement: Judgement) -> None:
        """Take over the judge's verdict on the acknowledged writes."""
        self.verdict = judgement.row
        self.lost = [violation.sentence for violation in judgement.violations]

    @property
    def is_good(self) -> bool:
        """Whether it completed, kept acknowledged writes, and explained each difference."""
        is_kept = self.verdict is None or self.verdict.verdict in (Verdict.PASS, Verdict.NODATA)
        is_kept = is_kept and not self.lost_records
        return self.outcome == "completed" and not self.unexplained and is_kept

    @property
    def lost_records(self) -> int:
        """The number of acknowledged records that a phase lost."""
        loads = (phase.record_load for phase in self.phases)
        return sum(load.lost or 0 for load in loads if load is not None)

    def document(self) -> dict[str, Any]:
        """Return the report as JSON."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {"schema_version": SCHEMA_VERSION, **_plain(fields)}

    def write(self, folder: Path) -> None:
        """Write `report.json`."""
        document = orjson.dumps(self.document(), option=orjson.OPT_INDENT_2)
        write_private(folder / FILE, document)


def errors_of(errors: Mapping[str, int]) -> str:
    """Return counted errors, such as `2 _MSG_TIMED_OUT`, or `none`."""
    return ", ".join(f"{count} {name}" for name, count in sorted(errors.items())) or "none"


def verdict_on_writes(row: VerdictRow) -> str:
    """Return the judge's verdict on the acknowledged writes as one sentence."""
    if row.verdict is Verdict.NODATA:
        return f"{row.verdict} {row.property}: no write of a load was acknowledged."
    if row.violations:
        return (
            f"{row.verdict} {row.property}: in {row.violations:,} of {row.judged:,} comparisons "
            "with KRaft's log and ZooKeeper, what was acknowledged is missing."
        )
    if row.why:
        return f"{row.verdict} {row.property}: {row.why}."
    return (
        f"{row.verdict} {row.property}: KRaft's log and ZooKeeper had all acknowledged writes "
        f"after each phase ({row.judged:,} comparisons)."
    )


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: dataclasses and named tuples become objects."""
    if dataclasses.is_dataclass(value):
        return {
            field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value
