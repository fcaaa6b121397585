"""kafka-authorizer.log: who was allowed and who was denied, in Kafka's own lines.

Denied is INFO, allowed and why is DEBUG, what nobody really asked for is TRACE (kafka-semantics
6.5). The file turns over every hour, as Kafka's does. A name may hold anything: what would break a
line, or begin a false one, is written as Kafka's JSON would write it.
"""

from __future__ import annotations

import logging
from logging.handlers import TimedRotatingFileHandler
from pathlib import Path
from typing import Final

from bridgehead.authorizer import Action, Asker, Verdict
from bridgehead.kafka_wire.apis import API_SPECS

FILE_NAME: Final = "kafka-authorizer.log"
OFF: Final = "OFF"
LEVELS: Final = (OFF, "INFO", "DEBUG", "TRACE")
_TRACE: Final = 5
_UNPRINTABLE: Final = {code: f"\\u{code:04x}" for code in (*range(32), *range(127, 160))} | {
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


def camel_case(word: str) -> str:
    """Return `DESCRIBE_CONFIGS` as `DescribeConfigs`: how znodes and the log spell it."""
    return "".join(part.capitalize() for part in word.split("_"))


class NoAuthorizerLog:
    """Tells nobody: the log is off, or there is no authorizer."""

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

    def close(self) -> None:
        """Nothing to close."""


class AuthorizerLog:
    """Writes the file. Raises OSError when the folder cannot be written."""

    def __init__(self, directory: Path, level: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        logging.addLevelName(_TRACE, "TRACE")
        handler = TimedRotatingFileHandler(directory / FILE_NAME, when="H", encoding="utf-8")
        handler.suffix = "%Y-%m-%d-%H"
        handler.setFormatter(
            logging.Formatter("[%(asctime)s] %(levelname)s %(message)s (%(name)s)")
        )
        # Not one of the process's named loggers: several nodes may live in one process.
        self._logger = logging.Logger("kafka.authorizer.logger", level)
        self._logger.addHandler(handler)
        self._handler = handler

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
            level = logging.DEBUG if log_if_allowed else _TRACE
        else:
            level = logging.INFO if log_if_denied else _TRACE
        if verdict.reason and self._logger.isEnabledFor(logging.DEBUG):
            self._logger.debug("%s", verdict.reason.translate(_UNPRINTABLE))
        if self._logger.isEnabledFor(level):
            self._logger.log(level, "%s", audit_line(asker, action, verdict, count))

    def close(self) -> None:
        """Close the file."""
        self._handler.close()


def audit_line(asker: Asker, action: Action, verdict: Verdict, count: int) -> str:
    """Return Kafka's line about one verdict."""
    spec = API_SPECS.get(asker.api_key)
    text = (
        f"Principal = {asker.principal} is {'Allowed' if verdict.allowed else 'Denied'} "
        f"Operation = {camel_case(action.operation)} from host = {asker.host} on resource = "
        f"{camel_case(action.resource_type)}:LITERAL:{action.resource_name} for request = "
        f"{spec.name if spec else asker.api_key} with resourceRefCount = {count}"
    )
    return text.translate(_UNPRINTABLE)
