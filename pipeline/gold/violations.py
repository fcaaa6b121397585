"""The violations of all properties."""

from __future__ import annotations

from typing import Final

from pipeline.gold.findings import ALL, NAMES
from pipeline.query import query
from pipeline.table import Table

VIOLATIONS: Final = Table(
    name="gold/violations",
    inputs=NAMES,
    schema="run STRING, property STRING, key STRING, rows ARRAY<STRING>, sentence STRING",
    build=query(
        f"WITH findings AS ({ALL}) SELECT run, property, f.key, f.rows, f.sentence "
        "FROM findings LATERAL VIEW explode(found) x AS f"
    ),
    expectations={"a violation has a key and a sentence": "key <> '' AND sentence <> ''"},
)
