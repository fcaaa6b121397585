"""Listener security settings from Kafka's properties; errors show no secret."""

from __future__ import annotations

import pytest

from bridgehead.cluster.security_sections import format_jaas
from bridgehead.jaas import parse_jaas
from broker_proxy.authentication.listener_security import (
    Sources,
    build_mechanisms,
    java_hash_set_order,
    read_security,
)
from broker_proxy.authentication.sasl_server import SaslResult, SecurityConfigError
from node.config import NodeConfigError, read_config
from tests.unit.broker_proxy.authentication.clients import Credentials

PACKAGE = "org.apache.kafka.common.security"
PLAIN = f'{PACKAGE}.plain.PlainLoginModule required username="b" password="s" user_alice="pw;\\"x";'
SCRAM = f"{PACKAGE}.scram.ScramLoginModule required;"
NODE = "broker.id=1\nzookeeper.connect=127.0.0.1:2181\n"


def sasl(**more: str) -> dict[str, str]:
    return {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN,
        "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": SCRAM,
        **more,
    }


def test_plain_users_come_from_the_login_module() -> None:
    security = read_security("SASL_PLAINTEXT", "SASL_PLAINTEXT", sasl())
    sources = Sources(Credentials(), None, lambda: "n", lambda: 0)
    mechanisms = build_mechanisms(security, sources)
    assert list(mechanisms) == ["PLAIN", "SCRAM-SHA-256"]
    server = mechanisms["PLAIN"].new_server()
    server.evaluate(b'\0alice\0pw;"x')
    assert server.result == SaslResult("alice")
    assert not security.admits_strangers


def test_mechanisms_are_in_the_order_of_a_java_hash_set() -> None:
    wanted = ["SCRAM-SHA-256", "PLAIN", "SCRAM-SHA-512", "PLAIN"]
    assert java_hash_set_order(wanted) == ["PLAIN", "SCRAM-SHA-512", "SCRAM-SHA-256"]


@pytest.mark.parametrize("prefix", ["", "listener.name.sasl_plaintext.plain."])
def test_a_session_limit_that_is_no_number_is_rejected(prefix: str) -> None:
    listener_properties = sasl(**{f"{prefix}connections.max.reauth.ms": "1h"})
    with pytest.raises(SecurityConfigError, match=r"connections\.max\.reauth\.ms"):
        read_security("SASL_PLAINTEXT", "SASL_PLAINTEXT", listener_properties)


def test_a_listener_setting_overrides_the_common_one() -> None:
    listener_properties = sasl(
        **{
            "connections.max.reauth.ms": "1",
            "listener.name.sasl_plaintext.connections.max.reauth.ms": "2",
            "listener.name.sasl_plaintext.plain.connections.max.reauth.ms": "3",
            "listener.name.other.connections.max.reauth.ms": "4",
        }
    )
    security = read_security("SASL_PLAINTEXT", "SASL_PLAINTEXT", listener_properties)
    assert {name: mechanism.max_reauth_ms for name, mechanism in security.sasl.items()} == {
        "PLAIN": 3,
        "SCRAM-SHA-256": 2,
    }


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({}, "enables GSSAPI, which is not supported"),
        ({"sasl.enabled.mechanisms": ""}, "GSSAPI"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, "without a login module: set listener.name.sasl_p"),
        ({"sasl.enabled.mechanisms": "PLAIN", "sasl.jaas.config": PLAIN}, "without a login module"),
        (
            {
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.sasl_plaintext.plain.sasl.jaas.config": SCRAM,
            },
            "names org.apache.kafka.common.security.scram",
        ),
        (
            {
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN.rstrip(";"),
            },
            "must have a login module",
        ),
        (
            {
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN + '"',
            },
            "unbalanced quotation mark",
        ),
    ],
)
def test_unsupported_settings_are_rejected_without_their_value(
    properties: dict[str, str], message: str
) -> None:
    with pytest.raises(SecurityConfigError, match=message) as rejected:
        read_security("SASL_PLAINTEXT", "SASL_PLAINTEXT", properties)
    assert "pw;" not in str(rejected.value)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"ssl.keystore.location": "/keys.jks"}, "keytool"),
        ({"ssl.keystore.type": "PEM", "ssl.truststore.location": "/t.jks"}, "ssl.truststore.type"),
        ({"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"}, "remove it"),
        ({"ssl.enabled.protocols": "TLSv1.1,TLSv1.2"}, "TLSv1.2, TLSv1.3"),
        ({"ssl.enabled.protocols": ","}, "TLSv1.2, TLSv1.3"),
    ],
)
def test_unsupported_tls_settings_are_rejected(properties: dict[str, str], message: str) -> None:
    with pytest.raises(SecurityConfigError, match=message):
        read_security("SSL", "SSL", properties)


def test_sasl_ssl_ignores_the_common_client_auth() -> None:
    """KIP-684."""
    common = sasl(**{"ssl.client.auth": "required"})
    common |= {k.replace("plaintext", "ssl"): v for k, v in sasl().items()}
    tls = read_security("SASL_SSL", "SASL_SSL", common).tls
    assert tls is not None
    assert tls.client_auth == "none"
    listener_properties = common | {"listener.name.sasl_ssl.ssl.client.auth": "required"}
    tls = read_security("SASL_SSL", "SASL_SSL", listener_properties).tls
    assert tls is not None
    assert tls.client_auth == "required"


@pytest.mark.parametrize(
    ("listener", "more", "open_to_strangers"),
    [
        ("PLAINTEXT://0.0.0.0:0", "", True),
        ("PLAINTEXT://192.0.2.1:0", "", True),
        ("PLAINTEXT://some.host:0", "", True),
        ("PLAINTEXT://[::]:0", "", True),
        ("SSL://0.0.0.0:0", "ssl.client.auth=requested\n", True),
        ("SSL://0.0.0.0:0", "ssl.client.auth=required\n", False),
        ("PLAINTEXT://127.0.0.1:0", "", False),
        ("PLAINTEXT://127.9.9.9:0", "", False),
        ("PLAINTEXT://[::1]:0", "", False),
        ("PLAINTEXT://localhost:0", "", False),
        ("PLAINTEXT://:0", "", False),
    ],
)
def test_anonymous_clients_are_by_default_served_on_loopback_only(
    listener: str, more: str, open_to_strangers: bool
) -> None:
    text = f"{NODE}listeners={listener}\n{more}"
    if open_to_strangers:
        with pytest.raises(NodeConfigError, match="--allow-remote-plaintext"):
            read_config(text)
    read_config(text + "bridgehead.allow.remote.plaintext=true")


def test_repr_of_the_security_settings_hides_passwords() -> None:
    security = read_security("SASL_PLAINTEXT", "SASL_PLAINTEXT", sasl())
    assert "pw;" not in repr(security)
    assert "pw;" not in str(read_config(NODE).security)


def test_a_login_module_round_trips() -> None:
    options = {"user_a": 'q"uo\\te; =', "user_b": "ü"}
    assert parse_jaas(format_jaas("M", options), "x").options == options
