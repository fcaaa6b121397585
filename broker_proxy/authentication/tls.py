"""TLS of a listener, from Kafka's `ssl.*` properties.

A store is a PEM file, a PKCS12 file, or PEM text.

Python's TLS loads keys only from files. `load_key_pem` therefore writes the key, in whatever form
it is configured, to a private temporary file, and deletes the file before it returns.
"""

from __future__ import annotations

import re
import ssl
import tempfile
import textwrap
from asyncio import sslproto
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from broker_proxy.authentication.sasl_server import SecurityConfigError

_PEM_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----\s*(.*?)\s*-----END \1-----", re.S)
TLS_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_STORE_TYPES: Final = ("PEM", "PKCS12")
# By default asyncio allocates and touches a buffer of 256 KiB per TLS connection, so a thousand
# unfinished handshakes would take 300 MiB. A TLS record has at most 16 KiB.
sslproto.SSLProtocol.max_size = 16 * 1024


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """One listener's `ssl.*` properties, without their listener prefix. The repr hides values."""

    listener: str
    client_auth: str
    properties: Mapping[str, str] = field(repr=False)

    def get(self, name: str, default: str = "") -> str:
        """Return a property without surrounding whitespace."""
        return self.properties.get(name, default).strip()


def check_tls(settings: TlsSettings) -> None:
    """Raise SecurityConfigError for settings that are not supported. Reads no file."""
    for store in ("ssl.keystore", "ssl.truststore"):
        is_set = any(settings.get(f"{store}.{part}") for part in ("location", "certificates"))
        kind = settings.get(f"{store}.type", "JKS").upper()
        is_given = is_set or bool(settings.get(f"{store}.key"))
        if is_given and kind not in _STORE_TYPES:
            raise SecurityConfigError(
                f"{store}.type={kind} (default: JKS) is not supported: convert the store with "
                f"keytool -importkeystore -deststoretype PKCS12 and set {store}.type=PKCS12, or "
                "use PEM."
            )
    if settings.get("ssl.cipher.suites"):
        raise SecurityConfigError("ssl.cipher.suites is not supported: remove it.")
    unknown = set(_protocols(settings)) - set(TLS_VERSIONS)
    if unknown or not _protocols(settings):
        raise SecurityConfigError(
            f"ssl.enabled.protocols of listener {settings.listener}: use TLSv1.2, TLSv1.3 or both."
        )


def build_tls(settings: TlsSettings) -> ssl.SSLContext:
    """Return the TLS context of a listener.

    Raises:
        SecurityConfigError: a store is missing or unreadable. The text contains no secret.
    """
    check_tls(settings)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    versions = [TLS_VERSIONS[name] for name in _protocols(settings)]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    context.options |= ssl.OP_NO_RENEGOTIATION
    _load_key_store(context, settings)
    context.verify_mode = _CLIENT_AUTH[settings.client_auth]
    if settings.client_auth != "none":
        _load_trust_store(context, settings)
    return context


def _protocols(settings: TlsSettings) -> list[str]:
    text = settings.get("ssl.enabled.protocols", "TLSv1.2,TLSv1.3")
    return [name.strip() for name in text.split(",") if name.strip()]


def _load_key_store(context: ssl.SSLContext, settings: TlsSettings) -> None:
    password = settings.get("ssl.key.password") or None
    chain, key = settings.get("ssl.keystore.certificate.chain"), settings.get("ssl.keystore.key")
    location = settings.get("ssl.keystore.location")
    if settings.get("ssl.keystore.type", "JKS").upper() == "PKCS12" and location:
        text, password = _read_pkcs12(settings, "ssl.keystore"), None
    elif chain and key:
        text = pem(chain) + pem(key)
    elif location:
        text = pem(_read(location, "ssl.keystore.location").decode("utf-8", "replace"))
    else:
        raise SecurityConfigError(
            f"Listener {settings.listener} needs a certificate: set ssl.keystore.type=PEM with "
            "ssl.keystore.location, or with ssl.keystore.certificate.chain and ssl.keystore.key."
        )
    try:
        load_key_pem(context, text, password or "")
    except (ssl.SSLError, ValueError):
        raise SecurityConfigError(
            f"The key store of listener {settings.listener} cannot be used: it must hold a "
            "certificate and its private key, and the password must be right."
        ) from None


def load_key_pem(context: ssl.SSLContext, text: str, password: str) -> None:
    """Load a certificate and its key into a context. Raises SSLError or ValueError."""
    with tempfile.TemporaryDirectory(prefix="bridgehead-") as folder:
        file = Path(folder) / "key.pem"  # The folder is private.
        file.write_text(text, encoding="ascii")
        context.load_cert_chain(file, password=password)


def _load_trust_store(context: ssl.SSLContext, settings: TlsSettings) -> None:
    location = settings.get("ssl.truststore.location")
    text = settings.get("ssl.truststore.certificates")
    if settings.get("ssl.truststore.type", "JKS").upper() == "PKCS12" and location:
        text = _read_pkcs12(settings, "ssl.truststore")
    elif location:
        text = _read(location, "ssl.truststore.location").decode("utf-8", "replace")
    if not text:
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
        return
    try:
        context.load_verify_locations(cadata=pem(text))
    except ssl.SSLError:
        raise SecurityConfigError(
            f"The trust store of listener {settings.listener} contains no valid certificate."
        ) from None


def _read(location: str, name: str) -> bytes:
    try:
        return Path(location).read_bytes()
    except OSError as error:
        raise SecurityConfigError(f"{name}={location} cannot be read: {error.strerror}.") from None


def _read_pkcs12(settings: TlsSettings, store: str) -> str:
    data = _read(settings.get(f"{store}.location"), f"{store}.location")
    try:
        return pem_of_pkcs12(data, settings.get(f"{store}.password"))
    except ValueError:
        raise SecurityConfigError(
            f"{store}.location is not a PKCS12 store, or {store}.password is wrong."
        ) from None


def pem_of_pkcs12(data: bytes, password: str) -> str:
    """Return a store's certificates and key as PEM. Raises ValueError if it is unreadable."""
    # Imported on demand: it takes 8 MB of memory.
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.serialization import pkcs12

    content = pkcs12.load_pkcs12(data, password.encode() or None)
    encoding = serialization.Encoding.PEM
    certificates = [cert.certificate for cert in (content.cert, *content.additional_certs) if cert]
    text = "".join(certificate.public_bytes(encoding).decode() for certificate in certificates)
    if content.key is not None:
        text += content.key.private_bytes(
            encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode()
    return text


def pem(text: str) -> str:
    """Restore the line ends within PEM blocks: a property value may have lost them."""
    blocks = []
    for match in _PEM_BLOCK.finditer(text):
        body = match[2]
        if ":" not in body:  # An old encrypted key has headers, which must keep their lines.
            body = "\n".join(textwrap.wrap("".join(body.split()), 64))
        blocks.append(f"-----BEGIN {match[1]}-----\n{body}\n-----END {match[1]}-----\n")
    return "".join(blocks)
