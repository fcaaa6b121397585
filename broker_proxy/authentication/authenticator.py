"""The SASL state of a connection: Kafka's SaslServerAuthenticator as a pure state machine.

    INITIAL ──ApiVersions──▶ VERSIONS_KNOWN ──SaslHandshake──▶ EXCHANGE ──tokens──▶ COMPLETE
       └────────────────SaslHandshake──────────────────────────▲                      │
                                              re-authentication: SaslHandshake ───────┘

After SaslHandshake v0 the client sends tokens as bare frames. After v1 it sends them in
SaslAuthenticate. An unexpected request fails the login. The client then gets the response that
Kafka sends, or no response (docs/kafka/wire.md#sasl). The caller delays that response and then
closes the connection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import DRAFTED_SPECS, error_response
from bridgehead.kafka_wire.codec import decode_request, encode_response
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    UnsupportedVersionError,
    decode_request_header,
    encode_response_header,
)
from bridgehead.kafka_wire.messages.api_versions import ApiVersionsResponse
from bridgehead.kafka_wire.messages.envelope import EnvelopeResponse
from bridgehead.kafka_wire.messages.sasl_authenticate import SaslAuthenticateResponse
from bridgehead.kafka_wire.messages.sasl_handshake import SaslHandshakeResponse
from bridgehead.kafka_wire.primitives import WireError
from bridgehead.kafka_wire.request_checks import check_request
from broker_proxy.apis.admin.api_versions import names_software
from broker_proxy.authentication.sasl_server import (
    NewSaslServer,
    SaslAuthenticationError,
    SaslCutOffError,
    SaslError,
    SaslResult,
    SaslServer,
)
from cluster_model.principal import KafkaPrincipal

_HANDSHAKE_KEY: Final = ApiKey.SASL_HANDSHAKE.to_bytes(2, "big")
REAUTHENTICATE_AGAIN_MS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Dispatch:
    """The frame is an ordinary request for the dispatcher."""


@dataclass(frozen=True, slots=True)
class SendResponse:
    """Send `payload`. `logged_in` is True if the login has just succeeded."""

    payload: bytes
    logged_in: bool = False


@dataclass(frozen=True, slots=True)
class Reject:
    """The login failed: wait, send `payload` if there is one, and close the connection."""

    payload: bytes | None
    reason: str  # for the log; contains no secret


@dataclass(frozen=True, slots=True)
class Expired:
    """The session expired without re-authentication: close the connection."""


LoginOutcome = Dispatch | SendResponse | Reject | Expired


@dataclass(frozen=True, slots=True)
class Mechanism:
    """One mechanism of a listener."""

    new_server: NewSaslServer
    max_reauth_ms: int = 0  # connections.max.reauth.ms; 0: no limit


class _State(Enum):
    INITIAL = auto()
    VERSIONS_KNOWN = auto()
    EXCHANGE = auto()
    OTHER_MECHANISM = auto()  # re-authentication began with another mechanism
    COMPLETE = auto()
    FAILED = auto()


class SaslAuthenticator:
    """The login of one connection, and its re-authentications."""

    def __init__(
        self,
        mechanisms: Mapping[str, Mechanism],
        build_principal: Callable[[str, SaslResult], KafkaPrincipal],
        wall_ms: Callable[[], int],
    ) -> None:
        """`mechanisms` are in the order in which clients see them.

        `build_principal` gets the mechanism and its result. If it raises anything, the login fails.
        `wall_ms` returns milliseconds since 1970; credentials expire by this clock.
        """
        self._mechanisms = mechanisms
        self._build_principal = build_principal
        self._wall_ms = wall_ms
        self._state = _State.INITIAL
        self._server: SaslServer | None = None
        self._wrapped = False  # tokens are in SaslAuthenticate
        self._credential_ends_ms: int | None = None
        self._expires_at_ms: int | None = None
        self._began_again_ms: int | None = None
        self.mechanism: str | None = None
        self.principal: KafkaPrincipal | None = None
        self.ends_at_ms: int | None = None  # the end of the session, by `wall_ms`

    @property
    def is_complete(self) -> bool:
        """True while ordinary requests are served."""
        return self._state is _State.COMPLETE

    def receive(self, frame: bytes, now_ms: int) -> LoginOutcome:
        """Handle the next frame of the connection; `now_ms` is monotonic."""
        if self._state is _State.COMPLETE:
            return self._while_complete(frame, now_ms)
        if self._state in (_State.INITIAL, _State.VERSIONS_KNOWN):
            return self._request(frame)
        if self._state is _State.EXCHANGE:
            return self._token(frame, now_ms) if self._wrapped else self._bare_token(frame, now_ms)
        if self._state is _State.OTHER_MECHANISM:
            return self._reject("re-authentication with another mechanism")
        return self._reject("the login has already failed")

    def is_valid(self, now_ms: int) -> bool:
        """True if the client is logged in and its session has not expired."""
        if self._state is not _State.COMPLETE:
            return False
        return self._expires_at_ms is None or now_ms < self._expires_at_ms

    def _while_complete(self, frame: bytes, now_ms: int) -> LoginOutcome:
        if self._expires_at_ms is None:
            return Dispatch()
        if frame[:2] == _HANDSHAKE_KEY and self._may_reauthenticate(now_ms):
            self._began_again_ms = now_ms
            return self._request(frame)
        # An expired credential gives a session of 0 ms, in which no request is served.
        return Dispatch() if self.is_valid(now_ms) else Expired()

    def _may_reauthenticate(self, now_ms: int) -> bool:
        began = self._began_again_ms
        return began is None or now_ms - began >= REAUTHENTICATE_AGAIN_MS

    def _request(self, frame: bytes) -> LoginOutcome:
        """Handle a request before the exchange: SaslHandshake, or ApiVersions once."""
        try:
            header, at = decode_request_header(frame)
        except UnsupportedVersionError as error:
            if error.header.api_key == ApiKey.API_VERSIONS and self._state is _State.INITIAL:
                return Dispatch()  # The dispatcher answers; the client may retry.
            return self._reject(str(error))
        except WireError as error:
            return self._reject(str(error))
        if header.api_key not in (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE):
            name = DRAFTED_SPECS[header.api_key].name
            return self._reject(f"Unexpected Kafka request of type {name} during SASL handshake.")
        try:
            message = decode_request(header.api_key, header.api_version, frame, at)
        except WireError as error:
            return self._reject(str(error))
        if header.api_key == ApiKey.SASL_HANDSHAKE:
            return self._handshake(header, message.mechanism)
        if self._state is not _State.INITIAL:
            return self._reject("Unexpected ApiVersions request")
        if names_software(header.api_version, message):
            self._state = _State.VERSIONS_KNOWN
        return Dispatch()

    def _handshake(self, header: RequestHeader, wanted: str) -> LoginOutcome:
        mechanism = self._mechanisms.get(wanted)
        error = ErrorCode.NONE if mechanism else ErrorCode.UNSUPPORTED_SASL_MECHANISM
        response = _encode(header, SaslHandshakeResponse(int(error), list(self._mechanisms)))
        if mechanism is None:
            # In a re-authentication, Kafka closes the connection without this response.
            payload = response if self.principal is None else None
            return self._reject("a mechanism that is not enabled", payload)
        if self.principal is not None and wanted != self.mechanism:
            self._state = _State.OTHER_MECHANISM
            return SendResponse(response)
        self.mechanism = wanted
        self._wrapped = header.api_version >= 1
        self._server = mechanism.new_server()
        self._state = _State.EXCHANGE
        return SendResponse(response)

    def _token(self, frame: bytes, now_ms: int) -> LoginOutcome:
        """Handle a SaslAuthenticate request."""
        try:
            header, at = decode_request_header(frame)
            message = decode_request(header.api_key, header.api_version, frame, at)
            check_request(header.api_key, header.api_version, message)
        except UnsupportedVersionError as error:
            return self._reject(str(error), _unsupported_version(error.header))
        except WireError as error:
            return self._reject(str(error))
        if header.api_key != ApiKey.SASL_AUTHENTICATE:
            reason = (
                f"Unexpected Kafka request of type {DRAFTED_SPECS[header.api_key].enum_name} "
                "during SASL authentication."
            )
            return self._reject(reason, _unexpected_request(header, message, reason))
        try:
            challenge = self._evaluate(message.auth_bytes)
        except SaslError as failed:
            cut_off = isinstance(failed, SaslCutOffError)
            payload = None if cut_off else _failure(header, self._client_text(failed))
            return self._reject(str(failed), payload)
        response = SaslAuthenticateResponse(0, "", challenge)
        if self._server is None:
            response.session_lifetime_ms = self._begin_session(now_ms)
        return SendResponse(_encode(header, response), self.is_complete)

    def _bare_token(self, frame: bytes, now_ms: int) -> LoginOutcome:
        """Handle a token after SaslHandshake v0; a failure gets no response."""
        try:
            challenge = self._evaluate(frame)
        except SaslError as failed:
            return self._reject(str(failed))
        if self._server is None:
            self._begin_session(now_ms)
        return SendResponse(challenge, self.is_complete)

    def _evaluate(self, response: bytes) -> bytes:
        """Return the next challenge. The last one sets the principal and clears `_server`."""
        assert self._server is not None
        assert self.mechanism is not None
        challenge = self._server.evaluate(response)
        result = self._server.result
        if result is None:
            return challenge
        principal = self._principal_of(self.mechanism, result)
        before = self.principal
        if before is not None and before != principal:
            raise SaslAuthenticationError(
                "Cannot change principals during re-authentication from "
                f"{before.type}.{before.name}: {principal.type}.{principal.name}"
            )
        self.principal = principal
        self._credential_ends_ms = result.expires_at_ms
        self._server = None
        return challenge

    def _principal_of(self, mechanism: str, result: SaslResult) -> KafkaPrincipal:
        try:
            return self._build_principal(mechanism, result)
        except Exception as error:
            raise SaslError(f"the principal builder failed: {type(error).__name__}") from error

    def _begin_session(self, now_ms: int) -> int:
        """Start a session. Return its lifetime in ms; 0 if it never expires or is over already."""
        assert self.mechanism is not None
        self._state = _State.COMPLETE
        wall_ms = self._wall_ms()
        ends = [] if self._credential_ends_ms is None else [self._credential_ends_ms]
        if (max_reauth_ms := self._mechanisms[self.mechanism].max_reauth_ms) > 0:
            ends.append(wall_ms + max_reauth_ms)
        self.ends_at_ms = min(ends, default=None)
        if self.ends_at_ms is None:
            self._expires_at_ms = None
            return 0
        lifetime_ms = max(0, self.ends_at_ms - wall_ms)
        self._expires_at_ms = now_ms + lifetime_ms
        return lifetime_ms

    def _client_text(self, failed: SaslError) -> str:
        if isinstance(failed, SaslAuthenticationError):
            return str(failed)
        again = "re-" if self.principal is not None else ""
        return (
            f"Authentication failed during {again}authentication due to invalid credentials "
            f"with SASL mechanism {self.mechanism}"
        )

    def _reject(self, reason: str, payload: bytes | None = None) -> Reject:
        self._state = _State.FAILED
        self._server = None
        return Reject(payload, reason)


def _encode(header: RequestHeader, response: Any) -> bytes:
    key, version = header.api_key, header.api_version
    head = encode_response_header(key, version, header.correlation_id)
    return head + encode_response(key, version, response)


def _failure(header: RequestHeader, text: str) -> bytes:
    error = int(ErrorCode.SASL_AUTHENTICATION_FAILED)
    return _encode(header, SaslAuthenticateResponse(error, text, b""))


def _unsupported_version(header: RequestHeader) -> bytes | None:
    """Return the response to an unsupported version of ApiVersions; None for other APIs."""
    if header.api_key != ApiKey.API_VERSIONS:
        return None
    error = int(ErrorCode.ILLEGAL_SASL_STATE)
    return _encode(header._replace(api_version=0), ApiVersionsResponse(error_code=error))


def _unexpected_request(header: RequestHeader, message: Any, reason: str) -> bytes | None:
    key, version, error = header.api_key, header.api_version, ErrorCode.ILLEGAL_SASL_STATE
    if key == ApiKey.ENVELOPE:
        return _encode(header, EnvelopeResponse(error_code=int(error)))
    response = error_response(key, message, version, error, reason)
    return None if response is None else _encode(header, response)
