"""The sections `listeners`, `users` and `acls` of cluster.yaml become Kafka's properties."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bridgehead.cluster.access_plan import (
    PlannedAcl,
    certificate_hosts,
    certificate_properties,
)
from bridgehead.cluster.cluster_file import load_settings
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.properties import format_properties
from bridgehead.cluster.settings import ClusterSettings, settings_from_json, settings_to_json
from bridgehead.jaas import parse_jaas
from node.config import read_config

PASSWORD = "p\"a\\ss; word='x"
FILE = """
listeners:
  LOCAL: PLAINTEXT
  CLIENTS: {protocol: SASL_PLAINTEXT, mechanisms: [PLAIN, SCRAM-SHA-256]}
  SECURE: {protocol: SASL_SSL, host: 192.0.2.7, client_auth: requested}
users:
  admin: {password: admin-secret, super: true}
  alice: {password: PASSWORD, mechanisms: [PLAIN, SCRAM-SHA-512]}
  robot: {mechanisms: [OAUTHBEARER]}
acls:
  - {principal: "User:alice", operations: [read, describe-configs], resource: topic:orders}
  - principal: "User:*"
    operations: [ALL]
    resource: "topic:tmp-"
    pattern: prefixed
    permission: deny
    host: 10.0.0.1
  - {principal: "User:alice", operations: [create], resource: cluster}
""".replace("PASSWORD", json.dumps(PASSWORD))


def settings(tmp_path: Path, text: str = FILE, **options: Any) -> ClusterSettings:
    file = tmp_path / "cluster.yaml"
    file.write_text(text, encoding="utf-8")
    return load_settings(tmp_path, config=file, **options)


def test_listeners_become_kafka_properties(tmp_path: Path) -> None:
    """A node accepts these properties; passwords may contain any characters."""
    properties = settings(tmp_path).properties
    generated = certificate_properties("/b.pem", "/ca.pem")
    lines = {
        **generated,
        **properties,
        "broker.id": "1",
        "zookeeper.connect": "h:1",
        "authorizer.class.name": "",
    }
    config = read_config(format_properties(lines))
    assert [
        (listener.name, listener.security_protocol, listener.host) for listener in config.listeners
    ] == [
        ("LOCAL", "PLAINTEXT", "127.0.0.1"),
        ("CLIENTS", "SASL_PLAINTEXT", "127.0.0.1"),
        ("SECURE", "SASL_SSL", "192.0.2.7"),
    ]
    clients = config.security["CLIENTS"].sasl
    assert sorted(clients) == ["PLAIN", "SCRAM-SHA-256"]
    assert clients["PLAIN"].jaas.options == {
        "user_admin": "admin-secret",
        "user_alice": PASSWORD,
    }
    secure = config.security["SECURE"]
    assert sorted(secure.sasl) == ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    assert secure.tls is not None
    assert secure.tls.client_auth == "requested"


def test_users_and_acls_become_an_access_plan(tmp_path: Path) -> None:
    """The principal of the plan is the first super user."""
    wanted = settings(tmp_path)
    plan = wanted.access
    assert wanted.properties["super.users"] == "User:admin;User:broker"
    assert wanted.properties["authorizer.class.name"].endswith(".AclAuthorizer")
    assert plan.principal == "User:admin"
    assert [(user.name, user.mechanisms) for user in plan.users] == [
        ("admin", ("SCRAM-SHA-256", "SCRAM-SHA-512")),
        ("alice", ("SCRAM-SHA-512",)),
    ]
    assert plan.acls == (
        PlannedAcl("User:alice", "*", 3, 3, 2, "orders", 3),
        PlannedAcl("User:alice", "*", 10, 3, 2, "orders", 3),
        PlannedAcl("User:*", "10.0.0.1", 2, 2, 2, "tmp-", 4),
        PlannedAcl("User:alice", "*", 5, 3, 4, "kafka-cluster", 3),
    )
    assert plan.certificates == ("admin", "alice", "robot")


def test_settings_with_access_plan_survive_json(tmp_path: Path) -> None:
    wanted = settings(tmp_path)
    assert settings_from_json(json.loads(json.dumps(settings_to_json(wanted)))) == wanted


def test_access_plan_hides_passwords_in_repr(tmp_path: Path) -> None:
    assert "secret" not in repr(settings(tmp_path).access)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("users: {alice: {pasword: planted}}", "`users.alice.pasword`: Extra inputs"),
        ("users: {alice: 5}", "`users.alice`"),
        ("users: {alice: [planted]}", "`users.alice`"),
        ('users: {alice: "planted}', "is not YAML"),
        ("listeners: {A: SASL}", "`listeners.A.protocol`"),
        ("listeners: {A: {protocol: SSL, mechanisms: [GSSAPI]}}", "mechanisms"),
        ("listeners: {A: PLAINTEXT}\nproperties: {listeners: 'B://:0'}", "is set twice"),
        ("acls: [{principal: alice, operations: [read], resource: topic:x}]", "acls.0.principal"),
        (
            "acls: [{principal: 'User:a', operations: [fly], resource: topic:x}]",
            "is not a valid operation",
        ),
        (
            "acls: [{principal: 'User:a', operations: [read], resource: table:x}]",
            "is not a valid resource",
        ),
        ("acls: [{principal: 'User:a', operations: [read], resource: topic}]", "names no resource"),
        ("users: {broker: planted}\nacls: []", "name of the brokers"),
        (
            "users: {a: planted}\nproperties: {authorizer.class.name: mine.Authorizer}",
            "super: true",
        ),
    ],
)
def test_errors_name_the_key_without_secrets(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ClusterError, match=message) as caught:
        settings(tmp_path, text)
    assert "planted" not in str(caught.value)


def test_certificates_and_properties_of_the_user_take_precedence(tmp_path: Path) -> None:
    cluster_settings = settings(
        tmp_path,
        "listeners: {A: {protocol: SSL, client_auth: required}}\n"
        "properties: {ssl.keystore.type: PEM, ssl.keystore.location: /mine.pem,"
        " listener.name.a.ssl.client.auth: none, super.users: 'User:root'}\n"
        "users: {admin: {super: true}}",
    )
    assert cluster_settings.access.certificates is None
    assert cluster_settings.properties["listener.name.a.ssl.client.auth"] == "none"
    assert cluster_settings.properties["super.users"] == "User:admin;User:root;User:broker"


def test_remote_plaintext_is_an_explicit_option(tmp_path: Path) -> None:
    cluster_settings = settings(tmp_path, "listeners: {A: {protocol: PLAINTEXT, host: 0.0.0.0}}")
    assert "bridgehead.allow.remote.plaintext" not in cluster_settings.properties
    cluster_settings = settings(tmp_path, "brokers: 1", allow_remote_plaintext=True)
    assert cluster_settings.properties["bridgehead.allow.remote.plaintext"] == "true"


def test_certificate_covers_every_advertised_address() -> None:
    hosts = certificate_hosts(
        {
            "listeners": "A://0.0.0.0:1,B://[::]:2,C://192.0.2.7:3,D://:4",
            "advertised.listeners": "A://kafka.example.org:1",
        }
    )
    assert hosts == ["127.0.0.1", "::1", "localhost", "192.0.2.7", "kafka.example.org"]


ODD_NAMES = ('x="" user_admin', 'a"b', "back\\slash", "semi;colon", "eq=ual", "user one", "é", "'")


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_users_name_adds_no_other_user(name: str, tmp_path: Path) -> None:
    text = f"""
