"""One connection to a broker: version negotiation, login, responses by correlation id. No I/O.

ApiVersions comes first, in version 3. If the broker rejects that version, the client uses one that
the broker supports (KIP-511). On a SASL listener, the login comes next. After that, `AdminCore` may
send requests.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from enum import Enum, auto
from typing import Any, Final, NamedTuple

from bridgehead import __version__
from bridgehead.admin.config import Address
from bridgehead.admin.errors import (
    AuthenticationError,
    ConnectionFailedError,
    UnsupportedVersionError,
)
from bridgehead.admin.logins import Login
from bridgehead.admin.requests import Request, error_code
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import QUORUM_SPECS, SPECS
from bridgehead.kafka_wire.codec import decode_response, encode_request
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.framing import FrameBuffer, frame
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from bridgehead.kafka_wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from bridgehead.kafka_wire.messages.sasl_authenticate import SaslAuthenticateRequest
from bridgehead.kafka_wire.messages.sasl_handshake import SaslHandshakeRequest
from bridgehead.kafka_wire.primitives import WireError

_API_VERSIONS: Final = 3
_SOFTWARE: Final = "bridgehead"


class Stage(Enum):
    """The stage that a connection has reached."""

    CONNECTING = auto()
    NEGOTIATING = auto()
    LOGGING_IN = auto()
    READY = auto()


class Sent(NamedTuple):
    """A request that has no response yet."""

    key: ApiKey
    version: int
    dialect: str
    unread: tuple[str, ...]


class Response(NamedTuple):
    """A response to a request of `AdminCore`."""

    correlation_id: int
    version: int
    message: Any


class BrokerConnection:
    """The protocol of one connection. `outgoing` collects the bytes to send."""

    def __init__(self, address: Address, client_id: str, login: Login | None) -> None:
        self.stage = Stage.CONNECTING
        self.outgoing = bytearray()
        self.dialect = "shipped"
        self.session_lifetime_ms = 0  # 0: the login does not expire
        self._address = address
        self._client_id = client_id
        self._login = login
        self._frames = FrameBuffer()
        self._sent: OrderedDict[int, Sent] = OrderedDict()
        self._next_id = 0
        self._ranges: Mapping[int, tuple[int, int]] = {}

    @property
    def ranges(self) -> Mapping[int, tuple[int, int]]:
        """The lowest and highest version of each API that the broker has, by API key."""
        return self._ranges

    def opened(self) -> None:
        """Start the negotiation: the connection is open."""
        self.stage = Stage.NEGOTIATING
        self._negotiate(_API_VERSIONS)

    def version_of(self, request: Request) -> tuple[int, str]:
        """Return the newest version that request, client and broker support, and the dialect.

        Raises:
            UnsupportedVersionError: there is no such version. The text names the broker and the
                API, and the version ranges if the broker has the API.
        """
        spec = SPECS[self.dialect].get(request.key) or QUORUM_SPECS.get(request.key)
        served = self._ranges.get(request.key)
        name = (spec or SPECS["drafted"][request.key]).name
        need = f", which {request.because} needs" if request.because else ""
        if spec is None or served is None or request.dialect not in (None, self.dialect):
            what = f"{name} of the dialect {request.dialect}" if request.dialect else name
            raise UnsupportedVersionError(f"The broker at {self._address} has no {what}{need}.")
        least = max(spec.min_version, request.min_version)
        most = spec.max_version if request.max_version is None else request.max_version
        if request.broker is not None and self.dialect == "drafted" and spec.forwarded_below:
            most = min(most, spec.forwarded_below - 1)  # only the controller serves newer versions
        version = min(most, served[1])
        if version < max(least, served[0]):
            raise UnsupportedVersionError(
                f"The broker at {self._address} has {name} in the versions {served[0]} to "
                f"{served[1]}; {request.because or 'the client'} needs one of {least} to {most}."
            )
        return version, self.dialect

    def send(
        self,
        key: ApiKey,
        version: int,
        message: Any,
        dialect: str = "shipped",
        unread: tuple[str, ...] = (),
    ) -> int:
        """Add a request to `outgoing`; return its correlation id. Raises WireError."""
        body = encode_request(key, version, message, dialect)
        header = RequestHeader(key, version, self._next_id, self._client_id)
        self.outgoing += frame(encode_request_header(header) + body)
        self._sent[header.correlation_id] = Sent(key, version, dialect, unread)
        self._next_id = (self._next_id + 1) & 0x7FFFFFFF
        return header.correlation_id

    def receive(self, data: bytes) -> list[Response]:
        """Take bytes; return the responses to requests of `AdminCore`.

        Raises:
            AdminError: the login or the negotiation failed, or the broker sent something other
                than the next response. The connection must be closed.
        """
        try:
            return [
                response
                for payload in self._frames.receive_data(data)
                if (response := self._take(payload)) is not None
            ]
        except WireError as error:
            raise ConnectionFailedError(
                f"The broker at {self._address} sent something that is not a response: {error}."
            ) from None

    def _take(self, payload: bytes) -> Response | None:
        if not self._sent:
            raise WireError("no request is waiting for it")
        expected, sent = next(iter(self._sent.items()))
        correlation_id, at = decode_response_header(sent.key, sent.version, payload)
        if correlation_id != expected:
            raise WireError(f"correlation id {correlation_id} instead of {expected}")
        del self._sent[expected]
        if self.stage is Stage.NEGOTIATING:
            self._negotiated(sent.version, payload, at)
            return None
        message = decode_response(sent.key, sent.version, payload, at, sent.dialect, sent.unread)
        if self.stage is Stage.LOGGING_IN:
            self._log_in(sent, message)
            return None
        return Response(correlation_id, sent.version, message)

    def _negotiate(self, version: int) -> None:
        self.send(ApiKey.API_VERSIONS, version, ApiVersionsRequest(_SOFTWARE, __version__))

    def _negotiated(self, version: int, payload: bytes, at: int) -> None:
        unsupported = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
        rejected = payload[at : at + 2] == unsupported  # such a response has version 0
        message: ApiVersionsResponse = decode_response(
            ApiKey.API_VERSIONS, 0 if rejected else version, payload, at
        )
        self._ranges = {
            api_key.api_key: (api_key.min_version, api_key.max_version)
            for api_key in message.api_keys
        }
        if rejected and version > 0:
            _, newest = self._ranges.get(ApiKey.API_VERSIONS, (0, 0))
            self._negotiate(min(newest, version - 1))
            return
        if message.error_code:
            raise UnsupportedVersionError(
                f"The broker at {self._address} does not negotiate versions: "
                f"{error_code(message.error_code).name}."
            )
        # Only a drafted listener lists the APIs of KIP-4 that Kafka never had.
        self.dialect = "drafted" if ApiKey.ALTER_TOPICS in self._ranges else "shipped"
        if self._login is None:
            self.stage = Stage.READY
            return
        self.stage = Stage.LOGGING_IN
        version, _ = self.version_of(_fixed(ApiKey.SASL_HANDSHAKE, "the login", 1))
        self.send(ApiKey.SASL_HANDSHAKE, version, SaslHandshakeRequest(self._login.mechanism))

    def _log_in(self, sent: Sent, message: Any) -> None:
        assert self._login is not None
        if message.error_code:
            code = error_code(message.error_code)
            reason = getattr(message, "error_message", None) or code.default_text
            if code is ErrorCode.UNSUPPORTED_SASL_MECHANISM:
                enabled = ", ".join(message.mechanisms) or "none"
                reason = f"{self._login.mechanism} is not enabled; enabled: {enabled}."
            raise AuthenticationError(f"The login at {self._address} failed: {reason}")
        if sent.key is ApiKey.SASL_HANDSHAKE:
            self._authenticate(self._login.first())
            return
        self.session_lifetime_ms = message.session_lifetime_ms
        response = self._login.respond(message.auth_bytes)
        if response is None:
            self.stage = Stage.READY
        else:
            self._authenticate(response)

    def _authenticate(self, data: bytes) -> None:
        version, _ = self.version_of(_fixed(ApiKey.SASL_AUTHENTICATE, "the login", 0))
        self.send(ApiKey.SASL_AUTHENTICATE, version, SaslAuthenticateRequest(data))


def _fixed(key: ApiKey, because: str, least: int) -> Request:
    return Request(key, lambda _: None, min_version=least, because=because)
