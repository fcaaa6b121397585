"""The checks in SQL: one module for each property, named as in the registry.

For each row that it judges, a check returns one row with the columns `run`, `key` (null where the
property holds), `rows` (an array) and `sentence`. A check may also return violations that do not
count as rows judged. Then `JUDGED` in its module names one more column, which is 0 for these
violations and 1 for all other rows. In the SQL of a check, the table `gold/answers` is `answers`,
and so on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Final, NamedTuple

from event_log.properties import PROPERTY_SPECS


class Check(NamedTuple):
    """The tables that a check reads, its query, and an expression: 1 for a row judged, else 0."""

    inputs: Sequence[str]
    sql: str
    judged: str


def _check(name: str) -> Check:
    module = import_module(f"{__name__}.{name}")
    return Check(module.INPUTS, module.SQL, getattr(module, "JUDGED", "1"))


CHECKS: Final[Mapping[str, Check]] = {spec.id: _check(spec.name) for spec in PROPERTY_SPECS}
