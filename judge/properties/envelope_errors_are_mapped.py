"""A client gets the error that KIP-590 assigns to the error of an Envelope.

An error of the Envelope is about the broker, not about the client's request. KIP-590
§EnvelopeResponse Handling: the client gets UNKNOWN_SERVER_ERROR, or REQUEST_TIMED_OUT if the
attempts end with NOT_CONTROLLER; after UNSUPPORTED_VERSION its connection is closed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from judge import sql
from judge.history import Event, History, boot_of, row_of
from judge.property import PropertySpec, Violation

SPEC: Final = PropertySpec(
    id="F6",
    name="envelope_errors_are_mapped",
    statement="a client gets the error that KIP-590 assigns to the error of an Envelope",
    witnesses=("events",),
    row="responses to requests whose last Envelope failed",
    key="<request id>",
    gap_blocks_fail=True,  # the gap may hide a later attempt
)

# The client's error for each error of an Envelope: 7 REQUEST_TIMED_OUT, 35 UNSUPPORTED_VERSION
# (then the connection is closed), 41 NOT_CONTROLLER. All others become -1 UNKNOWN_SERVER_ERROR.
ENVELOPE_ERRORS: Final = {7: 7, 35: 35, 41: 7}
UNMAPPED_ENVELOPE_ERROR: Final = -1


def check(history: History) -> Iterator[Violation | None]:
    """Judge every response to a request whose last Envelope failed."""
    last: dict[str, Event] = {}
    for event in history.of_kind["forward_replied"]:
        latest = last.get(event["request_id"])
        if latest is None or event["attempt"] > latest["attempt"]:
            last[event["request_id"]] = event
    for event in history.of_kind["responded"]:
        envelope = last.get(event["request_id"])
        if envelope is None or boot_of(envelope) != boot_of(event) or not envelope["error"]:
            continue
        expected = ENVELOPE_ERRORS.get(envelope["error"], UNMAPPED_ENVELOPE_ERROR)
        if event["error"] == expected:
            yield None
            continue
        sentence = (
            f"{event['request_id']}: its Envelope failed with error {envelope['error']}; "
            f"the client got {event['error']} instead of {expected}"
        )
        yield SPEC.violation(event["request_id"], [row_of(envelope), row_of(event)], sentence)


_MAPPED: Final = " ".join(f"WHEN {outer} THEN {code}" for outer, code in ENVELOPE_ERRORS.items())

INPUTS: Final = ("silver/forward_replied", "silver/responded")
SQL: Final = f"""
WITH last AS (
  SELECT run, request_id, max_by(struct(node, boot, seq, error), attempt) AS envelope
  FROM forward_replied GROUP BY run, request_id),
mapped AS (
  SELECT a.run, a.node, a.boot, a.seq, a.request_id, a.error, l.envelope,
    CASE l.envelope.error {_MAPPED} ELSE {UNMAPPED_ENVELOPE_ERROR} END AS expected
  FROM responded a JOIN last l ON a.run = l.run AND a.request_id = l.request_id
    AND a.node = l.envelope.node AND a.boot = l.envelope.boot
  WHERE l.envelope.error <> 0)
SELECT run, CASE WHEN NOT error <=> expected THEN request_id END AS key,
  array({sql.row_of("envelope")}, {sql.row_of("mapped")}) AS rows,
  concat(request_id, ': its Envelope failed with error ', envelope.error, '; the client got ',
    coalesce(CAST(error AS STRING), 'None'), ' instead of ', expected) AS sentence
FROM mapped
"""
