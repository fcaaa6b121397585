"""A created topic has an id that no earlier topic had.

KIP-516: only the id distinguishes a topic from a deleted topic of the same name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from judge.history import History, topic_of
from judge.property import PropertySpec, Violation, zxid_row

SPEC: Final = PropertySpec(
    id="D10",
    name="topic_id_is_used_once",
    statement="the id of a new topic differs from the ids of all earlier topics",
    witnesses=("commits",),
    row="creations of topics that have an id",
    key="<zxid>/<topic>",
)


def check(history: History) -> Iterator[Violation | None]:
    """Compare the id of each created topic with the ids of all earlier topics."""
    created_at: dict[str, tuple[int, int]] = {}  # by id: zxid, and place in the transaction
    for path, line in sorted(history.evidence.first.items()):
        if topic_of(path) is not None and (topic_id := _id_in(line.data)):
            created = line.czxid, -1
            created_at[topic_id] = min(created, created_at.get(topic_id, created))
    for commit in history.applied:
        for place, operation in enumerate(commit.operations):
            name = topic_of(operation.path)
            if operation.kind != "create" or name is None:
                continue
            topic_id = _id_in(operation.data)
            if not topic_id:
                continue
            before = created_at.setdefault(topic_id, (commit.zxid, place))
            if before == (commit.zxid, place):
                yield None
                continue
            yield SPEC.violation(
                f"{commit.zxid}/{name}",
                [zxid_row(before[0]), zxid_row(commit.zxid)],
                f"zxid {commit.zxid}: {name} was created with id {topic_id}, which a topic "
                f"created at zxid {before[0]} already had",
            )


def _id_in(data: str | None) -> str:
    try:
        content = json.loads(data or "")
    except ValueError:
        return ""
    topic_id = content.get("topic_id") if isinstance(content, dict) else None
    return topic_id if isinstance(topic_id, str) else ""


_IS_TOPIC: Final = "{0} RLIKE '^/brokers/topics/[^/]*$'"
_ID: Final = "get_json_object({0}, '$.topic_id')"

INPUTS: Final = ("silver/commits", "silver/dumps", "runs")
SQL: Final = f"""
WITH created AS (
  SELECT c.run, c.zxid, place, substring(o.path, 17) AS topic, {_ID.format("o.data")} AS id,
    true AS judged
  FROM commits c JOIN runs r ON c.run = r.run AND c.zxid > r.first_zxid
  LATERAL VIEW posexplode(c.operations) x AS place, o
  WHERE NOT c.failed AND o.kind = 'create' AND {_IS_TOPIC.format("o.path")}
  UNION ALL
  SELECT run, czxid, -1, substring(path, 17), {_ID.format("data")}, false FROM dumps
  WHERE NOT is_final AND {_IS_TOPIC.format("path")}),
followed AS (
  SELECT *, min(struct(zxid, place)) OVER (PARTITION BY run, id) AS before
  FROM created WHERE id <> ''),
checked AS (SELECT * FROM followed WHERE judged)
SELECT run, CASE WHEN before < struct(zxid, place) THEN concat(zxid, '/', topic) END AS key,
  array(concat('zxid/', before.zxid), concat('zxid/', zxid)) AS rows,
  concat('zxid ', zxid, ': ', topic, ' was created with id ', id,
    ', which a topic created at zxid ', before.zxid, ' already had') AS sentence
FROM checked
"""
