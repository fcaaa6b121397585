"""W2: every metadata write is in a transaction that checks the controller epoch."""

from __future__ import annotations

from typing import Final

INPUTS: Final = ("gold/admin_writes",)
SQL: Final = """
SELECT run, CASE WHEN NOT fenced THEN CAST(zxid AS STRING) END AS key,
  array(concat('zxid/', zxid)) AS rows,
  concat('zxid ', zxid, ': session ', session, ' wrote ', path,
    CASE WHEN checked THEN ' with a check of /controller_epoch that accepts any version'
         ELSE ' without checking /controller_epoch' END) AS sentence
FROM admin_writes
"""
