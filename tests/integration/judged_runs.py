"""Judge a run without Spark; return the results by property."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from judge.evidence.run_lookup import read_run
from judge.history import History
from judge.verdicts import Judgement, Verdict, judge


def judged(folder: Path) -> dict[str, Judgement]:
    """Judge the last run of a cluster's folder; return the judgement of each property."""
    return {judgement.row.property: judgement for judgement in judge(History(read_run(folder)))}


def failed(judgements: Mapping[str, Judgement]) -> set[str]:
    """Return the properties that a run violates."""
    return {of for of, judgement in judgements.items() if judgement.row.verdict is Verdict.FAIL}
