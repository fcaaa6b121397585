"""Builds the principal of an authenticated connection. KIP-189, DefaultKafkaPrincipalBuilder.

`principal.builder.class` names a custom builder as `package.module.Class`. Its constructor takes no
arguments. The class has a method `build` and may have `configure`. On a broker that forwards, it
must also have `serialize` and `deserialize`, for Envelopes (KIP-590 §KafkaPrincipal Serialization).
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
    authorization_id: str | None = None  # the authenticated SASL id
    token_authenticated: bool = False


class PrincipalBuilder(Protocol):
    """Builds principals. Any exception fails the login and closes the connection."""

    def build(self, context: AuthenticationContext) -> KafkaPrincipal:
        """Return the principal of a connection."""


class DefaultPrincipalBuilder:
    """Kafka's rules: the SASL user, else the certificate's mapped name, else User:ANONYMOUS."""

    def __init__(self, mapper: SslPrincipalMapper) -> None:
        self._mapper = mapper

    def build(self, context: AuthenticationContext) -> KafkaPrincipal:
        """See PrincipalBuilder. Raises NoRuleMatchesError if no rule matches the certificate."""
        if context.authorization_id is not None:
            return KafkaPrincipal(
                "User", context.authorization_id, token_authenticated=context.token_authenticated
            )
        if context.security_protocol == "SSL" and context.certificate_name is not None:
            return KafkaPrincipal("User", self._mapper.map(context.certificate_name))
        return ANONYMOUS


def load_builder(name: str, rules: str, properties: Mapping[str, str]) -> PrincipalBuilder:
    """Return a new builder of class `name`; `properties` go to its `configure`.

    Raises:
        SecurityConfigError: the class cannot be found, instantiated or configured, or has no
            `build`; or the rules are invalid.
    """
    mapper = SslPrincipalMapper(rules)
    if name == DEFAULT_BUILDER:
        return DefaultPrincipalBuilder(mapper)
    module, _, attribute = name.rpartition(".")
    try:
        builder: Any = getattr(importlib.import_module(module), attribute)()
        if hasattr(builder, "configure"):
            builder.configure(dict(properties))
    except Exception as error:
        raise SecurityConfigError(
            f"principal.builder.class={name} cannot be loaded ({type(error).__name__}): name a "
            "Python class as package.module.Class on this node's path, or remove the property."
        ) from error
    if not callable(getattr(builder, "build", None)):
        raise SecurityConfigError(f"principal.builder.class={name} has no method build.")
    return cast(PrincipalBuilder, builder)
