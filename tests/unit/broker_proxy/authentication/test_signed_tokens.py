"""Signed OAUTHBEARER tokens, validated with the keys of a file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from broker_proxy.authentication.jwks import JwksValidator
from broker_proxy.authentication.listener_security import SIGNED_TOKENS_HANDLERS, read_security
from broker_proxy.authentication.oauthbearer import Token, TokenRejectedError
from broker_proxy.authentication.sasl_server import SecurityConfigError

NOW_MS = 1_700_000_000_000
NOW = NOW_MS // 1000
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC = ec.generate_private_key(ec.SECP256R1())
STRANGER = rsa.generate_private_key(public_exponent=65537, key_size=2048)
GOOD = {"sub": "alice", "iat": NOW - 5, "exp": NOW + 60, "iss": "us", "aud": "kafka"}
URL = "sasl.oauthbearer.jwks.endpoint.url"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"


def write_keys(file: Path, *names: str) -> None:
    public = {
        "rsa": json.loads(RSAAlgorithm.to_jwk(RSA.public_key())),
        "ec": json.loads(ECAlgorithm.to_jwk(EC.public_key())),
    }
    file.write_text(json.dumps({"keys": [{**public[name], "kid": name} for name in names]}))


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    file = tmp_path / "keys.json"
    write_keys(file, "rsa", "ec")
    return file


def validator(keys: Path, **more: str) -> JwksValidator:
    properties = {f"sasl.oauthbearer.{k.replace('_', '.')}": v for k, v in more.items()}
    return JwksValidator({URL: keys.as_uri(), **properties}, lambda: NOW_MS)


def signed(claims: dict[str, Any], key: Any = RSA, kid: str = "rsa", alg: str = "RS256") -> str:
    return jwt.encode(claims, key, algorithm=alg, headers={"kid": kid})


def test_a_token_signed_by_a_known_key_is_valid(keys: Path) -> None:
    check = validator(keys, expected_issuer="us", expected_audience="else, kafka")
    assert check(signed(GOOD)) == Token("alice", (NOW + 60) * 1000)
    assert check(signed(GOOD, EC, "ec", "ES256")).principal_name == "alice"


@pytest.mark.parametrize(
    "token",
    [
        signed(GOOD, STRANGER),
        signed(GOOD, EC, "rsa", "ES256"),
        signed(GOOD, kid="unknown"),
        signed({**GOOD, "exp": NOW - 31}),
        signed({**GOOD, "iat": NOW + 31, "exp": NOW + 60}),
        signed({**GOOD, "iss": "them"}),
        signed({**GOOD, "aud": "elsewhere"}),
        signed({key: value for key, value in GOOD.items() if key != "exp"}),
        signed({key: value for key, value in GOOD.items() if key != "iat"}),
        signed({key: value for key, value in GOOD.items() if key != "aud"}),
        signed({**GOOD, "sub": ""}),
        signed({**GOOD, "exp": "soon"}),
        signed({**GOOD, "exp": float("inf")}),
        signed({**GOOD, "nbf": NOW + 31}),
        signed({**GOOD, "nbf": "soon"}),
        signed({**GOOD, "scope": 5}),
        jwt.encode(GOOD, "", algorithm="none"),
        jwt.encode(GOOD, "a shared secret of more than thirty-two bytes", headers={"kid": "rsa"}),
        signed(GOOD)[:-4],
        "a.b.c",
        "",
        "." * 40_000,
    ],
)
def test_invalid_tokens_are_rejected_and_errors_do_not_contain_them(keys: Path, token: str) -> None:
    check = validator(keys, expected_issuer="us", expected_audience="kafka")
    with pytest.raises(TokenRejectedError) as rejected:
        check(token)
    assert not token or token not in str(rejected.value)


def test_clock_skew_is_tolerated(keys: Path) -> None:
    late = signed({**GOOD, "exp": NOW - 29})
    assert validator(keys)(late).principal_name == "alice"
    early = signed({**GOOD, "nbf": NOW + 29})
    assert validator(keys)(early).principal_name == "alice"
    with pytest.raises(TokenRejectedError):
        validator(keys, clock_skew_seconds="10")(late)


def test_a_clock_skew_that_is_no_number_is_rejected(keys: Path) -> None:
    with pytest.raises(SecurityConfigError, match=r"clock\.skew\.seconds"):
        validator(keys, clock_skew_seconds="1m")


def test_the_key_file_is_read_again_for_an_unknown_key(keys: Path) -> None:
    write_keys(keys, "rsa")
    check = validator(keys)
    token = signed(GOOD, EC, "ec", "ES256")
    with pytest.raises(TokenRejectedError):
        check(token)
    write_keys(keys, "ec")
    os.utime(keys, ns=(1, 1))
    assert check(token).principal_name == "alice"
    with pytest.raises(TokenRejectedError):
        check(signed(GOOD))


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("https://keys.example.org/jwks", "keys are not fetched"),
        ("", "must be a file"),
        ("file:///nowhere/at/all.json", "holds no usable keys"),
    ],
)
def test_the_url_of_the_keys_must_name_a_file(url: str, message: str) -> None:
    with pytest.raises(SecurityConfigError, match=message):
        JwksValidator({URL: url}, lambda: NOW_MS)


def test_a_key_url_without_kafkas_validating_callback_handler_is_rejected() -> None:
    listener = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.a.oauthbearer.sasl.jaas.config": MODULE,
    }
    assert read_security("A", "SASL_SSL", listener).sasl["OAUTHBEARER"].signed_tokens is None
    with_keys = {**listener, URL: "file:///keys.json"}
    with pytest.raises(SecurityConfigError, match=r"callback\.handler\.class"):
        read_security("A", "SASL_SSL", with_keys)
    handler = "listener.name.a.oauthbearer.sasl.server.callback.handler.class"
    settings = read_security("A", "SASL_SSL", {**with_keys, handler: SIGNED_TOKENS_HANDLERS[0]})
    assert settings.sasl["OAUTHBEARER"].signed_tokens == {URL: "file:///keys.json"}
    with pytest.raises(SecurityConfigError, match=r"callback\.handler\.class"):
        read_security("A", "SASL_SSL", {**listener, handler: "my.Handler"})


@pytest.mark.parametrize(
    "purpose", [{"use": "enc"}, {"use": ""}, {"key_ops": ["encrypt", "wrapKey"]}, {"key_ops": []}]
)
def test_a_key_for_another_purpose_verifies_no_token(
    purpose: dict[str, Any], tmp_path: Path
) -> None:
    """RFC 7517 §4.2 and §4.3. An encryption key is often published by its owner, not the issuer."""
    file = tmp_path / "keys.json"
    write_keys(file, "rsa", "ec")
    document = json.loads(file.read_text())
    document["keys"][0] |= purpose
    file.write_text(json.dumps(document))
    check = validator(file)
    assert check(signed(GOOD, EC, "ec", "ES256")).principal_name == "alice"
    with pytest.raises(TokenRejectedError, match="unknown key"):
        check(signed(GOOD))
    document["keys"][0] |= {"use": "sig", "key_ops": ["sign", "verify"]}
    file.write_text(json.dumps(document))
    os.utime(file, ns=(1, 1))
    assert check(signed(GOOD)).principal_name == "alice"


@pytest.mark.parametrize(
    "content",
    [
        *("[]", "7", '{"keys": {}}', '{"keys": [7]}', '{"keys": [{"kid": []}]}', "[" * 100_000),
        '{"keys": "abc"}',
    ],
)
def test_a_file_that_is_no_key_set_rejects_tokens_and_crashes_nothing(
    content: str, keys: Path, tmp_path: Path
) -> None:
    check = validator(keys)
    keys.write_text(content)
    os.utime(keys, ns=(1, 1))
    with pytest.raises(TokenRejectedError):
        check(signed(GOOD, kid="other"))
    with pytest.raises(SecurityConfigError, match="holds no usable keys"):
        validator(keys)
