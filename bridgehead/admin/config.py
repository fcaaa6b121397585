"""The client's properties, by Kafka's names (KIP-117 §Configuration).

Every value may be text, as in a properties file. As in Kafka, the client ignores an unknown name
and logs a warning, because other clients may use the same file.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from bridgehead.admin.errors import AdminConfigError
from bridgehead.jaas import JaasConfig, JaasError, parse_jaas

LOG: Final = logging.getLogger("bridgehead.admin")
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_UNLIMITED: Final = 2**31 - 1
# Each property has a default and a least value. Times are in milliseconds, sizes in bytes.
NUMBERS: Final[Mapping[str, tuple[int, int]]] = {
    "metadata.max.age.ms": (300_000, 0),
    "send.buffer.bytes": (131_072, -1),
    "receive.buffer.bytes": (65_536, -1),
    "reconnect.backoff.ms": (50, 0),
    "reconnect.backoff.max.ms": (1_000, 0),
    "retry.backoff.ms": (100, 0),
    "retries": (_UNLIMITED, 0),
    "request.timeout.ms": (30_000, 1),
    "default.api.timeout.ms": (60_000, 1),
    "connections.max.idle.ms": (300_000, 1),
    "socket.connection.setup.timeout.ms": (10_000, 1),
}
_TEXTS: Final = (
    "bootstrap.servers",
    "client.id",
    "security.protocol",
    "sasl.mechanism",
    "sasl.jaas.config",
    "sasl.oauthbearer.token.endpoint.url",
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.truststore.certificates",
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
)
# KIP-117 has the name try.backoff.ms for the property retry.backoff.ms of Kafka's clients.
_ALIASES: Final[Mapping[str, str]] = {"try.backoff.ms": "retry.backoff.ms"}


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class AdminConfig:
    """The checked properties. The repr omits passwords, keys and tokens."""

    bootstrap: tuple[Address, ...]
    client_id: str
    numbers: Mapping[str, int]
    protocol: str
    mechanism: str | None
    jaas: JaasConfig | None
    texts: Mapping[str, str] = field(repr=False)

    @property
    def uses_tls(self) -> bool:
        """True for SSL and SASL_SSL."""
        return self.protocol.endswith("SSL")


def read_config(properties: Mapping[str, object]) -> AdminConfig:
    """Check properties.

    Raises:
        AdminConfigError: a property is missing or invalid; the text names it.
    """
    texts: dict[str, str] = {}
    for key, value in properties.items():
        name = _ALIASES.get(key, key)
        if name in NUMBERS or name in _TEXTS:
            texts[name] = _text(value)
        else:
            LOG.warning("the admin client ignores the unknown property %s", key)
    protocol = texts.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise AdminConfigError(f"security.protocol must be one of {', '.join(PROTOCOLS)}.")
    mechanism = _mechanism(texts) if protocol.startswith("SASL") else None
    numbers = {name: _number(name, texts.get(name)) for name in NUMBERS}
    if "default.api.timeout.ms" not in texts:  # as in Kafka, no shorter than one attempt
        least = numbers["request.timeout.ms"]
        numbers["default.api.timeout.ms"] = max(least, numbers["default.api.timeout.ms"])
    return AdminConfig(
        _addresses(texts.get("bootstrap.servers", "")),
        texts.get("client.id", "bridgehead-admin"),
        numbers,
        protocol,
        mechanism,
        _jaas(texts) if mechanism is not None else None,
        texts,
    )


def read_client_properties(path: str | Path) -> dict[str, str]:
    """Return the properties in a file, such as the file that `--command-config` names.

    Raises:
        AdminConfigError: the file cannot be read or is malformed.
    """
    from bridgehead.cluster.properties import parse_properties

    try:
        return parse_properties(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise AdminConfigError(f"The properties file {path} cannot be read: {error}") from None


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return "" if value is None else str(value).strip()


def _addresses(text: str) -> tuple[Address, ...]:
    addresses = []
    for part in filter(None, map(str.strip, text.split(","))):
        host, _, port = part.rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65_536:
            raise AdminConfigError(f"bootstrap.servers has {part!r}; write HOST:PORT,HOST:PORT.")
        addresses.append(Address(host.strip("[]"), int(port)))
    if not addresses:
        raise AdminConfigError("bootstrap.servers is missing: set it to HOST:PORT,HOST:PORT.")
    return tuple(addresses)


def _number(name: str, text: str | None) -> int:
    default, least = NUMBERS[name]
    if text is None:
        return default
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if not least <= number <= 2**63 - 1:
        raise AdminConfigError(f"{name} must be a whole number of at least {least}, not {text!r}.")
    return number


def _mechanism(texts: Mapping[str, str]) -> str:
    mechanism = texts.get("sasl.mechanism", "GSSAPI")
    if mechanism not in MECHANISMS:
        raise AdminConfigError(
            f"sasl.mechanism is {mechanism}, which is not supported: use one of "
            f"{', '.join(MECHANISMS)}."
        )
    return mechanism


def _jaas(texts: Mapping[str, str]) -> JaasConfig | None:
    text = texts.get("sasl.jaas.config")
    if not text:
        return None
    try:
        return parse_jaas(text, "sasl.jaas.config")
    except JaasError as error:
        raise AdminConfigError(str(error)) from None
