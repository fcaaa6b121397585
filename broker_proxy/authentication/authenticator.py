"""A connection's way through SASL: Kafka's SaslServerAuthenticator as a pure state machine.

    INITIAL ──ApiVersions──▶ VERSIONS_KNOWN ──SaslHandshake──▶ EXCHANGE ──tokens──▶ COMPLETE
       └────────────────SaslHandshake──────────────────────────▲                      │
                                     a session that ends: SaslHandshake again ────────┘

After SaslHandshake v0 the tokens come bare, after v1 in SaslAuthenticate. Whatever comes out of
turn fails the login; what the client is told, and whether it is told at all, is Kafka's
(kafka-semantics 11.1). The caller sends failures late and then closes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

from bridgehead.kafka_wire.codec import decode_request, encode_response
from bridgehead.kafka_wire.dialects import DRAFTED_SPECS
from bridgehead.kafka_wire.error_responses import ERROR_RESPONSES, error_response
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    UnsupportedVersionError,
    decode_request_header,
    encode_response_header,
)
from bridgehead.kafka_wire.left_out_error_responses import left_out_error_response
from bridgehead.kafka_wire.messages.api_versions import ApiVersionsResponse
from bridgehead.kafka_wire.messages.envelope import EnvelopeResponse
from bridgehead.kafka_wire.messages.sasl_authenticate import SaslAuthenticateResponse
from bridgehead.kafka_wire.messages.sasl_handshake import SaslHandshakeResponse
from bridgehead.kafka_wire.primitives import WireError
from bridgehead.kafka_wire.request_checks import check_request
from broker_proxy.apis.api_versions import names_software
from broker_proxy.authentication.sasl_server import (
    NewSaslServer,
    SaslAuthenticationError,
    SaslCutOffError,
    SaslError,
    SaslResult,
    SaslServer,
)
from cluster_model.principal import KafkaPrincipal

SASL_HANDSHAKE: Final = 17
API_VERSIONS: Final = 18
SASL_AUTHENTICATE: Final = 36
_ENVELOPE: Final = 58  # ERROR_RESPONSES has the draft's
_HANDSHAKE_KEY: Final = SASL_HANDSHAKE.to_bytes(2, "big")
REAUTHENTICATE_AGAIN_MS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Dispatch:
    """The frame is an ordinary request, to be answered like any other."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Send this; `logged_in` when the client is now known."""

    payload: bytes
    logged_in: bool = False


@dataclass(frozen=True, slots=True)
class Refuse:
    """The login failed: send `payload` if there is one, late, and close."""

    payload: bytes | None
    reason: str  # for the log; no secret


@dataclass(frozen=True, slots=True)
class Expired:
    """The session was over and the client did not log in again: close."""


Outcome = Dispatch | Reply | Refuse | Expired


@dataclass(frozen=True, slots=True)
class Mechanism:
    """One mechanism of a listener."""

    new_server: NewSaslServer
    max_reauth_ms: int = 0  # connections.max.reauth.ms; 0: a session has no end of its own


class _State(Enum):
    INITIAL = auto()
    VERSIONS_KNOWN = auto()
    EXCHANGE = auto()
    OTHER_MECHANISM = auto()  # re-authentication was begun with another mechanism
    COMPLETE = auto()
    FAILED = auto()


