"""Certificate names as Java writes them, and their mapping to principals."""

from __future__ import annotations

import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID, ObjectIdentifier

from broker_proxy.authentication.distinguished_name import certificate_name
from broker_proxy.authentication.principals import (
    DEFAULT_BUILDER,
    AuthenticationContext,
    load_builder,
)
from broker_proxy.authentication.sasl_server import SecurityConfigError
from broker_proxy.authentication.ssl_principal_mapper import (
    NoRuleMatchesError,
    SslPrincipalMapper,
)
from cluster_model.principal import KafkaPrincipal

KEY = ec.generate_private_key(ec.SECP256R1())
CN, ORG, UNIT, COUNTRY = (
    NameOID.COMMON_NAME,
    NameOID.ORGANIZATION_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.COUNTRY_NAME,
)
Names = list[list[tuple[ObjectIdentifier, str]]]


def certificate(names: Names) -> bytes:
    rdns = [
        x509.RelativeDistinguishedName([x509.NameAttribute(*attribute) for attribute in rdn])
        for rdn in names
    ]
    day = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(x509.Name(rdns))
        .issuer_name(x509.Name([]))
        .public_key(KEY.public_key())
        .serial_number(1)
        .not_valid_before(day)
        .not_valid_after(day + datetime.timedelta(days=1))
        .sign(KEY, hashes.SHA256())
    )
    return built.public_bytes(serialization.Encoding.DER)


# Subjects, and the names that X500Principal.getName() of Java 17 returned for them.
OF_JAVA: list[tuple[Names, str]] = [
    ([[(COUNTRY, "DE")], [(ORG, "Acme, Inc.")], [(CN, "alice")]], r"CN=alice,O=Acme\, Inc.,C=DE"),
    ([[(CN, " lead #and trail ")]], r"CN=\ lead \#and trail\ "),
    ([[(CN, '#x=y+z<>;"\\ q')]], r"CN=\#x\=y\+z\<\>\;\"\\ q"),
    ([[(CN, "   ")]], r"CN=\ \ \ "),
    ([[(CN, "  a\0b  ")]], r"CN=\ \ a\00b\ \ "),
    ([[(CN, "tab\there\nline")]], "CN=tab\there\nline"),
    (
        [
            [(CN, "a  b"), (NameOID.USER_ID, "u1")],
            [(NameOID.EMAIL_ADDRESS, "a@b.c")],
            [(NameOID.SERIAL_NUMBER, "77")],
        ],
        "2.5.4.5=#13023737,1.2.840.113549.1.9.1=#16056140622e63,CN=a  b+UID=u1",
    ),
    (
        [
            [(NameOID.DOMAIN_COMPONENT, "org")],
            [(NameOID.DOMAIN_COMPONENT, "kafka")],
            [(NameOID.STREET_ADDRESS, "s 1")],
            [(NameOID.TITLE, "Dr")],
            [(NameOID.LOCALITY_NAME, "L")],
            [(NameOID.STATE_OR_PROVINCE_NAME, "ST")],
            [(CN, "Jürgen 日本")],
        ],
        "CN=Jürgen 日本,ST=ST,L=L,2.5.4.12=#0c024472,STREET=s 1,DC=kafka,DC=org",
    ),
    (
        [[(ObjectIdentifier("1.3.6.1.4.1.99.1"), "ünï")], [(CN, "xxx")]],
        "CN=xxx,1.3.6.1.4.1.99.1=#0c05c3bc6ec3af",
    ),
]


@pytest.mark.parametrize(("names", "text"), OF_JAVA)
def test_certificate_names_equal_those_of_java(names: Names, text: str) -> None:
    assert certificate_name(certificate(names)) == text


def test_a_long_value_is_encoded() -> None:
    """Its ASN.1 length takes more than one byte."""
    oid = ObjectIdentifier("1.3.6.1.4.1.99.1")
    name = certificate_name(certificate([[(oid, "x" * 300)]]))
    assert name == f"1.3.6.1.4.1.99.1=#0c82012c{'78' * 300}"


NAME = "CN=kafka-1,OU=ServiceUsers,O=Org,C=DE"


@pytest.mark.parametrize(
    ("rules", "name", "mapped"),
    [
        ("DEFAULT", NAME, NAME),
        ("", NAME, NAME),
        (r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", NAME, "kafka-1"),
        (r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/U", NAME, "KAFKA-1"),
        (r"RULE:^CN=(.*?),OU=(.*?),O=(.*?),C=(.*?)$/$1@$2/L", NAME, "kafka-1@serviceusers"),
        (r"RULE:^cn=(.*?)$/$1/,DEFAULT", NAME, NAME),
        (r"RULE:^CN=(\w+)$/a/,  RULE:^CN=(.*?),.*$/$1/L , DEFAULT", NAME, "kafka-1"),
        (r"RULE:^CN=(.*?),.*$/x-$1-$2/", NAME, "x-kafka-1-$2"),
        (r"RULE:^CN=(.*?),.*$/\$1/", NAME, "$1"),
        (r"RULE:^([^\/]*)$/$1/L", "CN=A", "cn=a"),
    ],
)
def test_the_first_matching_rule_names_the_principal(rules: str, name: str, mapped: str) -> None:
    """KIP-371: a rule must match the whole name."""
    assert SslPrincipalMapper(rules).map(name) == mapped


def test_a_name_without_a_matching_rule_is_an_error() -> None:
    with pytest.raises(NoRuleMatchesError):
        SslPrincipalMapper("RULE:^CN=only$/x/").map(NAME)
    with pytest.raises(NoRuleMatchesError):
        SslPrincipalMapper("DEFAULT").map("CN=" + "x" * 5_000)


@pytest.mark.parametrize("rules", ["RULE:^CN=(.*$/$1/", "RULE:x", "nonsense", "DEFAULT;DEFAULT"])
def test_a_malformed_rule_is_rejected_at_start(rules: str) -> None:
    with pytest.raises(SecurityConfigError, match=r"ssl\.principal\.mapping\.rules"):
        SslPrincipalMapper(rules)


def context(**fields: object) -> AuthenticationContext:
    return AuthenticationContext("SSL", "SSL", "127.0.0.1", **fields)  # type: ignore[arg-type]


def test_the_default_builder_prefers_sasl_to_a_certificate() -> None:
    builder = load_builder(DEFAULT_BUILDER, "RULE:^CN=(.*)$/$1/", {})
    assert str(builder.build(context())) == "User:ANONYMOUS"
    assert str(builder.build(context(certificate_name="CN=alice"))) == "User:alice"
    both = builder.build(context(certificate_name="CN=alice", authorization_id="bob"))
    assert str(both) == "User:bob"


class Team:
    """A custom builder."""

    def configure(self, properties: dict[str, str]) -> None:
        self.team = properties["team"]

    def build(self, requested: AuthenticationContext) -> KafkaPrincipal:
        return KafkaPrincipal(self.team, requested.authorization_id or "guest")


def test_a_custom_builder_is_loaded_and_configured() -> None:
    builder = load_builder(f"{__name__}.Team", "DEFAULT", {"team": "Blue"})
    assert str(builder.build(context(authorization_id="alice"))) == "Blue:alice"


@pytest.mark.parametrize("name", ["no.such.module.X", f"{__name__}.Nothing", "Team", "os.getcwd"])
def test_an_invalid_custom_builder_is_rejected(name: str) -> None:
    with pytest.raises(SecurityConfigError, match=r"principal\.builder\.class"):
        load_builder(name, "DEFAULT", {})
