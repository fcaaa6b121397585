"""D5: an error code agrees with the topic's state between the decision's image and the response."""

from __future__ import annotations

from typing import Final

INPUTS: Final = ("gold/decisions", "gold/topic_lives")
SQL: Final = """
WITH claims AS (
  SELECT *, least(image_zxid, coalesce(get(committed, 0), image_zxid + 1) - 1) AS since
  FROM decisions WHERE NOT validate_only
    AND ((api_key = 19 AND error IN (0, 36)) OR (api_key = 20 AND error IN (0, 3))
      OR (api_key = 37 AND error = 3))),
known AS (
  SELECT c.*, coalesce(l.lives, array()) AS lives,
    filter(coalesce(l.lives, array()), x -> x.born <= c.zxid AND x.died > c.since) AS alive,
    filter(coalesce(l.lives, array()), x -> x.born <= c.since AND x.died > c.zxid) AS throughout
  FROM claims c LEFT JOIN topic_lives l ON c.run = l.run AND c.element = l.topic),
judged AS (
  SELECT *, CASE
    WHEN api_key = 19 AND error = 36 AND size(alive) = 0
      THEN 'TOPIC_ALREADY_EXISTS, but did not exist'
    WHEN api_key = 19 AND error = 36 AND forall(alive, x -> x.creator <=> identity)
      THEN 'TOPIC_ALREADY_EXISTS, but this request had created it'
    WHEN error = 3 AND size(throughout) > 0
      THEN concat('UNKNOWN_TOPIC_OR_PARTITION, but existed since zxid ', get(throughout, 0).born)
    WHEN api_key = 19 AND error = 0 AND NOT exists(alive, x -> x.creator <=> identity)
      THEN 'NONE, but this request did not create it'
    WHEN api_key = 20 AND error = 0 AND element NOT LIKE 'id:%' AND size(lives) = 0
      THEN 'NONE for its deletion, but never existed'
    WHEN api_key = 20 AND error = 0 AND element NOT LIKE 'id:%' AND size(alive) = 0
      THEN 'NONE for its deletion, but did not exist any more'
    WHEN api_key = 20 AND error = 0 AND element NOT LIKE 'id:%' AND size(throughout) > 0
      THEN 'NONE for its deletion, but still existed'
    END AS wrong
  FROM known)
SELECT run, CASE WHEN wrong IS NOT NULL THEN concat(request_id, '/', element) END AS key,
  concat(array(answered_row, decided_row), transform(lives, x -> concat('zxid/', x.born))) AS rows,
  concat(request_id, ': ', element, ' got ', wrong) AS sentence
FROM judged
"""
