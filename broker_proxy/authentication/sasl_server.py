"""The interface between the authenticator and a SASL mechanism."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


class SecurityConfigError(Exception):
    """An invalid security property. The text is one sentence for the operator."""


class SaslError(Exception):
    """A login failed. The text is for the broker's log, and only there unless a subclass says so.

    The text may name the user. It never contains a password, a proof, a nonce or a token.
    """


class SaslAuthenticationError(SaslError):
    """A login failed. The client gets the text, which is the same as Kafka's."""


class SaslCutOffError(SaslError):
    """A login failed in a case in which Kafka closes the connection without a response."""


@dataclass(frozen=True, slots=True)
class SaslResult:
    """A successful login."""

    authorization_id: str
    token_authenticated: bool = False
    expires_at_ms: int | None = None  # when the credential expires


class SaslServer(Protocol):
    """One exchange. `result` is None until the exchange succeeds."""

    result: SaslResult | None

    def evaluate(self, response: bytes) -> bytes:
        """Process a client message; return the challenge. Raises SaslError if the login fails."""


NewSaslServer = Callable[[], SaslServer]
