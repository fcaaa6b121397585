"""F10: a controller executes only Envelopes that brokers sent.

A client that reaches the controller could forge an Envelope with any principal. The Envelope's
identity then names a process that does not exist or did not send it. A killed broker may not have
written its last events, so Envelopes of killed brokers are not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from event_log.properties import Violation
from judge.history import History, boot_of, place_of, row_of
from judge.properties.violations import violation


def check(history: History) -> Iterator[Violation | None]:
    """Look for the sender's record of every Envelope that was executed."""
    sent = {(boot_of(e), e["request_id"]) for e in history.of_kind["forward_sent"]}
    boots = {boot_of(e) for e in history.events}
    stopped = {boot_of(e) for e in history.of_kind["stopped"]}
    for event in history.of_kind["execution_started"]:
        broker_id, incarnation, _ = event["identity"]
        sender = str(broker_id), incarnation
        if not event["epoch"] or (sender in boots and sender not in stopped):
            continue
        if (sender, event["request_id"]) in sent:
            yield None
            continue
        sentence = (
            f"{event['request_id']}: node {event['node']} executed it as an Envelope of broker "
            f"{broker_id}, incarnation {incarnation}, which did not send it"
        )
        yield violation("F10", place_of(event), [row_of(event)], sentence)
