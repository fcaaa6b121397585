"""kafka-authorizer.log: allowed and denied actions, in Kafka's format.

Denied actions are logged at INFO, allowed actions and reasons at DEBUG, and informational checks at
TRACE (docs/kafka/logs.md#authorizer-log). Names may contain any character. Characters that break
lines are escaped as in Kafka's JSON. As in Kafka, a denial is in the file before the client gets
the response.

Kafka writes one line for each name in a request, so that a client without rights can push all older
lines out of the files. Here a client gets `LINES_MAX` lines in a period, and one line with the
number of the others.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from bridgehead.authorizer import Action, Requester, Verdict
from bridgehead.kafka_wire.apis import DRAFTED_SPECS
from cluster_model.znodes.acls import camel_case
from event_log.text_log import Level, TextLog

FILE_NAME: Final = "kafka-authorizer.log"
LOGGER: Final = "kafka.authorizer.logger"
# The lines of one level that a principal and host may have in a period, and its length.
LINES_MAX: Final = 100
PERIOD_MS: Final = 1_000
_NAME_MAX: Final = 1_000  # characters shown of a name
_UNPRINTABLE: Final = {code: f"\\u{code:04x}" for code in (*range(32), *range(127, 160))} | {
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


@dataclass(slots=True)
class _Client:
    """The lines of one principal and host in a period: written ones, and others by level."""

    began_ms: int
    written: Counter[Level] = field(default_factory=Counter)
    others: Counter[Level] = field(default_factory=Counter)


class AuthorizerLog:
    """The Audit of cluster_model.acls.authorization."""

    def __init__(self, log: TextLog, wall_ms: Callable[[], int]) -> None:
        self._log = log
        self._wall_ms = wall_ms
        self._lock = threading.Lock()  # Large requests are authorized in a thread.
        self._clients: dict[tuple[str, str], _Client] = {}

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
        with self._lock:
            if (
                verdict.reason
                and self._log.level <= Level.DEBUG
                and self._may_write(requester, Level.DEBUG)
            ):
                self._log.append(Level.DEBUG, _printable(verdict.reason), self._wall_ms())
            if self._log.level <= level and self._may_write(requester, level):
                line = audit_line(requester, action, verdict, count)
                self._log.append(level, line, self._wall_ms())
                if level is Level.INFO:
                    self._log.flush()

    def _may_write(self, requester: Requester, level: Level) -> bool:
        """Return whether this client may have another line; if not, count it."""
        key, now_ms = (str(requester.principal), requester.host), self._wall_ms()
        client = self._clients.get(key)
        if client is not None and abs(now_ms - client.began_ms) >= PERIOD_MS:
            self._end_period(key, client)
            client = None
        if client is None:
            client = self._clients[key] = _Client(now_ms)
        counter = client.written if client.written[level] < LINES_MAX else client.others
        counter[level] += 1
        return counter is client.written

    def _end_period(self, key: tuple[str, str], client: _Client) -> None:
        del self._clients[key]
        for level, number in client.others.items():
            line = _printable(
                f"Principal = {key[0][:_NAME_MAX]} from host = {key[1]}: {number} more lines of "
                f"this level within {PERIOD_MS} ms"
            )
            self._log.append(level, line, self._wall_ms())

    def call_when_buffered(self, callback: Callable[[], object]) -> None:
        """Call back, from any thread, when a line waits for `flush`."""
        self._log.on_buffered = callback

    @property
    def has_open_periods(self) -> bool:
        """True while a later `flush` may have to write the number of a client's other lines."""
        return bool(self._clients)

    def flush(self) -> None:
        """Write the numbers of the periods that have ended, and flush the file."""
        with self._lock:
            now_ms = self._wall_ms()
            for key, client in list(self._clients.items()):
                if abs(now_ms - client.began_ms) >= PERIOD_MS:
                    self._end_period(key, client)
        self._log.flush()

    def close(self) -> None:
        """Write all numbers, and close the file."""
        with self._lock:
            for key, client in list(self._clients.items()):
                self._end_period(key, client)
        self._log.close()


def audit_line(requester: Requester, action: Action, verdict: Verdict, count: int) -> bytes:
    """Return Kafka's line for one verdict."""
    spec = DRAFTED_SPECS.get(requester.api_key)
    return _printable(
        f"Principal = {requester.principal} is {'Allowed' if verdict.allowed else 'Denied'} "
        f"Operation = {camel_case(action.operation)} from host = {requester.host} on resource = "
        f"{camel_case(action.resource_type)}:LITERAL:{_short(action.resource_name)} for request = "
        f"{spec.name if spec else requester.api_key} with resourceRefCount = {count}"
    )


def _short(name: str) -> str:
    if len(name) <= _NAME_MAX:
        return name
    return f"{name[:_NAME_MAX]}... ({len(name)} characters)"


def _printable(text: str) -> bytes:
    return text.translate(_UNPRINTABLE).encode(errors="backslashreplace")
