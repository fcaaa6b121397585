"""D10: a created topic has an id that no earlier topic had.

KIP-516: only the id distinguishes a topic from a deleted topic of the same name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from event_log.properties import Violation
from judge.history import History, topic_of
from judge.properties.violations import violation, zxid_row


def check(history: History) -> Iterator[Violation | None]:
    """Compare the id of each created topic with the ids of all earlier topics."""
    known: dict[str, tuple[int, int]] = {}  # by id: zxid, and place in the transaction
    for path, line in sorted(history.evidence.first.items()):
        if topic_of(path) is not None and (topic_id := _id_in(line.data)):
            created = line.czxid, -1
            known[topic_id] = min(created, known.get(topic_id, created))
    for commit in history.applied:
        for place, operation in enumerate(commit.operations):
            name = topic_of(operation.path)
            if operation.kind != "create" or name is None:
                continue
            topic_id = _id_in(operation.data)
            if not topic_id:
                continue
            before = known.setdefault(topic_id, (commit.zxid, place))
            if before == (commit.zxid, place):
                yield None
                continue
            yield violation(
                "D10",
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
    found = content.get("topic_id") if isinstance(content, dict) else None
    return found if isinstance(found, str) else ""
