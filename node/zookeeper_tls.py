"""TLS to ZooKeeper: Kafka's `zookeeper.ssl.*` properties as one TLS context.

All sessions of a node and the dump of a run use it. Stores are PEM or PKCS12. A setting that is not
supported is rejected with an error that says what to do.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from broker_proxy.authentication.sasl_server import SecurityConfigError
from broker_proxy.authentication.tls import TLS_VERSIONS, load_key_pem, pem, pem_of_pkcs12
from cluster_model.configs.broker_configs import BrokerConfig

ENABLE: Final = "zookeeper.ssl.client.enable"
CONNECTION_SOCKET: Final = "zookeeper.clientCnxnSocket"
NETTY: Final = "org.apache.zookeeper.ClientCnxnSocketNetty"
_PLAIN_SOCKET: Final = "org.apache.zookeeper.ClientCnxnSocketNIO"
_PREFIX: Final = "zookeeper.ssl."
# Kafka derives a store's type from its file name if no type is given.
_ENDINGS: Final = {".pem": "PEM", ".p12": "PKCS12", ".pkcs12": "PKCS12", ".jks": "JKS"}


@dataclass(frozen=True, slots=True)
class KeyStore:
    """A key or trust store."""

    name: str  # keystore, truststore
    location: str
    kind: str  # PEM, PKCS12
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ZooKeeperTls:
    """The checked properties; no store has been read yet."""

    key_store: KeyStore | None  # None: no client certificate
    trust_store: KeyStore | None  # None: the machine's authorities
    versions: tuple[ssl.TLSVersion, ...]
    checks_host_name: bool


def read_zookeeper_tls(config: BrokerConfig) -> ZooKeeperTls | None:
    """Check the properties; return None for plain text.

    Raises:
        SecurityConfigError: a setting is not supported. The message says what to do.
    """
    socket = (config.string(CONNECTION_SOCKET) or "").strip()
    if socket not in ("", NETTY, _PLAIN_SOCKET):
        raise SecurityConfigError(
            f"{CONNECTION_SOCKET}={socket} is a Java class that cannot be loaded here: set {NETTY}."
        )
    if not config.boolean(ENABLE):
        return None
    if socket != NETTY:
        raise SecurityConfigError(f"{ENABLE}=true needs {CONNECTION_SOCKET}={NETTY}: set it.")
    if config.value(f"{_PREFIX}cipher.suites"):
        raise SecurityConfigError(f"{_PREFIX}cipher.suites is not supported: remove it.")
    for name in ("crl", "ocsp"):
        if config.boolean(f"{_PREFIX}{name}.enable"):
            raise SecurityConfigError(f"{_PREFIX}{name}.enable=true is not supported: remove it.")
    algorithm = (config.string(f"{_PREFIX}endpoint.identification.algorithm") or "").strip()
    return ZooKeeperTls(
        _store(config, "keystore"),
        _store(config, "truststore"),
        _versions(config),
        checks_host_name=algorithm.lower() == "https",
    )


def _versions(config: BrokerConfig) -> tuple[ssl.TLSVersion, ...]:
    enabled = config.value(f"{_PREFIX}enabled.protocols")
    names = tuple(enabled) if isinstance(enabled, tuple) else ()
    names = names or (config.string(f"{_PREFIX}protocol") or "",)
    if not set(names) <= set(TLS_VERSIONS):
        raise SecurityConfigError(
            f"{_PREFIX}protocol and {_PREFIX}enabled.protocols: use TLSv1.2, TLSv1.3 or both."
        )
    return tuple(TLS_VERSIONS[name] for name in names)


def _store(config: BrokerConfig, name: str) -> KeyStore | None:
    location = config.string(f"{_PREFIX}{name}.location")
    if not location:
        return None
    ending = Path(location).suffix.lower()
    kind = config.string(f"{_PREFIX}{name}.type") or _ENDINGS.get(ending, "JKS")
    if kind.upper() not in ("PEM", "PKCS12"):
        raise SecurityConfigError(
            f"{_PREFIX}{name}.location={location} is a {kind} store, which cannot be read "
            "here: convert it with keytool -importkeystore -deststoretype PKCS12 "
            f"and set {_PREFIX}{name}.type=PKCS12, or use PEM."
        )
    password = config.string(f"{_PREFIX}{name}.password") or ""
    return KeyStore(name, location, kind.upper(), password)


def build_zookeeper_tls(settings: ZooKeeperTls | None) -> ssl.SSLContext | None:
    """Return the TLS context for ZooKeeper; None: plain text.

    Raises:
        SecurityConfigError: a store is missing or cannot be read. The message has no secret.
    """
    if settings is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = min(settings.versions)
    context.maximum_version = max(settings.versions)
    context.check_hostname = settings.checks_host_name
    context.verify_mode = ssl.CERT_REQUIRED
    if settings.trust_store is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        _trust(context, settings.trust_store)
    if settings.key_store is not None:
        _load_key(context, settings.key_store)
    return context


def _trust(context: ssl.SSLContext, store: KeyStore) -> None:
    try:
        context.load_verify_locations(cadata=_text(store))
    except (ssl.SSLError, ValueError):
        raise SecurityConfigError(
            f"{_PREFIX}truststore.location={store.location} contains no certificate."
        ) from None


def _load_key(context: ssl.SSLContext, store: KeyStore) -> None:
    text = _text(store)
    try:
        load_key_pem(context, text, store.password)
    except (ssl.SSLError, ValueError):
        raise SecurityConfigError(
            f"{_PREFIX}keystore.location={store.location} cannot be used: it must contain a "
            "certificate and its private key, and the password must be correct."
        ) from None


def _text(store: KeyStore) -> str:
    try:
        data = Path(store.location).read_bytes()
    except OSError as error:
        raise SecurityConfigError(
            f"{_PREFIX}{store.name}.location={store.location} cannot be read: {error.strerror}."
        ) from None
    if store.kind == "PEM":
        return pem(data.decode("utf-8", "replace"))
    try:
        return pem_of_pkcs12(data, store.password)
    except ValueError:
        raise SecurityConfigError(
            f"{_PREFIX}{store.name}.location is not a PKCS12 store, or its password is wrong."
        ) from None
