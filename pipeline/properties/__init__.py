"""The checks in SQL: one module for each property, named as in the registry.

A check returns one row for each row judged: `run`, `key` (null where the property holds), `rows`
(an array), `sentence`. `JUDGED` in a module names one more column, which is 0 for a violation that
does not count as a row judged, otherwise 1. In the SQL of a check, the table `gold/answers` is
`answers`, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Final, NamedTuple

from event_log.properties import PROPERTY_SPECS


class Check(NamedTuple):
    """The tables that a check reads, its SQL, and SQL for what each row adds to the rows judged."""

    inputs: Sequence[str]
    sql: str
    judged: str


def _check(name: str) -> Check:
    module = import_module(f"{__name__}.{name}")
    return Check(module.INPUTS, module.SQL, getattr(module, "JUDGED", "1"))


CHECKS: Final[Mapping[str, Check]] = {spec.id: _check(spec.name) for spec in PROPERTY_SPECS}
