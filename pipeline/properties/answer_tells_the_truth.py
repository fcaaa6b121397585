"""D5: an error code agrees with the state between the decision's image and the answer.

EXISTS (36): the topic existed and another request had made it. UNKNOWN (3): it did not exist
throughout. NONE to a creation: this request made it. NONE to a deletion: the topic was there and is
gone. A resend, on a later image, is answered with what was committed for the first copy.
"""

from __future__ import annotations

from typing import Final

from pipeline.property import Property

PROPERTY: Final = Property(
    id="D5",
    inputs=("gold/decisions", "gold/topic_lives"),
    sql="""
WITH claims AS (
  SELECT *, least(image_zxid, coalesce(get(committed, 0), image_zxid + 1) - 1) AS since
  FROM decisions WHERE NOT validate_only
    AND ((api_key = 19 AND error IN (0, 36)) OR (api_key = 20 AND error IN (0, 3))
      OR (api_key = 37 AND error = 3))),
known AS (
  SELECT c.*, coalesce(l.lives, array()) AS lives,
    filter(coalesce(l.lives, array()), x -> x.born <= c.zxid AND x.died > c.since) AS alive
  FROM claims c LEFT JOIN topic_lives l ON c.run = l.run AND c.element = l.topic),
judged AS (
  SELECT *, CASE
    WHEN api_key = 19 AND error = 36 AND size(alive) = 0
      THEN 'TOPIC_ALREADY_EXISTS and did not exist'
    WHEN api_key = 19 AND error = 36 AND forall(alive, x -> x.creator <=> identity)
      THEN 'TOPIC_ALREADY_EXISTS about its own success'
    WHEN error = 3 AND exists(alive, x -> x.born <= since AND x.died > zxid)
      THEN concat('UNKNOWN_TOPIC_OR_PARTITION and existed since zxid ',
        get(filter(alive, x -> x.born <= since AND x.died > zxid), 0).born)
    WHEN api_key = 19 AND error = 0 AND NOT exists(alive, x -> x.creator <=> identity)
      THEN 'NONE and another request had made it, or none'
    WHEN api_key = 20 AND error = 0 AND element NOT LIKE 'id:%' AND size(lives) = 0
      THEN 'NONE and never existed'
    WHEN api_key = 20 AND error = 0 AND element NOT LIKE 'id:%'
      AND exists(lives, x -> x.born <= since AND x.died > zxid) THEN 'NONE and was still there'
    END AS wrong
  FROM known)
SELECT run, CASE WHEN wrong IS NOT NULL THEN concat(request_id, '/', element) END AS key,
  concat(array(answered_row, decided_row), transform(lives, x -> concat('zxid/', x.born))) AS rows,
  concat(request_id, ': ', element, ' was answered ', wrong) AS sentence
FROM judged
""",
)
