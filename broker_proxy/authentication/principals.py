"""From what a connection proved to a principal: KIP-189, Kafka's DefaultKafkaPrincipalBuilder.

`principal.builder.class` names another builder as `package.module.Class`: a class without
arguments that has `build`, perhaps `configure`, and perhaps `serialize` and `deserialize`, by
which its principals travel in Envelopes (KIP-590 §KafkaPrincipal Serialization).
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

from broker_proxy.authentication.sasl_server import SecurityConfigError
from broker_proxy.authentication.ssl_principal_mapper import SslPrincipalMapper
from cluster_model.principal import ANONYMOUS, KafkaPrincipal

DEFAULT_BUILDER: Final = (
    "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
)


@dataclass(frozen=True, slots=True)
class AuthenticationContext:
    """What is known about an authenticated connection."""

    security_protocol: str  # PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL
    listener_name: str
    client_host: str
    certificate_name: str | None = None  # RFC 2253, of a verified client certificate
    mechanism: str | None = None
    authorization_id: str | None = None  # what SASL proved
    token_authenticated: bool = False


class PrincipalBuilder(Protocol):
    """Makes principals. What it raises closes the connection as a failed login."""

    def build(self, context: AuthenticationContext) -> KafkaPrincipal:
        """Return who this connection is."""
        ...


class DefaultPrincipalBuilder:
    """As Kafka's: the SASL user, else the mapped certificate, else User:ANONYMOUS."""

    def __init__(self, mapper: SslPrincipalMapper) -> None:
        self._mapper = mapper

    def build(self, context: AuthenticationContext) -> KafkaPrincipal:
        """See PrincipalBuilder. Raises NoRuleMatchesError."""
        if context.authorization_id is not None:
            return KafkaPrincipal(
                "User", context.authorization_id, token_authenticated=context.token_authenticated
            )
        if context.security_protocol == "SSL" and context.certificate_name is not None:
            return KafkaPrincipal("User", self._mapper.map(context.certificate_name))
        return ANONYMOUS


def load_builder(name: str, rules: str, properties: Mapping[str, str]) -> PrincipalBuilder:
    """Return a new builder of the class called `name`; `properties` go to its `configure`.

    Raises:
        SecurityConfigError: it cannot be found or made, or has no `build`.
    """
    mapper = SslPrincipalMapper(rules)
    if name == DEFAULT_BUILDER:
        return DefaultPrincipalBuilder(mapper)
    module, _, attribute = name.rpartition(".")
    try:
        builder: Any = getattr(importlib.import_module(module), attribute)()
        if hasattr(builder, "configure"):
            builder.configure(dict(properties))
    except Exception as wrong:
        raise SecurityConfigError(
            f"principal.builder.class={name} cannot be used ({type(wrong).__name__}): name a "
            "Python class as package.module.Class that is on this node's path, or leave it out."
        ) from wrong
    if not callable(getattr(builder, "build", None)):
        raise SecurityConfigError(f"principal.builder.class={name} has no method build.")
    return cast(PrincipalBuilder, builder)
