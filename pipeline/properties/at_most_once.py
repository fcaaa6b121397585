"""D3: no element of a request is committed twice, and no request creates two delegation tokens.

The controller draws the id of a new token, and this id is the element's name. So a creation that is
executed twice commits two different elements, neither of them twice.
"""

from __future__ import annotations

from typing import Final

from pipeline.sql import zxid_rows

INPUTS: Final = ("gold/committed",)
JUDGED: Final = "judged"
SQL: Final = f"""
WITH tokens AS (
  SELECT run, broker_id, incarnation, sequence, request_id,
    array_sort(array_distinct(flatten(collect_list(zxids)))) AS zxids
  FROM committed WHERE wrote_token
  GROUP BY run, broker_id, incarnation, sequence, request_id HAVING count(*) > 1)
SELECT run, CASE WHEN size(zxids) > 1
    THEN concat_ws('/', broker_id, incarnation, sequence, element) END AS key,
  {zxid_rows("zxids")} AS rows,
  concat(request_id, ': ', element, ' was committed more than once, at zxids ',
    array_join(zxids, ', ')) AS sentence, 1 AS judged
FROM committed
UNION ALL
SELECT run, concat_ws('/', broker_id, incarnation, sequence, 'token'), {zxid_rows("zxids")},
  concat(request_id, ': more than one token was created, at zxids ', array_join(zxids, ', ')), 0
FROM tokens
"""
