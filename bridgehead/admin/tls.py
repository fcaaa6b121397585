"""The TLS context of a client, from Kafka's `ssl.*` properties. Stores are PEM."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Mapping
from typing import Final

from bridgehead.admin.config import AdminConfig
from bridgehead.admin.errors import AdminConfigError

_IDENTIFICATION: Final = "ssl.endpoint.identification.algorithm"


def build_tls(config: AdminConfig) -> ssl.SSLContext | None:
    """Return the context; None without TLS. The default trust store is the system's.

    Raises:
        AdminConfigError: a store is missing or is not PEM, or its password is wrong.
    """
    if not config.uses_tls:
        return None
    texts = config.texts
    for store in ("truststore", "keystore"):
        kind = texts.get(f"ssl.{store}.type", "PEM" if _has_pem(texts, store) else "JKS").upper()
        if kind != "PEM" and f"ssl.{store}.location" in texts:
            raise AdminConfigError(
                f"ssl.{store}.type is {kind}, which is not supported: convert the store to PEM "
                f"and set ssl.{store}.type=PEM."
            )
    try:
        context = ssl.create_default_context(
            cafile=texts.get("ssl.truststore.location"),
            cadata=texts.get("ssl.truststore.certificates"),
        )
        context.check_hostname = texts.get(_IDENTIFICATION, "https").lower() == "https"
        _load_certificate(context, texts)
    except (OSError, ssl.SSLError) as error:
        raise AdminConfigError(f"A key or trust store cannot be used: {error}") from None
    return context


def _has_pem(texts: Mapping[str, str], store: str) -> bool:
    return texts.get(f"ssl.{store}.location", "").endswith((".pem", ".crt", ".key"))


def _load_certificate(context: ssl.SSLContext, texts: Mapping[str, str]) -> None:
    """Load the client's certificate and key, from a file or from the properties themselves."""
    # The default is an empty password: with None, OpenSSL would prompt on the terminal.
    password = texts.get("ssl.key.password", "")
    if location := texts.get("ssl.keystore.location"):
        context.load_cert_chain(location, password=password)
    elif chain := texts.get("ssl.keystore.certificate.chain"):
        # Python reads certificate and key only from files. Closing this private file deletes it.
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(f"{texts.get('ssl.keystore.key', '')}\n{chain}\n")
            file.flush()
            context.load_cert_chain(file.name, password=password)
