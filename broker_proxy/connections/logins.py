"""Logins of client connections: principals, metrics and evidence.

When a login fails, the client learns no more than a Kafka broker would tell it. The reason for the
failure goes to the log and to the evidence events, without secrets. Each login counter equals the
number of events of the same kind.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from broker_proxy.apis.base import ClientConnectionInfo
from broker_proxy.authentication.authenticator import Mechanism, SaslAuthenticator
from broker_proxy.authentication.principals import AuthenticationContext, PrincipalBuilder
from broker_proxy.authentication.sasl_server import SaslResult
from cluster_model.principal import KafkaPrincipal
from event_log.events import Authenticated, AuthenticationFailed, SessionExpired
from event_log.writer import EventLog
from metrics.node_metrics import NodeMetrics

_log = logging.getLogger(__name__)
_INT64_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Listener:
    """A configured listener. Port 0 selects a free port."""

    name: str
    security_protocol: str
    host: str
    port: int
    dialect: str = "shipped"


@dataclass(frozen=True, slots=True)
class LoginRequirements:
    """The login requirements of one listener. With the defaults, clients are anonymous."""

    builder: PrincipalBuilder | None = None
    mechanisms: Mapping[str, Mechanism] = field(default_factory=dict)  # empty: no SASL
    tls: ssl.SSLContext | None = None


class Logins:
    """The logins of all connections of one broker."""

    def __init__(
        self,
        log: EventLog,
        metrics: NodeMetrics,
        wall_ms: Callable[[], int],
        new_authenticator: Callable[..., SaslAuthenticator] = SaslAuthenticator,
    ) -> None:
        self._new_authenticator = new_authenticator
        self._log = log
        self._metrics = metrics
        self._wall_ms = wall_ms

    def identify(
        self, info: ClientConnectionInfo, requirements: LoginRequirements, certificate: bytes | None
    ) -> SaslAuthenticator | None:
        """Set the principal of a new connection, or return the SASL login that sets it.

        Raises:
            Exception: a principal builder failed; it may raise anything. The connection must be
                closed.
        """
        name = None
        if certificate is not None:
            # Imported late: cryptography takes 8 MB of memory, and few clients have a certificate.
            from broker_proxy.authentication.distinguished_name import certificate_name

            name = certificate_name(certificate)
        if requirements.mechanisms:
            return self._new_authenticator(
                requirements.mechanisms,
                lambda mechanism, result: self._build(info, requirements, name, mechanism, result),
                self._wall_ms,
            )
        if requirements.builder is not None:
            info.client = replace(
                info.client, principal=self._build(info, requirements, name, None, None)
            )
        if requirements.tls is not None:
            self._succeeded(info, "SSL", renewed=False)
        return None

    def _build(
        self,
        info: ClientConnectionInfo,
        requirements: LoginRequirements,
        name: str | None,
        mechanism: str | None,
        result: SaslResult | None,
    ) -> KafkaPrincipal:
        assert requirements.builder is not None
        context = AuthenticationContext(
            security_protocol=info.client.security_protocol,
            listener_name=info.client.listener_name,
            client_host=info.client.host,
            certificate_name=name,
            mechanism=mechanism,
            authorization_id=result.authorization_id if result else None,
            token_authenticated=result.token_authenticated if result else False,
        )
        principal = requirements.builder.build(context)
        if not isinstance(principal, KafkaPrincipal):
            raise TypeError("a principal builder must return a KafkaPrincipal")
        return principal

    def logged_in(
        self, info: ClientConnectionInfo, login: SaslAuthenticator, *, renewed: bool
    ) -> None:
        """Record a successful SASL login or re-authentication."""
        assert login.principal is not None
        assert login.mechanism is not None
        info.client = replace(info.client, principal=login.principal)
        ends = login.ends_at_ms
        # The end of a very long session may not fit into 64 bits.
        ends_at_ms = None if ends is None else min(ends, _INT64_MAX)
        self._succeeded(info, login.mechanism, renewed=renewed, ends_at_ms=ends_at_ms)

    def _succeeded(
        self,
        info: ClientConnectionInfo,
        mechanism: str,
        *,
        renewed: bool,
        ends_at_ms: int | None = None,
    ) -> None:
        self._metrics.login_succeeded(renewed=renewed)
        self._log.append(
            Authenticated(
                connection=info.connection_id,
                mechanism=mechanism,
                principal=str(info.client.principal),
                token_authenticated=info.client.principal.token_authenticated,
                renewed=renewed,
                ends_at_ms=ends_at_ms,
            )
        )

    def failed(
        self, info: ClientConnectionInfo, login: SaslAuthenticator | None, reason: str
    ) -> None:
        """Record a failed login or re-authentication."""
        renewed = login is not None and login.principal is not None
        _log.info("%s: login failed: %s", info.connection_id, reason)
        self._metrics.login_failed(renewed=renewed)
        self._log.append(
            AuthenticationFailed(
                connection=info.connection_id,
                listener=info.client.listener_name,
                client_host=info.client.host,
                mechanism=login.mechanism if login is not None else None,
                reason=reason,
                renewed=renewed,
            )
        )

    def expired(self, info: ClientConnectionInfo) -> None:
        """Record that a request arrived after the session had expired."""
        _log.info("%s: the session expired without re-authentication", info.connection_id)
        self._metrics.session_expired()
        self._log.append(SessionExpired(connection=info.connection_id))
