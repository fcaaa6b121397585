"""States and errors of a ZooKeeper session."""

from __future__ import annotations

from enum import Enum


class SessionState(Enum):
    """The state of a ZooKeeper session."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"  # disconnected; the session may still be alive
    LOST = "lost"  # expired, rejected or closed; final


class ConnectionLostError(Exception):
    """The connection broke. A pending write may have been executed."""


class ZooKeeperRejectedError(Exception):
    """ZooKeeper returned an error, so it is certain that nothing was done."""


class SessionLostError(ConnectionLostError):
    """The session is lost. A pending write may have been executed."""
