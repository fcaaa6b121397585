"""The violations of all properties."""

from __future__ import annotations

from typing import Final

from pipeline.query import query
from pipeline.table import Table

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
