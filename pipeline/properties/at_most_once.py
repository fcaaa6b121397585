"""D3: no element of a request takes effect twice, however often the request was sent."""

from __future__ import annotations

from typing import Final

from pipeline.property import Property

PROPERTY: Final = Property(
    id="D3",
    inputs=("gold/committed",),
    sql="""
SELECT run, CASE WHEN size(zxids) > 1
    THEN concat_ws('/', broker_id, incarnation, sequence, element) END AS key,
  transform(zxids, z -> concat('zxid/', z)) AS rows,
  concat(request_id, ': ', element, ' was committed at ', array_join(zxids, ', ')) AS sentence
FROM committed
""",
)
