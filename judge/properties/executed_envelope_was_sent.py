"""A controller executes only Envelopes that brokers sent.

A client that reaches the controller could forge an Envelope with any principal. The Envelope's
identity then names a process that does not exist or did not send it. A killed broker may not have
written its last events, so Envelopes of killed brokers are not judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from judge import sql
from judge.history import History, boot_of, place_of, row_of
from judge.property import PropertySpec, Violation

SPEC: Final = PropertySpec(
    id="F10",
    name="executed_envelope_was_sent",
    statement="a controller executes only Envelopes that brokers sent",
    witnesses=("events",),
    row="executions of Envelopes, except Envelopes of killed brokers",
    key="<node>/<boot>/<seq> of the execution",
    gap_blocks_fail=True,  # the gap may hide the attempt
)


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
        yield SPEC.violation(place_of(event), [row_of(event)], sentence)


INPUTS: Final = ("silver/forward_sent", "silver/execution_started", "silver/boots")
SQL: Final = f"""
WITH sent AS (
  SELECT DISTINCT run, node, boot, request_id FROM forward_sent),
executed AS (
  SELECT run, node, boot, seq, request_id, identity, CAST(identity.broker_id AS STRING) AS sender,
    identity.incarnation AS incarnation
  FROM execution_started WHERE epoch <> 0),
judged AS (
  SELECT /*+ BROADCAST(b) */ x.*, s.run IS NOT NULL AS was_sent
  FROM executed x
  LEFT JOIN boots b ON x.run = b.run AND x.sender = b.node AND x.incarnation = b.boot
  LEFT JOIN sent s ON x.run = s.run AND x.sender = s.node AND x.incarnation = s.boot
    AND x.request_id = s.request_id
  WHERE b.run IS NULL OR b.stopped_seq IS NOT NULL)
SELECT run, CASE WHEN NOT was_sent THEN {sql.place_of("judged")} END AS key,
  array({sql.row_of("judged")}) AS rows,
  concat(request_id, ': node ', node, ' executed it as an Envelope of broker ', sender,
    ', incarnation ', incarnation, ', which did not send it') AS sentence
FROM judged
"""
