"""Counts and violations out of Spark; the rules of verdicts are in `event_log.verdicts`.

Each property is one aggregation: how many rows it judged, and its violations, in 64 parts for each
run, so that a run with very many violations still has many small rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bridgehead.schema_version import SCHEMA_VERSION
from event_log.properties import PROPERTY_SPECS
from event_log.verdicts import Count, VerdictRow, verdict_row, worst
from pipeline.evidence import Run
from pipeline.properties import CHECKS
from pipeline.table import Frames, Table, query

_PARTS: Final = 64


def findings(frames: Frames) -> DataFrame:
    """Run all checks in one query."""
    found = None
    for id_, check in CHECKS.items():
        rows = query(check.sql)({name: frames[name] for name in check.inputs})
        judged = F.col("judged") if "judged" in rows.columns else F.lit(1)
        violated = F.col("key").isNotNull()
        parts = (
            rows.withColumn("part", F.when(violated, F.pmod(F.xxhash64("key"), F.lit(_PARTS))))
            .groupBy("run", "part")
            .agg(
                F.sum(judged.cast("bigint")).alias("judged"),
                F.collect_list(F.when(violated, F.struct("key", "rows", "sentence"))).alias(
                    "found"
                ),
            )
            .select("run", F.lit(id_).alias("property"), "judged", "found")
        )
        found = parts if found is None else found.unionByName(parts)
    assert found is not None
    return found


FINDINGS: Final = Table(
    name="gold/findings",
    inputs=sorted({name for check in CHECKS.values() for name in check.inputs}),
    schema="run STRING, property STRING, judged BIGINT, "
    "found ARRAY<STRUCT<key: STRING, rows: ARRAY<STRING>, sentence: STRING>>",
    build=findings,
)
VIOLATIONS: Final = Table(
    name="gold/violations",
    inputs=("gold/findings",),
    schema="run STRING, property STRING, key STRING, rows ARRAY<STRING>, sentence STRING",
    build=query(
        "SELECT run, property, f.key, f.rows, f.sentence "
        "FROM findings LATERAL VIEW explode(found) x AS f"
    ),
    expectations={"a violation has a key and a sentence": "key <> '' AND sentence <> ''"},
)
# The first sentence is chosen as event_log.properties.violation_order does.
COUNTS: Final = Table(
    name="gold/counts",
    inputs=("gold/findings", "gold/violations"),
    schema="run STRING, property STRING, judged BIGINT, violations BIGINT, first_sentence STRING",
    build=query("""
WITH judged AS (
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
        gaps: by witness, its first gap.
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
