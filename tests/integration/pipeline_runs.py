"""Runs for the pipeline's tests: golden histories, expanded into one folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from judge.evidence.run_lookup import read_run
from judge.history import History
from judge.verdicts import Judgement, Verdict, judge
from tests import golden_histories


def expand_all(names: Iterable[str], folder: Path) -> Path:
    """Write each history as a sealed run whose id is the name of the history."""
    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setattr(golden_histories, "RUN_ID", name)
            golden_histories.expand(golden_histories.load(name), folder / f"run={name}")
    return folder


def accepted() -> list[str]:
    """Return the names of the golden histories that the judges do not reject."""
    return [
        name
        for name in golden_histories.names()
        if "rejected" not in golden_histories.load(name)["expect"]
    ]


# Judge a run without Spark; return the results by property.


def judged(folder: Path) -> dict[str, Judgement]:
    """Judge the last run of a cluster's folder; return the judgement of each property."""
    return {judgement.row.property: judgement for judgement in judge(History(read_run(folder)))}


def failed(judgements: Mapping[str, Judgement]) -> set[str]:
    """Return the properties that a run violates."""
    return {of for of, judgement in judgements.items() if judgement.row.verdict is Verdict.FAIL}
