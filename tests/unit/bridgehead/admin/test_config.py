"""The admin client's properties have Kafka's names and are checked; errors hide secrets."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from bridgehead.admin import AdminClient, AdminConfigError, read_client_properties
from bridgehead.admin.config import NUMBERS, Address, read_config
from bridgehead.admin.credentials import login_source
from bridgehead.admin.tls import build_tls

SERVERS = {"bootstrap.servers": "a:1, [::1]:2"}
# KIP-117 §Configuration.
SEED = (
    "metadata.max.age.ms",
    "send.buffer.bytes",
    "receive.buffer.bytes",
    "reconnect.backoff.ms",
    "request.timeout.ms",
    "connections.max.idle.ms",
)


def test_the_properties_of_kip_117_are_read() -> None:
    texts = {name: str(1000 + at) for at, name in enumerate(SEED)}
    config = read_config({**SERVERS, **texts, "client.id": "mine", "security.protocol": "SSL"})
    assert {name: str(config.numbers[name]) for name in SEED} == texts
    assert (config.client_id, config.protocol) == ("mine", "SSL")
    assert config.bootstrap == (Address("a", 1), Address("::1", 2))
    assert [str(address) for address in config.bootstrap] == ["a:1", "[::1]:2"]


@pytest.mark.parametrize("name", ["try.backoff.ms", "retry.backoff.ms"])
def test_both_names_of_the_backoff_are_one_property(name: str) -> None:
    """KIP-117 calls it try.backoff.ms. Kafka's clients call it retry.backoff.ms."""
    assert read_config({**SERVERS, name: 7}).numbers["retry.backoff.ms"] == 7


def test_missing_properties_have_defaults() -> None:
    numbers = read_config(SERVERS).numbers
    assert numbers == {name: default for name, (default, _) in NUMBERS.items()}
    assert numbers["request.timeout.ms"] == 30_000
    assert numbers["default.api.timeout.ms"] == 60_000


def test_a_call_has_time_for_one_attempt_unless_its_timeout_is_set() -> None:
    long = {**SERVERS, "request.timeout.ms": 120_000}
    assert read_config(long).numbers["default.api.timeout.ms"] == 120_000
    short = {**long, "default.api.timeout.ms": 5_000}
    assert read_config(short).numbers["default.api.timeout.ms"] == 5_000


def test_unknown_properties_are_ignored_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "bridgehead.admin"):
        read_config({**SERVERS, "group.id": "g"})
    assert [record.getMessage() for record in caplog.records] == [
        "the admin client ignores the unknown property group.id"
    ]


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({}, "bootstrap.servers is missing"),
        ({"bootstrap.servers": "host"}, "bootstrap.servers has 'host'; write HOST:PORT"),
        ({"bootstrap.servers": "host:70000"}, "bootstrap.servers has"),
        ({**SERVERS, "request.timeout.ms": "soon"}, "request.timeout.ms must be a whole number"),
        ({**SERVERS, "request.timeout.ms": 0}, "of at least 1"),
        ({**SERVERS, "security.protocol": "TLS"}, "must be one of PLAINTEXT, SSL"),
        ({**SERVERS, "security.protocol": "SASL_SSL"}, "GSSAPI, which is not supported"),
        (
            {**SERVERS, "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"},
            "PLAIN needs sasl.jaas.config",
        ),
        (
            {**SERVERS, "security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"},
            "OAUTHBEARER needs a token",
        ),
        (
            {
                **SERVERS,
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": 'Module required password="secret',
            },
            "sasl.jaas.config has an unbalanced quotation mark",
        ),
        (
            {
                **SERVERS,
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.token.endpoint.url": "https://host/token",
            },
            "must be a file: URL",
        ),
        (
            {**SERVERS, "security.protocol": "SSL", "ssl.truststore.location": "trust.jks"},
            "ssl.truststore.type is JKS, which is not supported",
        ),
        (
            {**SERVERS, "security.protocol": "SSL", "ssl.truststore.location": "missing.pem"},
            "A key or trust store cannot be used",
        ),
    ],
)
def test_the_error_names_an_unusable_property(properties: dict[str, object], text: str) -> None:
    with pytest.raises(AdminConfigError) as rejected:
        AdminClient(properties)
    assert text in str(rejected.value)
    assert "secret" not in str(rejected.value)


def test_a_token_file_is_read_for_each_login(tmp_path: Path) -> None:
    file = tmp_path / "token"
    config = read_config(
        {
            **SERVERS,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": file.as_uri(),
        }
    )
    new_login = login_source(config, None)
    assert new_login is not None
    for token in ("first", "second"):
        file.write_text(f"{token}\n")
        assert new_login().first() == f"n,,\x01auth=Bearer {token}\x01\x01".encode()


def test_without_endpoint_identification_the_host_name_is_not_checked() -> None:
    texts = {**SERVERS, "security.protocol": "SSL"}
    checked = build_tls(read_config(texts))
    unchecked = build_tls(read_config({**texts, "ssl.endpoint.identification.algorithm": ""}))
    assert checked is not None
    assert unchecked is not None
    assert (checked.check_hostname, unchecked.check_hostname) == (True, False)
    assert checked.verify_mode == unchecked.verify_mode  # both contexts check the certificate


def test_a_properties_file_of_kafkas_tools_is_read(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# a comment\nbootstrap.servers = a:1\nclient.id: mine\n")
    assert read_client_properties(file) == {"bootstrap.servers": "a:1", "client.id": "mine"}
    with pytest.raises(AdminConfigError, match="cannot be read"):
        read_client_properties(tmp_path / "missing")
