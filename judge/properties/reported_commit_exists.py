"""K4: every commit that a controller reports is in ZooKeeper's transaction log.

A controller that takes a lost reply for a success reports a commit that ZooKeeper does not have.
"""

from __future__ import annotations

from collections.abc import Iterator

from event_log.properties import Violation
from judge.history import History, place_of, row_of
from judge.properties.violations import violation


def check(history: History) -> Iterator[Violation | None]:
    """Look for the transaction of every reported commit."""
    if not history.evidence.manifest.zookeeper.logs:
        return
    sessions = {commit.zxid: commit.session for commit in history.applied}
    for event in history.of_kind["commit_answered"]:
        session = sessions.get(event["zxid"])
        if session == event["session"]:
            yield None
            continue
        wrong = "ZooKeeper applied no such transaction"
        if session is not None:
            wrong = f"session {session} wrote that transaction"
        sentence = (
            f"node {event['node']} reports that commit {event['number']} of session "
            f"{event['session']} has zxid {event['zxid']}, but {wrong}"
        )
        yield violation("K4", place_of(event), [row_of(event)], sentence)
