"""The listener that a broker opens for other brokers."""

from __future__ import annotations

from pathlib import Path

from envelope.channel_security import ChannelFiles
from node.assembly.replication_listener import listener_properties


def test_text_around_the_certificates_may_have_any_characters(tmp_path: Path) -> None:
    """`openssl pkcs12` writes the names of certificates before their PEM blocks."""
    block = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    file = tmp_path / "c.pem"
    file.write_text(f"friendlyName: Büro\n{block}", encoding="utf-8")
    properties = listener_properties(ChannelFiles(str(file), str(file), str(file)))
    assert properties["ssl.keystore.certificate.chain"] == f"friendlyName: Bro\n{block}"
