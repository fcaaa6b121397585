"""R2: the zxid of an image never decreases."""

from __future__ import annotations

from typing import Final

from pipeline.sql import place_of, row_of

INPUTS: Final = ("silver/events",)
SQL: Final = f"""
WITH images AS (
  SELECT run, node, boot, seq, side, zxid, lag(struct(node, boot, seq, zxid))
    OVER (PARTITION BY run, node, boot, side ORDER BY seq) AS before
  FROM events WHERE kind = 'image_advanced')
SELECT run, CASE WHEN zxid < before.zxid THEN {place_of("images")} END AS key,
  array({row_of("before")}, {row_of("images")}) AS rows,
  concat('the ', side, ' image of node ', node, ' went back from zxid ', before.zxid, ' to ', zxid)
    AS sentence
FROM images
"""
