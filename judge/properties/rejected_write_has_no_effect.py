"""D2: a rejected write has no effect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from event_log.commits import CommitLine
from event_log.properties import INFO_CODES, OK_CODES, RETRY_CODES, Violation
from judge.history import NONE, Event, History, row_of
from judge.properties.violations import violation, zxid_row


def check(history: History) -> Iterator[Violation | None]:
    """Judge every rejected element, in the brokers' responses and in the clients' histories."""
    for response in history.responses:
        for element, error in response.elements:
            if _is_rejection(error):
                outcomes = history.committed.get((response.identity, element), [])
                done = [commit for commit, outcome in outcomes if outcome.error == NONE]
                events = (response.answered, response.decided)
                yield _violation(response.request_id, element, error, done, events)
    for operation in history.operations:
        for element, error in operation.elements:
            name = (operation.api_key, element)
            if _is_rejection(error) and error not in RETRY_CODES and name in history.unique_names:
                done = [commit for commit, _ in history.effects.get(name, [])]
                assert operation.completed is not None
                events = (operation.invoked, operation.completed)
                yield _violation(operation.op_id, element, error, done, events)


def _is_rejection(error: int) -> bool:
    return error not in OK_CODES and error not in INFO_CODES


def _violation(
    request: str, element: str, error: int, done: Sequence[CommitLine], events: Sequence[Event]
) -> Violation | None:
    if not done:
        return None
    rows = [*map(row_of, events), *(zxid_row(commit.zxid) for commit in done)]
    sentence = (
        f"{request}: {element} was rejected with error code {error}, but committed at zxid "
        f"{done[0].zxid}"
    )
    return violation("D2", f"{request}/{element}", rows, sentence)
