"""D3: no element of a request is committed twice, however often the request was sent."""

from __future__ import annotations

from typing import Final

from pipeline.sql import zxid_rows

INPUTS: Final = ("gold/committed",)
SQL: Final = f"""
SELECT run, CASE WHEN size(zxids) > 1
    THEN concat_ws('/', broker_id, incarnation, sequence, element) END AS key,
  {zxid_rows("zxids")} AS rows,
  concat(request_id, ': ', element, ' was committed more than once, at zxids ',
    array_join(zxids, ', ')) AS sentence
FROM committed
"""
