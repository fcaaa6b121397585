"""What one login of one mechanism looks like to the state machine above it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


class SecurityConfigError(Exception):
    """A security property cannot be honoured. Its text is one sentence for the operator."""


class SaslError(Exception):
    """A login failed. Its text is for this broker's log: the client is told no reason.

    The text may name the user, and never holds a password, a proof, a nonce or a token.
    """


class SaslAuthenticationError(SaslError):
    """A login failed, and its text is what the client is told, as Kafka words it."""


class SaslCutOffError(SaslError):
    """A login failed where Kafka closes the connection without a word."""


@dataclass(frozen=True, slots=True)
class SaslResult:
    """A login that succeeded."""

    authorization_id: str
    token_authenticated: bool = False
    expires_at_ms: int | None = None  # when the credential itself ends


class SaslServer(Protocol):
    """One exchange. `result` is None until it succeeded."""

    result: SaslResult | None

    def evaluate(self, response: bytes) -> bytes:
        """Take the client's next message, return the challenge for it. Raises SaslError."""
        ...


NewSaslServer = Callable[[], SaslServer]
