"""Computes counts and violations with Spark; the rules of verdicts are in `judge.verdicts`.

One aggregation for each property returns the number of rows judged and the violations. The
violations of a property in a run are divided into up to 64 rows, so that no row becomes too large.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Final

from bridgehead.schema_version import SCHEMA_VERSION
from judge.properties import PROPERTIES, PROPERTY_SPECS, Property
from judge.verdicts import Count, VerdictRow, inapplicable, verdict_row, worst
from pipeline.evidence import Run
from pipeline.table import Table, query

_PARTS: Final = 64


def _parts(of: Property) -> str:
    """Return SQL for the rows judged and the violations, as one query: Spark analyses it once."""
    judged = getattr(of, "JUDGED", "1")
    return f"""
SELECT run, '{of.SPEC.id}' AS property, sum(CAST({judged} AS BIGINT)) AS judged,
  collect_list(CASE WHEN key IS NOT NULL THEN struct(key, rows, sentence) END) AS found
FROM ({of.SQL})
GROUP BY run, CASE WHEN key IS NOT NULL THEN pmod(xxhash64(key), {_PARTS}) END
"""


def _findings(of: Property) -> Table:
    return Table(
        name=f"gold/findings/{of.SPEC.id}",
        inputs=of.INPUTS,
        schema="run STRING, property STRING, judged BIGINT, "
        "found ARRAY<STRUCT<key: STRING, rows: ARRAY<STRING>, sentence: STRING>>",
        build=query(_parts(of)),
        concerns=lambda manifest: not inapplicable(of.SPEC, manifest.run),
    )


# A table for each property: the number of its judged rows, and its violations.
FINDINGS: Final = tuple(map(_findings, PROPERTIES))
_NAMES: Final = tuple(table.name for table in FINDINGS)
_ALL: Final = " UNION ALL ".join(
    f"SELECT run, property, judged, found FROM {spec.id}" for spec in PROPERTY_SPECS
)
VIOLATIONS: Final = Table(
    name="gold/violations",
    inputs=_NAMES,
    schema="run STRING, property STRING, key STRING, rows ARRAY<STRING>, sentence STRING",
    build=query(
        f"WITH findings AS ({_ALL}) SELECT run, property, f.key, f.rows, f.sentence "
        "FROM findings LATERAL VIEW explode(found) x AS f"
    ),
    expectations={"a violation has a key and a sentence": "key <> '' AND sentence <> ''"},
)
# `first_sentence` is the sentence of the first violation in the order of
# judge.property.violation_order.
COUNTS: Final = Table(
    name="gold/counts",
    inputs=(*_NAMES, "gold/violations"),
    schema="run STRING, property STRING, judged BIGINT, violations BIGINT, first_sentence STRING",
    build=query(f"""
WITH findings AS ({_ALL}),
judged AS (
  SELECT run, property, sum(judged) AS judged FROM findings GROUP BY run, property),
violated AS (
  SELECT run, property, count(*) AS violations,
    min_by(sentence, struct(length(key), key, sentence)) AS first_sentence
  FROM violations GROUP BY run, property)
SELECT j.run, j.property, j.judged, coalesce(v.violations, 0) AS violations, v.first_sentence
FROM judged j LEFT JOIN violated v ON j.run = v.run AND j.property = v.property
"""),
)


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
    known = run.manifest.run
    return {
        "schema_version": SCHEMA_VERSION,
        "run": run.id,
        "verdict": worst(rows),
        "scenario": known.scenario,
        "seed": known.seed,
        "versions": known.versions,
        "evidence": run.digest,
        "properties": [asdict(row) for row in rows],
    }
