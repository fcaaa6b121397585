"""What the owner of a ZooKeeper session is told of it. Pure values; the session is elsewhere."""

from __future__ import annotations

from enum import Enum


class SessionState(Enum):
    """What the owner of a session is told."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"  # no server answers; the session may still live
    LOST = "lost"  # expired, refused or closed; never comes back


class ConnectionLostError(Exception):
    """The connection broke. A write may have been executed: not definite."""


class SessionLostError(ConnectionLostError):
    """The session is gone. A write in flight may have been executed: not definite."""
