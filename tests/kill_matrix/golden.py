"""The golden histories that contain violations: each is a mutant of a correct history."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from judge.evidence.reading import read_sealed
from judge.history import History
from judge.properties import PROPERTY_SPECS
from judge.verdicts import judge, worst
from tests import golden_histories
from tests.kill_matrix.evidence_mutants import EvidenceMutant


def violations_of_histories() -> Mapping[str, tuple[str, ...]]:
    """Map the name of each history with violations to the properties that it violates."""
    violated_by = {}
    for name in golden_histories.names():
        expect = golden_histories.load(name)["expect"]
        violated = tuple(spec.id for spec in PROPERTY_SPECS if len(expect.get(spec.id, ())) > 2)
        if violated:
            violated_by[name] = violated
    return violated_by


def example_of_each_property() -> Mapping[str, tuple[str, tuple[str, ...]]]:
    """Map each property's id to the history that violates it and the fewest other properties.

    A history is returned as its name and the properties that it violates.
    """
    histories = violations_of_histories().items()
    return {
        spec.id: min(
            ((name, violated) for name, violated in histories if spec.id in violated),
            key=lambda history: (len(history[1]), history[0]),
        )
        for spec in PROPERTY_SPECS
    }


# What the plain judge says about an evidence mutant.


def verdict_on(mutant: EvidenceMutant, folder: Path) -> tuple[tuple[str, ...], str]:
    """Write the run to `folder`; return the properties with violations, and the run's verdict."""
    judgements = judge(History(read_sealed(golden_histories.expand(mutant.apply(), folder))))
    violated = tuple(judgement.row.property for judgement in judgements if judgement.violations)
    return violated, str(worst([judgement.row for judgement in judgements]))


# Properties that no seeded bug of a node violates, each with the reason.

WITHOUT_SEEDED_BUG: Final[Mapping[str, str]] = {
    "D4": "D3 already finds a request that a node commits twice. D4 checks the same, but only for "
    "requests and client operations without a definite response",
    "D12": "D12 judges what Kafka's controller does in a rehearsal, not nodes. "
    "tests/integration/test_rehearse.py makes a rehearsal lose writes",
    "K2": "the function in broker_proxy/requests/ that returns a response also records it. "
    "Seeded bugs replace only the parts that node/collaborators.py lists, so no seeded bug can "
    "omit the event",
    "K3": "K3 judges the event logs, not nodes. Golden histories violate it",
    "K6": "K6 judges the reading of evidence, not nodes",
    "T1": "T1 judges the faults of the harness, not nodes",
}
