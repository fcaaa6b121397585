"""Turns the counts of `gold/counts` into verdicts, by the rules of `judge.verdicts`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from bridgehead.schema_version import SCHEMA_VERSION
from judge.properties import PROPERTY_SPECS
from judge.verdicts import Count, VerdictRow, verdict_row, worst
from pipeline.evidence import Run


def verdict_rows(
    run: Run, counts: Mapping[str, Count], gaps: Mapping[str, str]
) -> list[VerdictRow]:
    """Return the verdict on every property of one run, in the registry's order.

    Args:
        run: the run.
        counts: by property id.
        gaps: the first gap of each witness (events, clients, commits or kafka).
    """
    return [
        verdict_row(spec, run.manifest, counts.get(spec.id, Count()), gaps, run.doubt)
        for spec in PROPERTY_SPECS
    ]


def verdict_document(run: Run, rows: Sequence[VerdictRow]) -> dict[str, object]:
    """Return the object of verdicts.json for one run."""
    recorded = run.manifest.run
    return {
        "schema_version": SCHEMA_VERSION,
        "run": run.id,
        "verdict": worst(rows),
        "scenario": recorded.scenario,
        "seed": recorded.seed,
        "versions": recorded.versions,
        "evidence": run.digest,
        "properties": [asdict(row) for row in rows],
    }
