"""Kafka's principal: a type and a name.

`token_authenticated` is not part of its identity. The controller needs it to reject requests for
delegation tokens from clients that logged in with a token (KIP-590 §KafkaPrincipal Serialization).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class KafkaPrincipal:
    """A principal such as `User:alice`; equality is by type and name."""

    type: str
    name: str
    token_authenticated: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS: Final = KafkaPrincipal("User", "ANONYMOUS")
