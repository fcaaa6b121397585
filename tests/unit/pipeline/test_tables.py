"""The registry of tables: each gold table is in the file of its name, and follows its inputs."""

from __future__ import annotations

from importlib import import_module

import pytest

from pipeline.run import TABLES
from pipeline.sources import SOURCES
from pipeline.table import Table

GOLD = [table for table in TABLES if table.name.startswith("gold/")]


@pytest.mark.parametrize("table", GOLD, ids=lambda table: table.name)
def test_gold_table_is_in_the_file_of_its_name(table: Table) -> None:
    name = table.name.split("/")[1]  # gold/findings/W1 is one of the tables in findings.py
    value = getattr(import_module(f"pipeline.gold.{name}"), name.upper())
    assert table is value or table in value


def test_table_comes_after_its_inputs() -> None:
    built = set(SOURCES)
    for table in TABLES:
        assert built.issuperset(table.inputs), table.name
        built.add(table.name)
