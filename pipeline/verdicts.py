"""Verdicts, by the rules of event_log.promises: what Spark counted, and what the evidence lacks.

Each property is one aggregation: how many rows it judged, and its breaches, in 64 heaps for each
run, so that a history full of breaches is still many small rows. The rest is a few numbers, and is
decided here, in plain Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from event_log.promises import EXIT_CODES, PROMISES, VERDICTS, Promise, VerdictRow
from pipeline.evidence import Run
from pipeline.properties import PROPERTIES
from pipeline.property import Property
from pipeline.table import Frames, Table, query

_HEAPS: Final = 64
_INPUTS: Final = sorted({name for each in PROPERTIES for name in each.inputs})


def findings(frames: Frames, properties: Sequence[Property] = PROPERTIES) -> DataFrame:
    """Ask all properties at once."""
    found = None
    for each in properties:
        rows = query(each.sql)({name: frames[name] for name in each.inputs})
        judged = F.col("judged") if "judged" in rows.columns else F.lit(1)
        breach = F.col("key").isNotNull()
        heaps = (
            rows.withColumn("heap", F.when(breach, F.pmod(F.xxhash64("key"), F.lit(_HEAPS))))
            .groupBy("run", "heap")
            .agg(
                F.sum(judged.cast("bigint")).alias("judged"),
                F.collect_list(F.when(breach, F.struct("key", "rows", "sentence"))).alias("found"),
            )
            .select("run", F.lit(each.id).alias("property"), "judged", "found")
        )
        found = heaps if found is None else found.unionByName(heaps)
    assert found is not None
    return found


FINDINGS: Final = Table(
    name="gold/findings",
    inputs=_INPUTS,
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
    expectations={"a violation has a key and says something": "key <> '' AND sentence <> ''"},
)
COUNTS: Final = Table(
    name="gold/counts",
    inputs=("gold/findings", "gold/violations"),
    schema="run STRING, property STRING, judged BIGINT, violations BIGINT, first_sentence STRING",
    build=query("""
WITH judged AS (
  SELECT run, property, sum(judged) AS judged FROM findings GROUP BY run, property),
broken AS (
  SELECT run, property, count(*) AS violations, min_by(sentence, struct(length(key), key))
    AS first_sentence FROM violations GROUP BY run, property)
SELECT j.run, j.property, j.judged, coalesce(b.violations, 0) AS violations, b.first_sentence
FROM judged j LEFT JOIN broken b ON j.run = b.run AND j.property = b.property
"""),
)


_DOES_NOT_APPLY: Final = {
    "A1": "there is no authorizer",
    "T1": "no scenario: nothing was broken on purpose",
}


def decide(
    run: Run,
    counted: Mapping[str, tuple[int, int, str]],
    holes: Mapping[str, str],
) -> list[VerdictRow]:
    """Return the verdict on every property of one run, in the registry's order.

    Args:
        run: whose evidence it is.
        counted: by property, the rows judged, the violations, and the first one's sentence.
        holes: by witness, its first hole.
    """
    out_of_reach = _out_of_reach(run)
    rows = []
    for promise in PROMISES:
        judged, violations, first = counted.get(promise.id, (0, 0, ""))
        unreachable = next((out_of_reach[w] for w in promise.needs if w in out_of_reach), "")
        if not _applies(run, promise):
            judged, violations = 0, 0
        verdict, why = _verdict(
            run, promise, judged, first if violations else "", holes, unreachable
        )
        expected = run.manifest.run.expected
        if expected is not None:
            decides = promise.id in expected
        else:
            decides = verdict != "NODATA" or bool(unreachable) or bool(violations)
        rows.append(
            VerdictRow(
                property=promise.id,
                name=promise.name,
                verdict=verdict,
                judged=judged,
                violations=violations,
                decides=decides,
                why=why,
            )
        )
    return rows


def _out_of_reach(run: Run) -> dict[str, str]:
    found = {}
    if not any(each.kind == "node" for each in run.manifest.files):
        found["events"] = "no node's events are in the folder"
    if not run.manifest.zookeeper.logs:
        found["commits"] = "ZooKeeper's transaction logs are out of reach"
    return found


def _applies(run: Run, promise: Promise) -> bool:
    if promise.id == "A1":
        return run.manifest.run.super_users is not None
    return promise.id != "T1" or run.manifest.run.scenario is not None


def _verdict(
    run: Run,
    promise: Promise,
    judged: int,
    violation: str,
    holes: Mapping[str, str],
    unreachable: str,
) -> tuple[str, str]:
    if unreachable:
        return "NODATA", unreachable
    if not _applies(run, promise):
        return "NODATA", _DOES_NOT_APPLY[promise.id]
    hole = next((holes[each] for each in promise.needs if each in holes), "")
    if violation:
        if hole and promise.absence_accuses:
            return "UNKNOWN", hole
        return promise.breach, violation
    if hole and promise.absence_clears:
        return "UNKNOWN", hole
    if not judged:
        return "NODATA", "nothing of that kind happened"
    return "PASS", ""


def worst(rows: Sequence[VerdictRow]) -> str:
    """Return the verdict of a run: the worst of those that decide."""
    found = {row.verdict for row in rows if row.decides}
    return next((each for each in VERDICTS if each in found), "NODATA")


def exit_code(verdicts: Sequence[str]) -> int:
    """0 all held, 1 one failed or hung, 2 one is unknown or there is nothing to judge."""
    codes = {EXIT_CODES[each] for each in verdicts}
    return next((code for code in (1, 2) if code in codes), 0 if codes else 2)


def verdict_document(run: Run, rows: Sequence[VerdictRow]) -> dict[str, object]:
    """Return what verdicts.json holds of one run."""
    known = run.manifest.run
    return {
        "run": run.id,
        "verdict": worst(rows),
        "scenario": known.scenario,
        "seed": known.seed,
        "versions": known.versions,
        "evidence": run.digest,
        "properties": [asdict(row) for row in rows],
    }
