"""kafka-authorizer.log: allowed and denied actions, in Kafka's format.

Denied actions are logged at INFO, allowed actions and reasons at DEBUG, and informational checks at
TRACE (docs/kafka/logs.md#authorizer-log). Names may contain any character. Characters that break
lines are escaped as in Kafka's JSON. As in Kafka, a denial is in the file before the client gets
the response.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bridgehead.authorizer import Action, Requester, Verdict
from bridgehead.kafka_wire.apis import DRAFTED_SPECS
from cluster_model.znodes.acls import camel_case
from event_log.text_log import Level, TextLog

FILE_NAME: Final = "kafka-authorizer.log"
LOGGER: Final = "kafka.authorizer.logger"
_UNPRINTABLE: Final = {code: f"\\u{code:04x}" for code in (*range(32), *range(127, 160))} | {
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


class AuthorizerLog:
    """The Audit of cluster_model.acls.authorization."""

    def __init__(self, log: TextLog, wall_ms: Callable[[], int]) -> None:
        self._log = log
        self._wall_ms = wall_ms

    def record(
        self,
        requester: Requester,
        action: Action,
        verdict: Verdict,
        *,
        count: int,
        log_if_denied: bool,
        log_if_allowed: bool,
    ) -> None:
        if verdict.allowed:
            level = Level.DEBUG if log_if_allowed else Level.TRACE
        else:
            level = Level.INFO if log_if_denied else Level.TRACE
        if verdict.reason and self._log.level <= Level.DEBUG:
            self._log.append(Level.DEBUG, _printable(verdict.reason), self._wall_ms())
        if self._log.level <= level:
            line = audit_line(requester, action, verdict, count)
            self._log.append(level, line, self._wall_ms())
        if level is Level.INFO:
            self._log.flush()


def audit_line(requester: Requester, action: Action, verdict: Verdict, count: int) -> bytes:
    """Return Kafka's line for one verdict."""
    spec = DRAFTED_SPECS.get(requester.api_key)
    return _printable(
        f"Principal = {requester.principal} is {'Allowed' if verdict.allowed else 'Denied'} "
        f"Operation = {camel_case(action.operation)} from host = {requester.host} on resource = "
        f"{camel_case(action.resource_type)}:LITERAL:{action.resource_name} for request = "
        f"{spec.name if spec else requester.api_key} with resourceRefCount = {count}"
    )


def _printable(text: str) -> bytes:
    return text.translate(_UNPRINTABLE).encode(errors="backslashreplace")
