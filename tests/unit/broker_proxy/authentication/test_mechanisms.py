"""Each SASL mechanism: successful logins and errors."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_proxy.authentication.oauthbearer import OAuthBearerServer
from broker_proxy.authentication.plain import PlainServer
from broker_proxy.authentication.sasl_server import (
    SaslAuthenticationError,
    SaslError,
    SaslResult,
)
from broker_proxy.authentication.scram import ScramServer
from broker_proxy.authentication.unsecured_jws import UnsecuredJwsValidator
from cluster_model.scram import ScramCredential, derive_credential
from tests.unit.broker_proxy.authentication.clients import (
    Credentials,
    ScramClient,
    credential,
    scram_server,
)

NOW_MS = 1_700_000_000_000
FAILED = "Authentication failed: "
USERS = Credentials({"alice": credential("pencil")})


@pytest.mark.parametrize(
    ("message", "results"),
    [
        (b"garbage", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"\0\0\0\0\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0alice\0wrong", FAILED + "Invalid username or password"),
        (b"\0nobody\0wrong", FAILED + "Invalid username or password"),
        (b"\0nobody\0", FAILED + "password not specified"),
        (b"\0\0pencil", FAILED + "username not specified"),
        (
            b"bob\0alice\0pencil",
            FAILED + "Client requested an authorization id that is different from username",
        ),
    ],
)
def test_plain_errors_are_the_same_as_in_kafka(message: bytes, results: str) -> None:
    server = PlainServer({"alice": "pencil", "empty": ""})
    with pytest.raises(SaslAuthenticationError, match=results.replace("/", ".")):
        server.evaluate(message)
    assert server.result is None


def test_plain_accepts_an_equal_or_empty_authorization_id() -> None:
    for message in (b"\0alice\0pencil", b"alice\0alice\0pencil"):
        server = PlainServer({"alice": "pencil"})
        assert server.evaluate(message) == b""
        assert server.result == SaslResult("alice")
    server = PlainServer({"jürgen": "naïve"})
    server.evaluate("\0jürgen\0naïve".encode())
    assert server.result == SaslResult("jürgen")


def test_scram_authenticates_client_and_server() -> None:
    server, client = scram_server(USERS), ScramClient("alice", "pencil")
    last = server.evaluate(client.final(server.evaluate(client.first())))
    assert base64.b64decode(last.removeprefix(b"v=")) == client.expected
    assert server.result == SaslResult("alice")


def test_scram_messages_equal_the_example_of_rfc_7677() -> None:
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    users = Credentials({"user": derive_credential(1, "pencil", salt, 4096)})
    server = ScramServer(1, users, None, lambda: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    assert server.evaluate(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO") == (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    final = (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert server.evaluate(final) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@pytest.mark.parametrize(
    "spoil",
    [
        lambda proof: bytes(32),
        lambda proof: proof[:-1] + bytes([proof[-1] ^ 1]),
        lambda proof: proof[:-1],
        lambda proof: proof + b"\0",
        lambda proof: b"",
    ],
)
def test_scram_rejects_wrong_proofs(spoil: Callable[[bytes], bytes]) -> None:
    server, client = scram_server(USERS), ScramClient("alice", "pencil")
    challenge = server.evaluate(client.first())
    with pytest.raises(SaslError):
        server.evaluate(client.final(challenge, tamper=spoil))
    assert server.result is None


def test_scram_rejects_a_replayed_exchange() -> None:
    server, client = scram_server(USERS), ScramClient("alice", "pencil")
    recorded = client.final(server.evaluate(client.first()))
    server.evaluate(recorded)
    later = scram_server(USERS, first_nonce=2)
    challenge = later.evaluate(client.first())
    with pytest.raises(SaslError, match="nonce"):
        later.evaluate(recorded)
    with pytest.raises(SaslError, match="nonce"):
        later.evaluate(client.final(challenge, nonce="cn"))
    later.evaluate(client.final(challenge))
    assert later.result == SaslResult("alice")


def test_scram_rejects_a_third_message() -> None:
    server, client = scram_server(USERS), ScramClient("alice", "pencil")
    final = client.final(server.evaluate(client.first()))
    server.evaluate(final)
    with pytest.raises(SaslError):
        server.evaluate(final)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,",
        b"y,,n=alice,r=x",
        b"p=tls-unique,,n=alice,r=x",
        b"n,,n=,r=x",
        b"n,,n=alice,r=",
        b"n,,n=al=ice,r=x",
        b"n,,n=alice,r=a b",
        b"n,,n=alice,r=\xff",
        b"n,,n=alice",
        b"n,,n=nobody,r=x",
        b"n,a=bob,n=alice,r=x",
        b"n,,n=alice,r=x,tokenauth=true",
        b"n,,n=alice,r=" + b"x" * 9_000,
    ],
)
def test_scram_rejects_a_wrong_first_message(message: bytes) -> None:
    with pytest.raises(SaslError):
        scram_server(USERS).evaluate(message)


def test_many_scram_iterations_do_not_delay_the_server() -> None:
    """Only the client computes the iterations. The server rejects a count that is too low."""
    huge = Credentials({"alice": _with_iterations(2**31 - 1)})
    assert scram_server(huge).evaluate(b"n,,n=alice,r=x").endswith(b",i=2147483647")
    with pytest.raises(SaslError, match="too few iterations"):
        scram_server(Credentials({"alice": _with_iterations(1)})).evaluate(b"n,,n=alice,r=x")


def _with_iterations(count: int) -> ScramCredential:
    return dataclasses.replace(credential("pencil"), iterations=count)


def test_a_delegation_token_logs_its_owner_in() -> None:
    tokens = Credentials({"tok": credential("aG1hYw==")}, {"tok": "carol"}, 99)
    server = scram_server(USERS, tokens)
    client = ScramClient("tok", "aG1hYw==", ",tokenauth=true")
    server.evaluate(client.final(server.evaluate(client.first())))
    assert server.result == SaslResult("carol", token_authenticated=True, expires_at_ms=99)
    with pytest.raises(SaslError, match="unknown delegation token"):
        scram_server(USERS, Credentials()).evaluate(client.first())
    with pytest.raises(SaslError, match="unknown delegation token"):
        scram_server(USERS, None).evaluate(client.first())


def test_the_tokenauth_extension_selects_tokens_instead_of_users() -> None:
    tokens = Credentials({"tok": credential("x")}, {"tok": "carol"})
    with pytest.raises(SaslError):
        scram_server(USERS, tokens).evaluate(b"n,,n=tok,r=x")
    with pytest.raises(SaslError):
        scram_server(USERS, tokens).evaluate(b"n,,n=tok,r=x,tokenauth=false")


@given(st.binary(max_size=200))
def test_random_bytes_raise_only_sasl_errors(data: bytes) -> None:
    for server in (
        PlainServer({"alice": "pencil"}),
        scram_server(USERS),
        OAuthBearerServer(UnsecuredJwsValidator({}, lambda: NOW_MS)),
    ):
        try:
            server.evaluate(data)
            server.evaluate(data)
        except SaslError:
            assert server.result is None


def jws(claims: object, header: object = None, signature: str = "") -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part(header or {'alg': 'none'})}.{part(claims)}.{signature}"


def bearer(token: str, authorization_id: str = "") -> bytes:
    header = f"n,a={authorization_id}," if authorization_id else "n,,"
    return f"{header}\x01auth=Bearer {token}\x01\x01".encode()


GOOD = {"sub": "alice", "iat": NOW_MS / 1000 - 1, "exp": NOW_MS / 1000 + 60}


def test_an_unsecured_token_sets_principal_and_expiry() -> None:
    server = OAuthBearerServer(UnsecuredJwsValidator({}, lambda: NOW_MS))
    assert server.evaluate(bearer(jws(GOOD))) == b""
    assert server.result == SaslResult("alice", expires_at_ms=NOW_MS + 60_000)
    server = OAuthBearerServer(UnsecuredJwsValidator({}, lambda: NOW_MS))
    server.evaluate(bearer(jws(GOOD), "alice"))
    assert server.result is not None


@pytest.mark.parametrize(
    "token",
    [
        jws({**GOOD, "exp": NOW_MS / 1000 - 1}),
        jws({**GOOD, "iat": NOW_MS / 1000 + 60, "exp": NOW_MS / 1000 + 120}),
        jws({**GOOD, "exp": None}),
        jws({**GOOD, "exp": "soon"}),
        jws({**GOOD, "exp": True}),
        jws({**GOOD, "exp": 1e300}),
        jws({**GOOD, "sub": ""}),
        jws({**GOOD, "sub": "  "}),
        jws({**GOOD, "scope": 5}),
        jws({**GOOD, "sub": ["alice"]}),
        jws({**GOOD, "sub": "\ud800"}),
        jws({**GOOD, "sub": "alice\udfff"}),
        jws(GOOD, {"alg": "HS256"}),
        jws(GOOD, signature="c2ln"),
        jws([]),
        "a.b",
        "a.b.c.d",
        "....",
    ],
)
def test_an_invalid_token_gets_json(token: str) -> None:
    server = OAuthBearerServer(UnsecuredJwsValidator({}, lambda: NOW_MS))
    assert server.evaluate(bearer(token)) == b'{"status":"invalid_token"}'
    assert server.result is None
    with pytest.raises(SaslAuthenticationError, match="invalid_token"):
        server.evaluate(b"\x01")


def test_a_missing_scope_is_reported() -> None:
    options = {"unsecuredValidatorRequiredScope": "kafka admin"}
    server = OAuthBearerServer(UnsecuredJwsValidator(options, lambda: NOW_MS))
    results = json.loads(server.evaluate(bearer(jws({**GOOD, "scope": ["kafka"]}))))
    assert results == {"status": "insufficient_scope", "scope": "admin kafka"}
    server.evaluate(bearer(jws({**GOOD, "scope": "admin kafka more"})))
    assert server.result is not None


def test_an_authorization_id_must_equal_the_tokens_principal() -> None:
    server = OAuthBearerServer(UnsecuredJwsValidator({}, lambda: NOW_MS))
    with pytest.raises(SaslAuthenticationError, match="different from the token"):
        server.evaluate(bearer(jws(GOOD), "bob"))
    assert server.result is None
