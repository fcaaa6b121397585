"""R2: no image of the metadata goes back in time."""

from __future__ import annotations

from typing import Final

from pipeline.property import Property, place_of, row_of

PROPERTY: Final = Property(
    id="R2",
    inputs=("silver/events",),
    sql=f"""
WITH images AS (
  SELECT run, node, boot, seq, side, zxid, lag(struct(node, boot, seq, zxid))
    OVER (PARTITION BY run, node, boot, side ORDER BY seq) AS before
  FROM events WHERE kind = 'image_advanced')
SELECT run, CASE WHEN zxid < before.zxid THEN {place_of("images")} END AS key,
  array({row_of("before")}, {row_of("images")}) AS rows,
  concat('the ', side, '''s image of node ', node, ' went from zxid ', before.zxid, ' to ', zxid)
    AS sentence
FROM images
""",
)
