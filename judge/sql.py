"""SQL expressions that several properties, and tables of the pipeline, use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from event_log.commits import DIRECT

WIDE: Final = "CAST({0} AS DECIMAL(20, 0))"  # Differences of 64-bit integers may overflow.
# The nodes that a fault paused or blocked. The clock of a paused node runs on, so the time limits
# of its requests are not judged.
PAUSED: Final = (
    "paused AS (SELECT DISTINCT run, target AS node FROM fault_injected "
    "WHERE action IN ('pause', 'block'))"
)
# Whether a broker below the bridge release may make this write directly: it also creates topics,
# but writes nothing below their znodes.
_CREATES_TOPIC: Final = "(o.kind = 'create' AND o.path RLIKE '^/brokers/topics/[^/]*$')"
IS_DIRECT: Final = (
    "(" + " OR ".join((*(f"startswith(o.path, '{path}')" for path in DIRECT), _CREATES_TOPIC)) + ")"
)
# Content other than a number of at most eleven digits counts as epoch -1.
EPOCH_OF: Final = "CASE WHEN {0} RLIKE '^[0-9]{{1,11}}$' THEN CAST({0} AS BIGINT) ELSE -1 END"


def row_of(alias: str) -> str:
    """Return SQL for the place of an event, as in the column `rows` of a violation."""
    return f"concat('event/', {place_of(alias)})"


def place_of(alias: str) -> str:
    """Return SQL for the place of an event, as in the column `key` of a violation."""
    return f"concat({alias}.node, '/', {alias}.boot, '/', {alias}.seq)"


def zxid_rows(zxids: str) -> str:
    """Return SQL for an array of zxids, as in the column `rows` of a violation."""
    return f"transform({zxids}, z -> concat('zxid/', z))"


def listed(codes: Iterable[int]) -> str:
    """Return numbers as text for SQL's `IN (...)`."""
    return ", ".join(map(str, sorted(codes)))
