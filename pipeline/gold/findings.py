"""The findings of each property: the number of rows judged, and the violations.

There is one table for each property, and the view `gold/findings` of the rows of all. The
violations of a property in a run are divided into up to 64 rows, so that no row becomes too large.
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


_OF_PROPERTIES: Final = tuple(map(_findings, PROPERTIES))
FINDINGS: Final = (
    *_OF_PROPERTIES,
    Table(
        name="gold/findings",
        inputs=tuple(table.name for table in _OF_PROPERTIES),
        schema=_OF_PROPERTIES[0].schema,
        build=query(
            " UNION ALL ".join(
                f"SELECT run, property, judged, found FROM {spec.id}" for spec in PROPERTY_SPECS
            )
        ),
        is_stored=False,
        is_kept_in_memory=False,
    ),
)
