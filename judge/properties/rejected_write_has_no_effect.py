"""A rejected write has no effect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from event_log.commits import CommitLine
from judge import sql
from judge.error_codes import INFO_CODES, OK_CODES, RETRY_CODES
from judge.history import NONE, Event, History, row_of
from judge.property import PropertySpec, Violation, zxid_row

SPEC: Final = PropertySpec(
    id="D2",
    name="rejected_write_has_no_effect",
    statement="a rejected write has no effect",
    witnesses=("commits", "events", "clients"),
    row="rejected elements in brokers' responses and in clients' operations",
    key="<request id>/<element> or <op id>/<element>",
)


def check(history: History) -> Iterator[Violation | None]:
    """Judge every rejected element, in the brokers' responses and in the clients' histories."""
    for response in history.responses:
        for element, error in response.elements:
            if _is_rejection(error):
                outcomes = history.committed.get((response.identity, element), [])
                done = [commit for commit, outcome in outcomes if outcome.error == NONE]
                events = (response.responded, response.decided)
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
    return SPEC.violation(f"{request}/{element}", rows, sentence)


_NO_REJECTION: Final = sql.listed(OK_CODES | INFO_CODES)
_NOT_JUDGED_OF_CLIENTS: Final = sql.listed(OK_CODES | INFO_CODES | RETRY_CODES)

INPUTS: Final = ("gold/decisions", "gold/client_outcomes")
SQL: Final = f"""
WITH rejected AS (
  SELECT run, request_id AS source, element, error, done,
    array(responded_row, decided_row) AS events
  FROM decisions WHERE error NOT IN ({_NO_REJECTION})
  UNION ALL
  SELECT run, op_id, element, error, done, array(invoked_row, completed_row)
  FROM client_outcomes WHERE error NOT IN ({_NOT_JUDGED_OF_CLIENTS}) AND named_once)
SELECT run, CASE WHEN size(done) > 0 THEN concat(source, '/', element) END AS key,
  concat(events, {sql.zxid_rows("done")}) AS rows,
  concat(source, ': ', element, ' was rejected with error code ', error, ', but committed at zxid ',
    get(done, 0)) AS sentence
FROM rejected
"""
