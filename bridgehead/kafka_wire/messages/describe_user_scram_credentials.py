"""DescribeUserScramCredentials, key 50, versions 0 to 0; flexible from 0."""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT8, INT16, INT32, STRING, Array, wire


@dataclass(slots=True)
class UserName:
    """An element of `users` of the request."""

    name: str = wire(STRING)


@dataclass(slots=True)
class DescribeUserScramCredentialsRequest:
    """The request."""

    users: list[UserName] | None = wire(Array(UserName), nullable="0+")


@dataclass(slots=True)
class CredentialInfo:
    """An element of `results.credential_infos` of the response."""

    mechanism: int = wire(INT8)
    iterations: int = wire(INT32)


@dataclass(slots=True)
class DescribeUserScramCredentialsResult:
    """An element of `results` of the response."""

    user: str = wire(STRING)
    error_code: int = wire(INT16)
    error_message: str | None = wire(STRING, nullable="0+")
    credential_infos: list[CredentialInfo] = wire(Array(CredentialInfo))


@dataclass(slots=True)
class DescribeUserScramCredentialsResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    error_code: int = wire(INT16)
    error_message: str | None = wire(STRING, nullable="0+")
    results: list[DescribeUserScramCredentialsResult] = wire(
        Array(DescribeUserScramCredentialsResult)
    )