listeners: {{CLIENTS: {{protocol: SASL_PLAINTEXT, mechanisms: [PLAIN]}}}}
users: {{{json.dumps(name)}: pwned, bob: bob-secret}}
"""
    jaas = settings(tmp_path, text).properties["listener.name.clients.plain.sasl.jaas.config"]
    options = parse_jaas(jaas, "sasl.jaas.config").options
    assert options == {f"user_{name}": "pwned", "user_bob": "bob-secret"}


def test_a_super_users_name_adds_no_other_super_user(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="separates its entries with semicolons"):
        settings(tmp_path, "users: {'a;User:mallory': {super: true}}")
    with pytest.raises(ClusterError, match="cannot be a super user"):
        settings(
            tmp_path,
            "users: {bob: {super: true}}\n"
            "properties: {bridgehead.inter.broker.user: 'b;User:mallory'}",
        )


@pytest.mark.parametrize("name", ["", " mallory", "mallory\t", "a\nb", "a\x00b", "\u2028a"])
def test_a_name_that_other_places_would_read_differently_is_rejected(
    name: str, tmp_path: Path
) -> None:
    """`super.users` is trimmed, so ` mallory` would make mallory a super user."""
    with pytest.raises(ClusterError, match="a user's name is not empty"):
        settings(tmp_path, f"users: {{{json.dumps(name)}: {{super: true}}}}")


def _merges_of_merges() -> str:
    lines = ["m0: &m0 {" + ", ".join(f"k{number}: v" for number in range(10)) + "}"]
    for depth in range(1, 9):
        merged = ", ".join([f"*m{depth - 1}"] * 10)
        lines.append(f"m{depth}: &m{depth} {{<<: [{merged}]}}")
    return "\n".join([*lines, "properties: *m8"])


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 5_000, "is nested too deeply"),
        ("{a: " * 5_000, "is nested too deeply"),
        ("brokers: " + "9" * 5_000, "a number or a date in it is invalid"),
        ("brokers: 2026-99-99", "a number or a date in it is invalid"),
        (_merges_of_merges(), "a mapping has more than 10,000 keys"),
        ("#" * (5 << 20), "has more than"),
        ("acls: [" + "1, " * 5_000 + "]", "and 4990 more"),
    ],
    ids=["list", "map", "digits", "date", "merges", "large", "many"],
)
def test_a_hostile_file_gets_one_short_sentence(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=message) as rejected:
        settings(tmp_path, text)
    assert len(str(rejected.value)) < 2_000
