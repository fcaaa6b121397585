"""The effects that the core's caller carries out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bridgehead.admin.config import Address
from bridgehead.admin.results import Try


@dataclass(frozen=True, slots=True)
class Connect:
    """Open a connection, with TLS if the configuration says so."""

    connection: int
    address: Address


@dataclass(frozen=True, slots=True)
class Send:
    """Write bytes to a connection."""

    connection: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Close a connection. The core ignores data that still arrives on it."""

    connection: int


@dataclass(frozen=True, slots=True)
class Complete:
    """A call has ended."""

    call: int
    outcome: Try[Any]


Effect = Connect | Send | Disconnect | Complete
