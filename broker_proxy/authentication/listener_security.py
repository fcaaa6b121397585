"""A listener and its security settings, read from Kafka's properties.

A listener's property, `listener.name.<listener>.<name>`, overrides the property `<name>`. Login
modules are set per mechanism, with `listener.name.<listener>.<mechanism>.sasl.jaas.config`.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from bridgehead.jaas import JaasConfig, JaasError, parse_jaas
from bridgehead.kafka_wire.java_order import java_hash
from broker_proxy.authentication.authenticator import Mechanism
from broker_proxy.authentication.oauthbearer import OAuthBearerServer, Validate
from broker_proxy.authentication.plain import PlainServer
from broker_proxy.authentication.principals import DEFAULT_BUILDER, PrincipalBuilder, load_builder
from broker_proxy.authentication.sasl_server import NewSaslServer, SecurityConfigError
from broker_proxy.authentication.scram import ScramServer, TokenCredentials, UserCredentials
from broker_proxy.authentication.tls import TlsSettings, build_tls, check_tls
from broker_proxy.authentication.unsecured_jws import UnsecuredJwsValidator
from cluster_model.scram import MECHANISM_NAMES

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_PACKAGE: Final = "org.apache.kafka.common.security"
_MODULES: Final[Mapping[str, str]] = {
    "PLAIN": f"{_PACKAGE}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_PACKAGE}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_PACKAGE}.scram.ScramLoginModule",
    "OAUTHBEARER": f"{_PACKAGE}.oauthbearer.OAuthBearerLoginModule",
}
MECHANISMS: Final = tuple(_MODULES)
# Kafka's classes that validate signed tokens.
SIGNED_TOKENS_HANDLERS: Final = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler",
)
_SCRAM_NUMBERS: Final = {name: number for number, name in MECHANISM_NAMES.items()}


@dataclass(frozen=True, slots=True)
class Listener:
    """A configured listener. Port 0 selects a free port."""

    name: str
    security_protocol: str
    host: str
    port: int
    dialect: str = "shipped"


@dataclass(frozen=True, slots=True)
class SaslSettings:
    """One mechanism of one listener."""

    jaas: JaasConfig
    max_reauth_ms: int
    signed_tokens: Mapping[str, str] | None = None  # OAUTHBEARER: None for unsigned tokens


@dataclass(frozen=True, slots=True)
class ListenerSecurity:
    """The settings of one listener. `sasl` is empty without SASL; `tls` is None without TLS."""

    sasl: Mapping[str, SaslSettings]
    tls: TlsSettings | None
    builder: str  # principal.builder.class
    mapping_rules: str  # ssl.principal.mapping.rules
    properties: Mapping[str, str] = field(repr=False)  # for a builder's `configure`

    @property
    def admits_strangers(self) -> bool:
        """True when clients without credentials are served."""
        return not self.sasl and (self.tls is None or self.tls.client_auth != "required")


@dataclass(frozen=True, slots=True)
class LoginRequirements:
    """The login requirements of one listener. With the defaults, clients are anonymous."""

    builder: PrincipalBuilder | None = None
    mechanisms: Mapping[str, Mechanism] = field(default_factory=dict)  # empty: no SASL
    tls: ssl.SSLContext | None = None


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources that logins use: credentials, randomness and a clock."""

    users: UserCredentials
    tokens: TokenCredentials | None
    new_nonce: Callable[[], str]
    wall_ms: Callable[[], int]


def read_security(name: str, protocol: str, properties: Mapping[str, str]) -> ListenerSecurity:
    """Read and validate a listener's properties.

    Raises:
        SecurityConfigError: a property is missing, invalid or not supported. The text contains no
            values that may be secrets.
    """
    own_properties = properties_of_listener(name, properties)
    sasl = _sasl_settings(name, own_properties) if protocol.startswith("SASL") else {}
    tls = None
    if protocol.endswith("SSL"):
        tls = TlsSettings(
            name, _client_auth(name, protocol, own_properties, properties), own_properties
        )
        check_tls(tls)
    return ListenerSecurity(
        sasl,
        tls,
        own_properties.get("principal.builder.class", "").strip() or DEFAULT_BUILDER,
        own_properties.get("ssl.principal.mapping.rules", "DEFAULT"),
        own_properties,
    )


def login_requirements(security: ListenerSecurity, sources: Sources) -> LoginRequirements:
    """Read the key stores of a listener; return its login requirements.

    Raises:
        SecurityConfigError: a store or a class cannot be used.
    """
    return LoginRequirements(
        load_builder(security.builder, security.mapping_rules, security.properties),
        build_mechanisms(security, sources),
        build_tls(security.tls) if security.tls is not None else None,
    )


def build_mechanisms(security: ListenerSecurity, sources: Sources) -> Mapping[str, Mechanism]:
    """Return the mechanisms of a listener in the order in which clients see them."""
    return {
        name: Mechanism(_new_server(name, settings, sources), settings.max_reauth_ms)
        for name, settings in security.sasl.items()
    }


def _new_server(name: str, settings: SaslSettings, sources: Sources) -> NewSaslServer:
    options = settings.jaas.options
    if name == "PLAIN":
        passwords = {
            option.removeprefix("user_"): value
            for option, value in options.items()
            if option.startswith("user_")
        }
        return lambda: PlainServer(passwords)
    if name == "OAUTHBEARER":
        validate: Validate = UnsecuredJwsValidator(options, sources.wall_ms)
        if settings.signed_tokens is not None:
            from broker_proxy.authentication.jwks import JwksValidator  # imported on demand: 8 MB

            validate = JwksValidator(settings.signed_tokens, sources.wall_ms)
        return lambda: OAuthBearerServer(validate)
    number = _SCRAM_NUMBERS[name]
    return lambda: ScramServer(number, sources.users, sources.tokens, sources.new_nonce)


