"""K6: every sealed line was read and is accounted for."""

from __future__ import annotations

from typing import Final

INPUTS: Final = ("gold/accounting",)
SQL: Final = """
SELECT run, CASE WHEN accounted <> sealed THEN file END AS key,
  array(concat('file/', file)) AS rows,
  concat(file, ' has ', sealed, ' lines, but ', accounted, ' are accounted for') AS sentence
FROM accounting WHERE is_there AND (sealed > 0 OR accounted > 0)
"""
