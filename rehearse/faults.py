"""Faults of a rehearsal: which participant, what happens to it, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from bridgehead.cluster.errors import ClusterError
from rehearse.phases import DriverState

PHASES: Final = ("hybrid", "dual-write", "finalize")
ACTIONS: Final = ("kill", "freeze", "cut")
PARTICIPANTS: Final = ("broker", "controller", "zookeeper")
_MOMENTS: Final = (*PHASES, *DriverState)


class Fault(NamedTuple):
    """A fault: at the begin of a phase, or when the controller enters a state of its driver."""

    moment: str
    action: str
    participant: str

    def __str__(self) -> str:
        """Return the option's form."""
        return f"{self.moment}:{self.action}-{self.participant}"


@dataclass(slots=True)
class FaultResult:
    """What a fault left, and how long it took until everything was as before."""

    fault: str
    hit: str
    """The driver's state at the fault. Short states may be over when it comes."""
    left: str
    """The driver's state while the participant was gone, and who owned /controller."""
    returned_s: float
    """When the participant was back, in seconds since 1970."""
    recovered_s: float | None = None
    """Seconds from the participant's return to the end of the phase; None: it did not end."""


def parse_faults(texts: Sequence[str]) -> list[Fault]:
    """Return the faults of `PHASE:ACTION-PARTICIPANT` texts. Raises ClusterError."""
    return [_parse(text) for text in texts]


def _parse(text: str) -> Fault:
    moment, colon, fault = text.partition(":")
    action, _, participant = fault.partition("-")
    is_valid = moment in _MOMENTS and action in ACTIONS and participant in PARTICIPANTS
    if not colon or not is_valid:
        raise ClusterError(
            f"{text!r} is not a fault: it is PHASE:ACTION-PARTICIPANT, such as "
            "hybrid:kill-controller. PHASE is hybrid, dual-write, finalize or a state of the "
            "driver, such as ZK_MIGRATION. ACTION is kill, freeze or cut; PARTICIPANT is broker, "
            "controller or zookeeper."
        )
    return Fault(moment, action, participant)
