"""F6: a client gets the error that KIP-590 assigns to the error of an Envelope.

An error of the Envelope is about the broker, not about the client's request. KIP-590
§EnvelopeResponse Handling: the client gets UNKNOWN_SERVER_ERROR, or REQUEST_TIMED_OUT if the
attempts end with NOT_CONTROLLER; after UNSUPPORTED_VERSION its connection is closed.
"""

from __future__ import annotations

from collections.abc import Iterator

from event_log.properties import ENVELOPE_ERRORS, UNMAPPED_ENVELOPE_ERROR, Violation
from judge.history import Event, History, boot_of, row_of
from judge.properties.violations import violation


def check(history: History) -> Iterator[Violation | None]:
    """Judge every response to a request whose last Envelope failed."""
    last: dict[str, Event] = {}
    for event in history.of_kind["forward_answered"]:
        known = last.get(event["request_id"])
        if known is None or event["attempt"] > known["attempt"]:
            last[event["request_id"]] = event
    for event in history.of_kind["answered"]:
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
        yield violation("F6", event["request_id"], [row_of(envelope), row_of(event)], sentence)
