"""The log levels of this process, which clients read and set as BROKER_LOGGER resources.

Our loggers have their own names. A few of Kafka's logger names, which tools use, map to our loggers
for the same function. The levels are those of log4j: FATAL is Python's CRITICAL, and TRACE is below
DEBUG. Changes last until the process ends (KIP-412).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

ROOT: Final = "root"
LEVELS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "DEBUG": logging.DEBUG,
        "ERROR": logging.ERROR,
        "FATAL": logging.CRITICAL,
        "INFO": logging.INFO,
        "TRACE": 5,
        "WARN": logging.WARNING,
    }
)
# Kafka's logger names and the loggers that they map to.
KAFKA_LOGGERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "kafka.controller.KafkaController": "controller",
        "kafka.network.SocketServer": "broker_proxy.connections.server",
        "kafka.server.ForwardingManagerImpl": "broker_proxy.forwarding.manager",
        "kafka.server.KafkaApis": "broker_proxy.requests",
        "kafka.server.metadata.ZkMetadataCache": "broker_proxy.metadata.cache",
    }
)
_OWN_PACKAGES: Final = (
    *("bridgehead", "broker_proxy", "cluster_model", "controller", "data_plane", "envelope"),
    *("event_log", "metrics", "node", "zookeeper_client"),
)


class LoggerLevels:
    """Reads and sets levels of the loggers below `root`."""

    def __init__(self, root: logging.Logger | None = None) -> None:
        self._root = root if root is not None else logging.getLogger()

    def _names(self) -> dict[str, str]:
        """Map the name of each known logger to its Python name, which is empty for the root."""
        loggers = (
            name
            for name, logger in self._root.manager.loggerDict.items()
            if isinstance(logger, logging.Logger) and name.split(".")[0] in _OWN_PACKAGES
        )
        return {ROOT: "", **KAFKA_LOGGERS, **{name: name for name in sorted(loggers)}}

    def _logger(self, name: str) -> logging.Logger:
        ours = self._names()[name]
        return self._root.manager.getLogger(ours) if ours else self._root

    def exists(self, name: str) -> bool:
        """Return whether a logger of that name is known."""
        return name in self._names()

    def levels(self) -> dict[str, str]:
        """Return the effective level of every known logger."""
        return {name: _level_name(self._logger(name)) for name in self._names()}

    def set(self, name: str, level: str) -> None:
        """Set the level of a known logger; `level` is a key of LEVELS."""
        self._logger(name).setLevel(LEVELS[level])

    def unset(self, name: str) -> None:
        """Make a known logger, except the root, inherit its level again."""
        assert name != ROOT
        self._logger(name).setLevel(logging.NOTSET)


def _level_name(logger: logging.Logger) -> str:
    number = logger.getEffectiveLevel()
    reached = [level for level in LEVELS if LEVELS[level] <= number]
    return max(reached, key=LEVELS.__getitem__, default="TRACE")