class SaslAuthenticator:
    """One connection's login, and its renewals."""

    def __init__(
        self,
        mechanisms: Mapping[str, Mechanism],
        build_principal: Callable[[str, SaslResult], KafkaPrincipal],
        wall_ms: Callable[[], int],
    ) -> None:
        """`mechanisms` by name, in the order in which a client is told of them.

        `build_principal` gets mechanism and result; whatever it raises fails the login.
        `wall_ms`: milliseconds since 1970, in which credentials say when they end.
        """
        self._mechanisms = mechanisms
        self._build_principal = build_principal
        self._wall_ms = wall_ms
        self._state = _State.INITIAL
        self._server: SaslServer | None = None
        self._wrapped = False  # tokens come in SaslAuthenticate
        self._credential_ends_ms: int | None = None
        self._expires_at_ms: int | None = None
        self._began_again_ms: int | None = None
        self.mechanism: str | None = None
        self.principal: KafkaPrincipal | None = None

    @property
    def is_complete(self) -> bool:
        """True while ordinary requests are served."""
        return self._state is _State.COMPLETE

    @property
    def is_reauthenticating(self) -> bool:
        """True between the handshake of a renewal and its end."""
        return self.principal is not None and self._state is not _State.COMPLETE

    def receive(self, frame: bytes, now_ms: int) -> Outcome:
        """Take the next frame of the connection. Times come from one clock that never jumps."""
        if self._state is _State.COMPLETE:
            return self._while_complete(frame, now_ms)
        if self._state in (_State.INITIAL, _State.VERSIONS_KNOWN):
            return self._request(frame)
        if self._state is _State.EXCHANGE:
            return self._token(frame, now_ms) if self._wrapped else self._bare_token(frame, now_ms)
        if self._state is _State.OTHER_MECHANISM:
            return self._refuse("another mechanism than before was asked for")
        return self._refuse("the login has failed before")

    def _while_complete(self, frame: bytes, now_ms: int) -> Outcome:
        if self._expires_at_ms is None:
            return Dispatch()
        if frame[:2] == _HANDSHAKE_KEY and self._may_begin_again(now_ms):
            self._began_again_ms = now_ms
            return self._request(frame)
        return Expired() if now_ms > self._expires_at_ms else Dispatch()

    def _may_begin_again(self, now_ms: int) -> bool:
        began = self._began_again_ms
        return began is None or now_ms - began >= REAUTHENTICATE_AGAIN_MS

    def _request(self, frame: bytes) -> Outcome:
        """Before the exchange: SaslHandshake, and ApiVersions once."""
        try:
            header, at = decode_request_header(frame)
        except UnsupportedVersionError as wrong:
            if wrong.header.api_key == API_VERSIONS and self._state is _State.INITIAL:
                return Dispatch()  # It is answered with what there is, and may ask again.
            return self._refuse(str(wrong))
        except WireError as wrong:
            return self._refuse(str(wrong))
        if header.api_key not in (API_VERSIONS, SASL_HANDSHAKE):
            name = DRAFTED_SPECS[header.api_key].name
            return self._refuse(f"Unexpected Kafka request of type {name} during SASL handshake.")
        try:
            message = decode_request(header.api_key, header.api_version, frame, at)
        except WireError as wrong:
            return self._refuse(str(wrong))
        if header.api_key == SASL_HANDSHAKE:
            return self._handshake(header, message.mechanism)
        if self._state is not _State.INITIAL:
            return self._refuse("Unexpected ApiVersions request")
        if names_software(header.api_version, message):
            self._state = _State.VERSIONS_KNOWN
        return Dispatch()

    def _handshake(self, header: RequestHeader, wanted: str) -> Outcome:
        mechanism = self._mechanisms.get(wanted)
        error = ErrorCode.NONE if mechanism else ErrorCode.UNSUPPORTED_SASL_MECHANISM
        answer = _encode(header, SaslHandshakeResponse(int(error), list(self._mechanisms)))
        if mechanism is None:
            # A renewal is cut off without a word (seen live).
            told = answer if self.principal is None else None
            return self._refuse("a mechanism that is not enabled", told)
        if self.principal is not None and wanted != self.mechanism:
            self._state = _State.OTHER_MECHANISM
            return Reply(answer)
        self.mechanism = wanted
        self._wrapped = header.api_version >= 1
        self._server = mechanism.new_server()
        self._state = _State.EXCHANGE
        return Reply(answer)

    def _token(self, frame: bytes, now_ms: int) -> Outcome:
        """Within the exchange: SaslAuthenticate."""
        try:
            header, at = decode_request_header(frame)
            message = decode_request(header.api_key, header.api_version, frame, at)
            check_request(header.api_key, header.api_version, message)
        except UnsupportedVersionError as wrong:
            return self._refuse(str(wrong), _in_no_version(wrong.header))
        except WireError as wrong:
            return self._refuse(str(wrong))
        if header.api_key != SASL_AUTHENTICATE:
            why = (
                f"Unexpected Kafka request of type {DRAFTED_SPECS[header.api_key].enum_name} "
                "during SASL authentication."
            )
            return self._refuse(why, _out_of_turn(header, message, why))
        try:
            challenge = self._evaluate(message.auth_bytes)
        except SaslError as failed:
            cut_off = isinstance(failed, SaslCutOffError)
            told = None if cut_off else _failure(header, self._told(failed))
            return self._refuse(str(failed), told)
        response = SaslAuthenticateResponse(0, "", challenge)
        if self._server is None:
            response.session_lifetime_ms = self._begin_session(now_ms)
        return Reply(_encode(header, response), self.is_complete)

    def _bare_token(self, frame: bytes, now_ms: int) -> Outcome:
        """Within the exchange after SaslHandshake v0: a failure is a closed connection."""
        try:
            challenge = self._evaluate(frame)
        except SaslError as failed:
            return self._refuse(str(failed))
        if self._server is None:
            self._begin_session(now_ms)
        return Reply(challenge, self.is_complete)

    def _evaluate(self, response: bytes) -> bytes:
        """Return the challenge; at the end `_server` is None and the principal known."""
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
        except Exception as wrong:
            raise SaslError(f"the principal builder failed: {type(wrong).__name__}") from wrong

    def _begin_session(self, now_ms: int) -> int:
        """Serve requests from now on; return how long, in milliseconds, 0: for ever."""
        assert self.mechanism is not None
        self._state = _State.COMPLETE
        limits = []
        if self._credential_ends_ms is not None:
            limits.append(max(0, self._credential_ends_ms - self._wall_ms()))
        if (max_reauth_ms := self._mechanisms[self.mechanism].max_reauth_ms) > 0:
            limits.append(max_reauth_ms)
        self._expires_at_ms = now_ms + min(limits) if limits else None
        return min(limits, default=0)

    def _told(self, failed: SaslError) -> str:
        if isinstance(failed, SaslAuthenticationError):
            return str(failed)
        again = "re-" if self.principal is not None else ""
        return (
            f"Authentication failed during {again}authentication due to invalid credentials "
            f"with SASL mechanism {self.mechanism}"
        )

    def _refuse(self, reason: str, payload: bytes | None = None) -> Refuse:
        self._state = _State.FAILED
        self._server = None
        return Refuse(payload, reason)


def _encode(header: RequestHeader, response: Any) -> bytes:
    key, version = header.api_key, header.api_version
    head = encode_response_header(key, version, header.correlation_id)
    return head + encode_response(key, version, response)


def _failure(header: RequestHeader, text: str) -> bytes:
    error = int(ErrorCode.SASL_AUTHENTICATION_FAILED)
    return _encode(header, SaslAuthenticateResponse(error, text, b""))


def _in_no_version(header: RequestHeader) -> bytes | None:
    """ApiVersions alone is answered in a version that nobody has."""
    if header.api_key != API_VERSIONS:
        return None
    error = int(ErrorCode.ILLEGAL_SASL_STATE)
    return _encode(header._replace(api_version=0), ApiVersionsResponse(error_code=error))


def _out_of_turn(header: RequestHeader, message: Any, why: str) -> bytes | None:
    key, version, error = header.api_key, header.api_version, ErrorCode.ILLEGAL_SASL_STATE
    if key == _ENVELOPE:
        return _encode(header, EnvelopeResponse(error_code=int(error)))
    if key in ERROR_RESPONSES:
        return _encode(header, error_response(key, message, version, error, why))
    response = left_out_error_response(key, version, error)
    return None if response is None else _encode(header, response)
