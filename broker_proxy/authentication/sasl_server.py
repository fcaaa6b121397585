"""The interface of a SASL mechanism's login."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


class SecurityConfigError(Exception):
    """An invalid security property. The text is one sentence for the operator."""


class SaslError(Exception):
    """A login failed. The text is for the broker's log; the client gets no reason.

    The text may name the user, and never contains a password, a proof, a nonce or a token.
    """


class SaslAuthenticationError(SaslError):
    """A login failed, and the client gets this text, which is Kafka's."""


class SaslCutOffError(SaslError):
    """A login failed where Kafka closes the connection without a response."""


@dataclass(frozen=True, slots=True)
class SaslResult:
    """A successful login."""

    authorization_id: str
    token_authenticated: bool = False
    expires_at_ms: int | None = None  # when the credential expires


class SaslServer(Protocol):
    """One exchange. `result` is None until it succeeds."""

    result: SaslResult | None

    def evaluate(self, response: bytes) -> bytes:
        """Process the client's message and return the challenge. Raises SaslError."""


NewSaslServer = Callable[[], SaslServer]
