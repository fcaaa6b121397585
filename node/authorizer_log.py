"""kafka-authorizer.log: who was allowed and who was denied, in Kafka's own lines.

Denied is INFO, allowed and why is DEBUG, what nobody really asked for is TRACE (kafka-semantics
6.5). A name may hold anything: what would break a line, or begin a false one, is written as
Kafka's JSON would write it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bridgehead.authorizer import Action, Asker, Verdict
from bridgehead.kafka_wire.dialects import DRAFTED_SPECS
from cluster_model.acl_znodes import camel_case
from event_log.text_log import Level, TextLog

FILE_NAME: Final = "kafka-authorizer.log"
LOGGER: Final = "kafka.authorizer.logger"
_UNPRINTABLE: Final = {code: f"\\u{code:04x}" for code in (*range(32), *range(127, 160))} | {
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


class AuthorizerLog:
    """See Audit."""

    def __init__(self, log: TextLog, wall_ms: Callable[[], int]) -> None:
        self._log = log
        self._wall_ms = wall_ms
        self.flush = log.flush
        self.close = log.close

    def told(
        self,
        asker: Asker,
        action: Action,
        verdict: Verdict,
        *,
        count: int,
        log_if_denied: bool,
        log_if_allowed: bool,
    ) -> None:
        """See Audit."""
        if verdict.allowed:
            level = Level.DEBUG if log_if_allowed else Level.TRACE
        else:
            level = Level.INFO if log_if_denied else Level.TRACE
        if verdict.reason and self._log.level <= Level.DEBUG:
            self._log.append(Level.DEBUG, _printable(verdict.reason), self._wall_ms())
        if self._log.level <= level:
            line = audit_line(asker, action, verdict, count)
            self._log.append(level, line, self._wall_ms())


def audit_line(asker: Asker, action: Action, verdict: Verdict, count: int) -> bytes:
    """Return Kafka's line about one verdict."""
    spec = DRAFTED_SPECS.get(asker.api_key)
    return _printable(
        f"Principal = {asker.principal} is {'Allowed' if verdict.allowed else 'Denied'} "
        f"Operation = {camel_case(action.operation)} from host = {asker.host} on resource = "
        f"{camel_case(action.resource_type)}:LITERAL:{action.resource_name} for request = "
        f"{spec.name if spec else asker.api_key} with resourceRefCount = {count}"
    )


def _printable(text: str) -> bytes:
    return text.translate(_UNPRINTABLE).encode(errors="backslashreplace")
