"""What becomes of logins: principals for connections, numbers and evidence about them.

A client is told no more than Kafka tells; the reason is here, in the log and in the events, and
holds no secret. Every counter has its event.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from broker_proxy.apis.base import ClientConnectionInfo
from broker_proxy.authentication.authenticator import Mechanism, SaslAuthenticator
from broker_proxy.authentication.principals import AuthenticationContext, PrincipalBuilder
from broker_proxy.authentication.sasl_server import SaslResult
from cluster_model.principal import KafkaPrincipal
from event_log.connections import Authenticated, AuthenticationFailed, SessionExpired
from event_log.writer import EventLog
from metrics.node_metrics import NodeMetrics

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Listener:
    """One listener as configured. Port 0 takes a free one."""

    name: str
    security_protocol: str
    host: str
    port: int
    dialect: str = "shipped"


@dataclass(frozen=True, slots=True)
class Gate:
    """What the clients of one listener have to pass. Without any of it they are anonymous."""

    builder: PrincipalBuilder | None = None
    mechanisms: Mapping[str, Mechanism] = field(default_factory=dict)  # empty: no SASL
    tls: ssl.SSLContext | None = None


class Logins:
    """Of all connections of one broker."""

    def __init__(self, log: EventLog, metrics: NodeMetrics, wall_ms: Callable[[], int]) -> None:
        self._log = log
        self._metrics = metrics
        self._wall_ms = wall_ms

    def identify(
        self, info: ClientConnectionInfo, gate: Gate, certificate: bytes | None
    ) -> SaslAuthenticator | None:
        """Say who a new connection is, or return the login that will.

        Raises:
            Exception: whatever a principal builder raises; the connection must be closed.
        """
        name = None
        if certificate is not None:
            # cryptography takes 8 MB, and most nodes never see a certificate.
            from broker_proxy.authentication.distinguished_name import certificate_name

            name = certificate_name(certificate)
        if gate.mechanisms:
            return SaslAuthenticator(
                gate.mechanisms,
                lambda mechanism, result: self._build(info, gate, name, mechanism, result),
                self._wall_ms,
            )
        if gate.builder is not None:
            info.principal = self._build(info, gate, name, None, None)
        if gate.tls is not None:
            self._succeeded(info, "SSL", renewed=False)
        return None

    def _build(
        self,
        info: ClientConnectionInfo,
        gate: Gate,
        name: str | None,
        mechanism: str | None,
        result: SaslResult | None,
    ) -> KafkaPrincipal:
        assert gate.builder is not None
        context = AuthenticationContext(
            security_protocol=info.security_protocol,
            listener_name=info.listener_name,
            client_host=info.client_host,
            certificate_name=name,
            mechanism=mechanism,
            authorization_id=result.authorization_id if result else None,
            token_authenticated=result.token_authenticated if result else False,
        )
        principal = gate.builder.build(context)
        if not isinstance(principal, KafkaPrincipal):
            raise TypeError("a principal builder returned something that is no KafkaPrincipal")
        return principal

    def logged_in(
        self, info: ClientConnectionInfo, login: SaslAuthenticator, *, renewed: bool
    ) -> None:
        """A SASL login has succeeded, the first one or one that renews it."""
        assert login.principal is not None
        assert login.mechanism is not None
        info.principal = login.principal
        self._succeeded(info, login.mechanism, renewed=renewed)

    def _succeeded(self, info: ClientConnectionInfo, mechanism: str, *, renewed: bool) -> None:
        self._metrics.login_succeeded(renewed=renewed)
        self._log.append(
            Authenticated(
                connection=info.connection_id,
                mechanism=mechanism,
                principal=str(info.principal),
                token_authenticated=info.principal.token_authenticated,
                renewed=renewed,
            )
        )

    def failed(
        self, info: ClientConnectionInfo, login: SaslAuthenticator | None, reason: str
    ) -> None:
        """A client did not get in, or did not get its login renewed."""
        renewed = login is not None and login.principal is not None
        _log.info("%s: login failed: %s", info.connection_id, reason)
        self._metrics.login_failed(renewed=renewed)
        self._log.append(
            AuthenticationFailed(
                connection=info.connection_id,
                listener=info.listener_name,
                client_host=info.client_host,
                mechanism=login.mechanism if login is not None else None,
                reason=reason,
                renewed=renewed,
            )
        )

    def expired(self, info: ClientConnectionInfo) -> None:
        """A client asked on after its session had ended."""
        _log.info("%s: the session is over and was not renewed", info.connection_id)
        self._metrics.session_expired()
        self._log.append(SessionExpired(connection=info.connection_id))
