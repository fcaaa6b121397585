"""Kafka's properties for TLS to ZooKeeper, checked before any file is read."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final

import pytest
import trustme

from broker_proxy.authentication.sasl_server import SecurityConfigError
from node.config import NodeConfigError, read_config
from node.zookeeper_tls import NETTY, KeyStore, build_zookeeper_tls

PLAIN: Final = "broker.id=1\nzookeeper.connect=127.0.0.1:2181\n"
NETTYS: Final = f"zookeeper.clientCnxnSocket={NETTY}\n"
TLS: Final = f"{PLAIN}zookeeper.ssl.client.enable=true\n{NETTYS}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{PLAIN}zookeeper.ssl.client.enable=true\n", f"needs zookeeper.clientCnxnSocket={NETTY}"),
        (f"{PLAIN}zookeeper.clientCnxnSocket=com.acme.Socket\n", "cannot be loaded here"),
        (f"{TLS}zookeeper.ssl.keystore.location=/k.jks\n", "convert it with keytool"),
        (f"{TLS}zookeeper.ssl.truststore.location=/trust\n", "is a JKS store"),
        (f"{TLS}zookeeper.ssl.keystore.location=/k.pem\nzookeeper.ssl.keystore.type=BCFKS\n", "BC"),
        (f"{TLS}zookeeper.ssl.cipher.suites=TLS_AES_128_GCM_SHA256\n", "remove it"),
        (f"{TLS}zookeeper.ssl.crl.enable=true\n", "crl.enable=true is not supported"),
        (f"{TLS}zookeeper.ssl.ocsp.enable=true\n", "ocsp.enable=true is not supported"),
        (f"{TLS}zookeeper.ssl.enabled.protocols=TLSv1.1\n", "use TLSv1.2, TLSv1.3 or both"),
    ],
)
def test_unsupported_tls_settings_are_rejected(text: str, message: str) -> None:
    with pytest.raises(NodeConfigError, match=message):
        read_config(text)


def test_stores_are_ignored_without_tls() -> None:
    for socket in (NETTY, "org.apache.zookeeper.ClientCnxnSocketNIO"):
        text = f"{PLAIN}zookeeper.ssl.keystore.location=/k.jks\nzookeeper.clientCnxnSocket={socket}"
        assert read_config(text).zookeeper_tls is None
    assert build_zookeeper_tls(None) is None


def test_tls_defaults_are_the_same_as_in_kafka() -> None:
    """The version is TLSv1.2, the host name is checked, and file names give the types of stores."""
    wanted = read_config(f"{TLS}zookeeper.ssl.keystore.location=/k.p12\n").zookeeper_tls
    assert wanted is not None
    assert wanted.versions == (ssl.TLSVersion.TLSv1_2,)
    assert wanted.checks_host_name
    assert wanted.trust_store is None
    assert wanted.key_store == KeyStore("keystore", "/k.p12", "PKCS12", "")


def test_unreadable_store_is_named_without_its_password(tmp_path: Path) -> None:
    trustme.CA().cert_pem.write_to_path(tmp_path / "no-key.pem")
    (tmp_path / "garbage.p12").write_bytes(b"garbage")
    (tmp_path / "empty.pem").touch()
    for lines, message in (
        ("keystore.location=DIR/missing.pem", "cannot be read"),
        ("keystore.location=DIR/no-key.pem", "certificate and its private key"),
        ("keystore.location=DIR/garbage.p12", "is not a PKCS12 store"),
        ("truststore.location=DIR/empty.pem", "contains no certificate"),
    ):
        store = lines.partition(".")[0]
        text = f"zookeeper.ssl.{lines}\nzookeeper.ssl.{store}.password=secret-word\n"
        config = read_config(TLS + text.replace("DIR", str(tmp_path)))
        assert "secret-word" not in repr(config.zookeeper_tls)
        with pytest.raises(SecurityConfigError, match=message) as caught:
            build_zookeeper_tls(config.zookeeper_tls)
        assert "secret-word" not in str(caught.value)


def test_tls_context_follows_the_settings(tmp_path: Path) -> None:
    """The certificate is always checked. The host name is checked if configured."""
    ca = trustme.CA()
    ca.cert_pem.write_to_path(tmp_path / "ca.pem")
    ca.issue_cert("a@b.org").private_key_and_cert_chain_pem.write_to_path(tmp_path / "me.pem")
    stores = (
        f"zookeeper.ssl.truststore.location={tmp_path}/ca.pem\n"
        f"zookeeper.ssl.keystore.location={tmp_path}/me.pem\n"
        "zookeeper.ssl.enabled.protocols=TLSv1.2,TLSv1.3\n"
    )
    for algorithm, checked in (("HTTPS", True), ("https", True), ("", False)):
        name = "zookeeper.ssl.endpoint.identification.algorithm"
        config = read_config(f"{TLS}{stores}{name}={algorithm}\n")
        context = build_zookeeper_tls(config.zookeeper_tls)
        assert context is not None
        assert context.check_hostname is checked
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert context.maximum_version is ssl.TLSVersion.TLSv1_3
