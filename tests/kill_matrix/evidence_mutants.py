"""Each evidence mutant is one change of a golden history, with what `bridgehead judge` must find.

The events get their numbers after the change. So a dropped or doubled event leaves no gap and no
repeated number, as if the node had never written the event, or had written it twice. The golden
histories cover gaps, damaged lines and missing files.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from tests import golden_histories


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceMutant:
    """One change, at the first line of the kind `at`, or at the transaction with this zxid."""

    does: Literal["drop", "double", "alter", "cut"]  # cut: this line and all later ones
    of: str  # `<node>/<boot>`, or `zookeeper`
    at: str | int  # a kind, or a zxid
    values: Mapping[str, Any] = field(default_factory=dict)  # of an altered line
    history: str = "forwarded_creation"
    violates: tuple[str, ...] = ()  # all properties with a violation
    run: str = "FAIL"  # the verdict on the run

    @property
    def title(self) -> str:
        """What is changed, in a few words."""
        line = f"transaction {self.at}" if self.of == "zookeeper" else f"`{self.at}` of {self.of}"
        if self.does == "alter":
            values = ", ".join(f"`{key}` to `{value!r}`" for key, value in self.values.items())
            return f"set {values} in {line}"
        return f"{self.does} {line}{' and all later lines' if self.does == 'cut' else ''}"

    def apply(self) -> dict[str, Any]:
        """Return the changed history."""
        golden = golden_histories.load(self.history)
        lines = golden_histories.items_of(golden, self.of)
        index = next(i for i, line in enumerate(lines) if golden_histories.is_at(line, self.at))
        if self.does == "drop":
            del lines[index]
        elif self.does == "double":
            lines.insert(index, deepcopy(lines[index]))
        elif self.does == "cut":
            del lines[index:]
        else:
            line = lines[index]
            target = line if self.of == "zookeeper" else line[self.at]
            target |= self.values
        return golden


def _drop(of: str, at: str | int, *violates: str, **others: Any) -> EvidenceMutant:
    return EvidenceMutant(does="drop", of=of, at=at, violates=violates, **others)


def _double(of: str, at: str | int, *violates: str, **others: Any) -> EvidenceMutant:
    return EvidenceMutant(does="double", of=of, at=at, violates=violates, **others)


def _cut(of: str, at: str | int, *violates: str, **others: Any) -> EvidenceMutant:
    return EvidenceMutant(does="cut", of=of, at=at, violates=violates, **others)


def _alter(
    of: str, at: str | int, values: Mapping[str, Any], *violates: str, **others: Any
) -> EvidenceMutant:
    return EvidenceMutant(does="alter", of=of, at=at, values=values, violates=violates, **others)


EVIDENCE_MUTANTS: Final[tuple[EvidenceMutant, ...]] = (
    _drop("2/b", "session_opened", "W6"),
    _drop("2/b", "request_received", "K2"),
    _drop("2/b", "forward_sent", "F10", "K1", "K2"),
    _drop("2/b", "responded", "K1"),
    _drop("1/a", "resigned", "K7", history="controller_resigns_when_superseded"),
    _drop("up/h", "node_ended", "T1", history="fault_effective", run="UNKNOWN"),
    _drop("zookeeper", 1, "D1"),
    _drop("zookeeper", 4, "W1", "W5", "D1", "R6"),
    _drop("zookeeper", 5, "D1", "D5", "R6", "K4"),
    _drop("zookeeper", 6, "D1"),
    _drop("zookeeper", 7, "D1"),
    _double("2/b", "request_received", "K2"),
    _double("2/b", "forward_sent", "K2"),
    _double("2/b", "forward_replied", "K2"),
    _double("2/b", "responded", "K1", "K2"),
    _double("zookeeper", 4, "W4"),
    _alter("1/a", "execution_started", {"client_host": "10.0.0.2"}, "F1"),
    _alter("1/a", "execution_started", {"listener": "INTERNAL"}, "F1"),
    _alter("1/a", "execution_started", {"body_sha256": "b2"}, "F2"),
    _alter("1/a", "request_decided", {"response_sha256": "a2"}, "F2"),
    _alter("1/a", "request_decided", {"elements": [["orders", 44]]}, "D2"),
    _alter("1/a", "request_decided", {"elements": [["orders", 36]]}, "D2", "D5"),
    _alter("2/b", "records_acknowledged", {"crc": 98}, "D6", history="records_are_kept"),
    _drop("1/a", "offsets_removed", "D11", history="committed_offsets_are_kept"),
    _alter(
        *("2/b", "offsets_committed", {"offsets": ["orders:0:2"]}, "D11"),
        history="committed_offsets_are_kept",
    ),
    _alter("load/k", "metadata_held", {"items": []}, "D12", history="migrated_writes_are_kept"),
    _alter("2/b", "image_advanced", {"zxid": 7}, "R2"),
    _alter("2/b", "responded", {"error": 41}, "F5"),
    _alter(
        "2/b", "authenticated", {"ends_at_ms": 1_699_999_999_000}, "A10", history="credential_ends"
    ),
    _alter("2/b", "metrics_snapshot", {"values": {"num_messages_redirected_count": 2}}, "K1"),
    _alter("zookeeper", 4, {"session": "0x2"}, "W1", "W5", "W6"),
    _alter("zookeeper", 5, {"session": "0xc"}, "W1", "W6", "K4"),
    _alter("zookeeper", 5, {"failed": True}, "D1", "D5", "K4"),
    _alter("zookeeper", 5, {"outcomes": []}, "D1", "D5"),
    _alter("zookeeper", 6, {"session": "0x2"}, "W5"),
    _drop("1/a", "envelope_received", "D3", history="request_executed_twice"),
    _alter(
        *("1/a", "request_decided", {"elements": [["orders", 36]], "zxid": 4}, "D5"),
        history="rejection_without_effect",
    ),
    _alter(
        *("1/a", "request_decided", {"elements": [["orders", 44]], "zxid": 6}, "F7"),
        history="duplicate_envelope_joined",
    ),
    _alter(
        *("zookeeper", 8, {"outcomes": [[2, "b", 2, "r1", "orders", 0]]}, "D4"),
        history="timed_out_request_committed_twice",
    ),
    _alter("1/a", "commit_sent", {"epoch": 2}, "W7"),
    _alter(
        *("load/k", "client_completed", {"elements": []}, "D7"), history="client_history_agrees"
    ),
    _alter("1/a", "request_decided", {"validate_only": True}, "D9"),
    _alter("2/b", "responded", {"error": 31}, "F6", history="envelope_error_is_mapped"),
    _alter("2/b", "forward_sent", {"at_ms": 41_004}, "F8"),
    _alter("1/a", "execution_started", {"identity": [2, "z", 1]}, "F10"),
    _alter("1/a", "image_advanced", {"zxid": 9}, "R6"),
    _alter("1/a", "commit_acknowledged", {"zxid": 9}, "K4"),
    _alter("2/b", "responded", {"at_ms": 60_004}, "L1", run="HANG"),
    _cut("1/a", "envelope_received", run="UNKNOWN"),
    _cut("1/a", "commit_sent", run="UNKNOWN"),
    _cut("1/a", "stopped", run="UNKNOWN"),
    _cut("2/b", "forward_replied", run="UNKNOWN"),
    _cut("2/b", "stopped", run="UNKNOWN"),
    _cut("zookeeper", 4, "D1", "D5", "R6", "K4"),
    _cut("zookeeper", 5, "D1", "D5", "R6", "K4"),
    _cut("zookeeper", 7, "D1"),
)