def properties_of_listener(name: str, properties: Mapping[str, str]) -> Mapping[str, str]:
    """Return the properties of a listener, without the prefix; those without one apply to all."""
    prefix = f"listener.name.{name.lower()}."
    # As in Kafka, a sasl.jaas.config without the prefix of listener and mechanism is ignored.
    listener_properties = {
        key: value
        for key, value in properties.items()
        if not key.startswith("listener.name.") and not key.endswith("sasl.jaas.config")
    }
    for key, value in properties.items():
        if key.startswith(prefix):
            listener_properties[key.removeprefix(prefix)] = value
    return listener_properties


def _sasl_settings(name: str, listener_properties: Mapping[str, str]) -> Mapping[str, SaslSettings]:
    text = listener_properties.get("sasl.enabled.mechanisms", "GSSAPI")
    wanted = [part.strip() for part in text.split(",") if part.strip()]
    for mechanism in wanted or ("GSSAPI",):
        if mechanism not in MECHANISMS:
            raise SecurityConfigError(
                f"Listener {name} enables {mechanism}, which is not supported: set "
                f"sasl.enabled.mechanisms to some of {', '.join(MECHANISMS)}."
            )
    return {
        enabled: _mechanism_settings(name, enabled, listener_properties)
        for enabled in java_hash_set_order(wanted)
    }


def _mechanism_settings(
    name: str, mechanism: str, listener_properties: Mapping[str, str]
) -> SaslSettings:
    key = f"{mechanism.lower()}.sasl.jaas.config"
    full = f"listener.name.{name.lower()}.{key}"
    if not listener_properties.get(key, "").strip():
        raise SecurityConfigError(
            f"Listener {name} enables {mechanism} without a login module: set {full}="
            f"{_MODULES[mechanism]} required …;"
        )
    try:
        jaas = parse_jaas(listener_properties[key], full)
    except JaasError as error:
        raise SecurityConfigError(str(error)) from None
    if jaas.module != _MODULES[mechanism]:
        raise SecurityConfigError(
            f"{full} names {jaas.module}, which is not supported: use {_MODULES[mechanism]}."
        )
    signed = None
    if mechanism == "OAUTHBEARER":
        UnsecuredJwsValidator(jaas.options, lambda: 0)
        signed = _signed_tokens(name, listener_properties)
    elif _handler(mechanism, listener_properties):
        raise SecurityConfigError(
            f"Listener {name} has a callback handler for {mechanism}, which is not supported: "
            "remove it."
        )
    return SaslSettings(jaas, _max_reauth_ms(name, mechanism, listener_properties), signed)


def _max_reauth_ms(name: str, mechanism: str, listener_properties: Mapping[str, str]) -> int:
    common = "connections.max.reauth.ms"
    try:
        return int(
            listener_properties.get(f"{mechanism.lower()}.{common}")
            or listener_properties.get(common, "0")
        )
    except ValueError:
        raise SecurityConfigError(
            f"{common} of {mechanism} on listener {name} must be a number of milliseconds."
        ) from None


def _handler(mechanism: str, listener_properties: Mapping[str, str]) -> str:
    common = "sasl.server.callback.handler.class"
    return (
        listener_properties.get(f"{mechanism.lower()}.{common}")
        or listener_properties.get(common)
        or ""
    ).strip()


def _signed_tokens(name: str, listener_properties: Mapping[str, str]) -> Mapping[str, str] | None:
    """Return OAUTHBEARER's properties if tokens are signed, else None.

    Raises SecurityConfigError for an unknown handler. Also raises it if the properties name keys
    but no handler: such a listener would not check signatures, and would accept any token.
    """
    handler = _handler("oauthbearer", listener_properties)
    settings = {
        key: value
        for key, value in listener_properties.items()
        if key.startswith("sasl.oauthbearer.")
    }
    if handler in SIGNED_TOKENS_HANDLERS:
        return settings
    if handler or settings.get("sasl.oauthbearer.jwks.endpoint.url", "").strip():
        raise SecurityConfigError(
            f"Listener {name}: for signed tokens set listener.name.{name.lower()}.oauthbearer."
            f"sasl.server.callback.handler.class={SIGNED_TOKENS_HANDLERS[0]}, and "
            "sasl.oauthbearer.jwks.endpoint.url."
        )
    return None


def java_hash_set_order(mechanisms: list[str]) -> list[str]:
    """Return distinct mechanisms as a Java HashSet orders them; clients see this order."""
    slots = [(_slot(name), name) for name in dict.fromkeys(mechanisms)]
    return [name for _, name in sorted(slots, key=lambda slot: slot[0])]


def _slot(name: str) -> int:
    code = java_hash(name)
    return (code ^ code >> 16) & 15


def _client_auth(
    name: str, protocol: str, listener_properties: Mapping[str, str], properties: Mapping[str, str]
) -> str:
    """Return ssl.client.auth; on SASL_SSL only the listener's setting counts (KIP-684)."""
    if protocol == "SASL_SSL":
        listener_properties = {
            "ssl.client.auth": properties.get(f"listener.name.{name.lower()}.ssl.client.auth", "")
        }
    return listener_properties.get("ssl.client.auth", "").strip() or "none"
