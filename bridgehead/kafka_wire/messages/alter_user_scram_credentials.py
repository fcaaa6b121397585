"""AlterUserScramCredentials, key 51, versions 0 to 0; flexible from 0."""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import BYTES, INT8, INT16, INT32, STRING, Array, wire


@dataclass(slots=True)
class ScramCredentialDeletion:
    """An element of `deletions` of the request."""

    name: str = wire(STRING)
    mechanism: int = wire(INT8)


@dataclass(slots=True)
class ScramCredentialUpsertion:
    """An element of `upsertions` of the request."""

    name: str = wire(STRING)
    mechanism: int = wire(INT8)
    iterations: int = wire(INT32)
    salt: bytes = wire(BYTES)
    salted_password: bytes = wire(BYTES)


@dataclass(slots=True)
class AlterUserScramCredentialsRequest:
    """The request."""

    deletions: list[ScramCredentialDeletion] = wire(Array(ScramCredentialDeletion))
    upsertions: list[ScramCredentialUpsertion] = wire(Array(ScramCredentialUpsertion))


@dataclass(slots=True)
class AlterUserScramCredentialsResult:
    """An element of `results` of the response."""

    user: str = wire(STRING)
    error_code: int = wire(INT16)
    error_message: str | None = wire(STRING, nullable="0+")


@dataclass(slots=True)
class AlterUserScramCredentialsResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    results: list[AlterUserScramCredentialsResult] = wire(Array(AlterUserScramCredentialsResult))
