"""The findings of each property: the number of rows judged, and the violations.

There is one table for each property. The violations of a property in a run are divided into up to
64 rows, so that no row becomes too large.
"""

from __future__ import annotations

from typing import Final

from judge.properties import PROPERTIES, PROPERTY_SPECS, Property
from judge.verdicts import inapplicable
from pipeline.query import query
from pipeline.table import Table

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


FINDINGS: Final = tuple(map(_findings, PROPERTIES))
NAMES: Final = tuple(table.name for table in FINDINGS)
# SQL for the rows of all these tables.
ALL: Final = " UNION ALL ".join(
    f"SELECT run, property, judged, found FROM {spec.id}" for spec in PROPERTY_SPECS
)
