"""The effects that the core's caller carries out."""

from __future__ import annotations

from typing import Any, NamedTuple

from bridgehead.admin.config import Address
from bridgehead.admin.results import Try


class Connect(NamedTuple):
    """Open a connection, with TLS if the configuration requires it."""

    connection: int
    address: Address


class Send(NamedTuple):
    """Write bytes to a connection."""

    connection: int
    data: bytes


class Disconnect(NamedTuple):
    """Close a connection. The core ignores data that still arrives on it."""

    connection: int


class Complete(NamedTuple):
    """A call has ended."""

    call: int
    outcome: Try[Any]


Effect = Connect | Send | Disconnect | Complete
