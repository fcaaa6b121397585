"""Events of clients' connections: who came, who proved to be whom, who did not. See `events`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Connected:
    """A client opened a connection."""

    kind: ClassVar[str] = "connected"
    connection: str
    listener: str
    security_protocol: str
    client_host: str
    principal: str


@dataclass(frozen=True, slots=True)
class Disconnected:
    """A client's connection is gone."""

    kind: ClassVar[str] = "disconnected"
    connection: str


@dataclass(frozen=True, slots=True)
class Authenticated:
    """A client proved who it is. `mechanism`: SASL's, or SSL; `renewed`: not for the first time."""

    kind: ClassVar[str] = "authenticated"
    connection: str
    mechanism: str
    principal: str
    token_authenticated: bool
    renewed: bool


@dataclass(frozen=True, slots=True)
class AuthenticationFailed:
    """A client did not get in, or did not get its login renewed. `reason` holds no secret."""

    kind: ClassVar[str] = "authentication_failed"
    connection: str
    listener: str
    client_host: str
    mechanism: str | None
    reason: str
    renewed: bool


@dataclass(frozen=True, slots=True)
class ChannelRefused:
    """Somebody said to be a broker and could not prove it; the stream was ended at once."""

    kind: ClassVar[str] = "channel_refused"
    broker_id: int  # as it said
    principal: str | None  # of its certificate
    reason: str


@dataclass(frozen=True, slots=True)
class SessionExpired:
    """A client asked on after its login had ended; its connection was closed."""

    kind: ClassVar[str] = "session_expired"
    connection: str
