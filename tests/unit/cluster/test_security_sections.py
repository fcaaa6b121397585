"""One file says who may reach a cluster and do what; Kafka's own properties come of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bridgehead.cluster.cluster_file import load_settings
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.properties import format_properties
from bridgehead.cluster.set_up_plan import AclSetUp, certificate_hosts, certificate_properties
from bridgehead.cluster.settings import ClusterSettings, settings_from_json, settings_to_json
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


def settings(tmp_path: Path, text: str = FILE, **options: bool) -> ClusterSettings:
    file = tmp_path / "cluster.yaml"
    file.write_text(text, encoding="utf-8")
    return load_settings(tmp_path, config=file, **options)


def test_listeners_become_kafkas_properties(tmp_path: Path) -> None:
    """A node starts from them, and knows alice's password, whatever characters it has."""
    properties = settings(tmp_path).properties
    made = certificate_properties("/b.pem", "/ca.pem")
    lines = {
        **made,
        **properties,
        "broker.id": "1",
        "zookeeper.connect": "h:1",
        "authorizer.class.name": "",
    }
    config = read_config(format_properties(lines))
    assert [(each.name, each.security_protocol, each.host) for each in config.listeners] == [
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


def test_users_and_acls_wait_for_the_cluster(tmp_path: Path) -> None:
    """In the name of the first super user; SCRAM for those who have it."""
    wanted = settings(tmp_path)
    plan = wanted.set_up
    assert wanted.properties["super.users"] == "User:admin;User:broker"
    assert wanted.properties["authorizer.class.name"].endswith(".AclAuthorizer")
    assert plan.asker == "User:admin"
    assert [(each.name, each.mechanisms) for each in plan.users] == [
        ("admin", ("SCRAM-SHA-256", "SCRAM-SHA-512")),
        ("alice", ("SCRAM-SHA-512",)),
    ]
    assert plan.acls == (
        AclSetUp("User:alice", "*", 3, 3, 2, "orders", 3),
        AclSetUp("User:alice", "*", 10, 3, 2, "orders", 3),
        AclSetUp("User:*", "10.0.0.1", 2, 2, 2, "tmp-", 4),
        AclSetUp("User:alice", "*", 5, 3, 4, "kafka-cluster", 3),
    )
    assert plan.certificates == ("admin", "alice", "robot")


def test_all_of_it_survives_the_way_to_the_supervisor(tmp_path: Path) -> None:
    """As one line of JSON on a pipe, never in an argument."""
    wanted = settings(tmp_path)
    assert settings_from_json(json.loads(json.dumps(settings_to_json(wanted)))) == wanted


def test_nothing_prints_a_password(tmp_path: Path) -> None:
    """Not even a developer's look at the plan."""
    assert "secret" not in repr(settings(tmp_path).set_up)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("users: {alice: {pasword: planted}}", "`users.alice.pasword`: Extra inputs"),
        ("users: {alice: 5}", "`users.alice`"),
        ("users: {alice: [planted]}", "`users.alice`"),
        ('users: {alice: "planted}', "is no YAML"),
        ("listeners: {A: SASL}", "`listeners.A.protocol`"),
        ("listeners: {A: {protocol: SSL, mechanisms: [GSSAPI]}}", "mechanisms"),
        ("listeners: {A: PLAINTEXT}\nproperties: {listeners: 'B://:0'}", "said twice"),
        ("acls: [{principal: alice, operations: [read], resource: topic:x}]", "acls.0.principal"),
        ("acls: [{principal: 'User:a', operations: [fly], resource: topic:x}]", "is no operation"),
        ("acls: [{principal: 'User:a', operations: [read], resource: table:x}]", "is no resource"),
        ("acls: [{principal: 'User:a', operations: [read], resource: topic}]", "names no resource"),
        ("users: {broker: planted}\nacls: []", "mistaken for the brokers"),
        (
            "users: {a: planted}\nproperties: {authorizer.class.name: mine.Authorizer}",
            "super: true",
        ),
    ],
)
def test_what_is_wrong_is_said_without_the_secret(tmp_path: Path, text: str, says: str) -> None:
    """Where it stands, and what would be right."""
    with pytest.raises(ClusterError, match=says) as refused:
        settings(tmp_path, text)
    assert "planted" not in str(refused.value)


def test_ones_own_certificates_and_properties_win(tmp_path: Path) -> None:
    """None are generated beside them."""
    own = settings(
        tmp_path,
        "listeners: {A: {protocol: SSL, client_auth: required}}\n"
        "properties: {ssl.keystore.type: PEM, ssl.keystore.location: /mine.pem,"
        " listener.name.a.ssl.client.auth: none, super.users: 'User:root'}\n"
        "users: {admin: {super: true}}",
    )
    assert own.set_up.certificates is None
    assert own.properties["listener.name.a.ssl.client.auth"] == "none"
    assert own.properties["super.users"] == "User:admin;User:root;User:broker"


def test_plaintext_far_from_home_has_to_be_wanted(tmp_path: Path) -> None:
    """The option reaches every node."""
    given = settings(tmp_path, "listeners: {A: {protocol: PLAINTEXT, host: 0.0.0.0}}")
    assert "bridgehead.allow.remote.plaintext" not in given.properties
    given = settings(tmp_path, "brokers: 1", allow_remote_plaintext=True)
    assert given.properties["bridgehead.allow.remote.plaintext"] == "true"


def test_a_certificate_is_good_for_every_address_that_clients_are_told() -> None:
    """Wildcards are no addresses."""
    hosts = certificate_hosts(
        {
            "listeners": "A://0.0.0.0:1,B://[::]:2,C://192.0.2.7:3,D://:4",
            "advertised.listeners": "A://kafka.example.org:1",
        }
    )
    assert hosts == ["127.0.0.1", "::1", "localhost", "192.0.2.7", "kafka.example.org"]
