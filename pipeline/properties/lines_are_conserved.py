"""K6: every line that was sealed was read, and is accounted for."""

from __future__ import annotations

from typing import Final

from pipeline.property import Property

PROPERTY: Final = Property(
    id="K6",
    inputs=("gold/accounting",),
    sql="""
SELECT run, CASE WHEN accounted <> sealed THEN file END AS key,
  array(concat('file/', file)) AS rows,
  concat(file, ' has ', sealed, ' lines and ', accounted, ' are accounted for') AS sentence
FROM accounting WHERE is_there AND (sealed > 0 OR accounted > 0)
""",
)
