"""What the plain judge says about an evidence mutant."""

from __future__ import annotations

from pathlib import Path

from judge.evidence.reading import read_sealed
from judge.history import History
from judge.verdicts import judge, worst
from tests import golden_histories
from tests.kill_matrix.evidence_mutants import EvidenceMutant


def verdict_on(mutant: EvidenceMutant, folder: Path) -> tuple[tuple[str, ...], str]:
    """Write the run to `folder`; return the properties with violations, and the run's verdict."""
    judgements = judge(History(read_sealed(golden_histories.expand(mutant.apply(), folder))))
    violated = tuple(judgement.row.property for judgement in judgements if judgement.violations)
    return violated, str(worst([judgement.row for judgement in judgements]))
