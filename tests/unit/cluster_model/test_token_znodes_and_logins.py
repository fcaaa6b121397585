"""Delegation tokens: znodes equal to Kafka's, and SCRAM logins with tokens."""

from __future__ import annotations

import base64
import gzip
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from broker_proxy.metadata.token_cache import TokenCache
from cluster_model.delegation_tokens import DelegationToken
from cluster_model.principal import KafkaPrincipal
from cluster_model.scram import credential_text, parse_credential, salted_password
from cluster_model.znodes.layout import ZnodeContentError
from cluster_model.znodes.tokens import TokenZnode
from tests.unit.controller.test_delegation_tokens import ALICE, BOB, SECRET, Cluster

ZNODES = Path(__file__).parents[2] / "recordings" / "znodes-direct-secured.jsonl.gz"


def test_the_hmac_of_a_token_is_the_same_as_in_kafka() -> None:
    """The secret key and the token id are from a recording."""
    hmac = SECRET.hmac("E9iyqWWOTOGWxBReP8CvcQ")
    assert base64.b64encode(hmac).decode() == (
        "FvOdcllvKzSMkAkWvjV3dTzhwpJtyZe1U5p9P6N967yfoxEaDE38faouOY08XW4MffTUwJVQBl1fnxKoc9jyMA=="
    )


def test_recorded_znodes_round_trip() -> None:
    with gzip.open(ZNODES, "rt") as lines:
        znodes_of_tokens = [
            z for z in map(json.loads, lines) if z["path"].startswith(TokenZnode.parent + "/")
        ]
    assert len(znodes_of_tokens) == 9
    for znode in znodes_of_tokens:
        token_id = znode["path"].rpartition("/")[2]
        token = TokenZnode.decode(token_id, znode["data"].encode())
        assert TokenZnode.encode(token).decode() == znode["data"]
        assert TokenZnode.path(token_id) == znode["path"]


def test_principals_are_escaped_as_in_kafka() -> None:
    """A handmade sample: a distinguished name, a colon in a name, two renewers."""
    token = DelegationToken(
        "AAAAAAAAAAAAAAAAAAAAAA",
        KafkaPrincipal("User", "CN=a,O=b c"),
        KafkaPrincipal("User", "x:y"),
        (BOB, KafkaPrincipal("User", "d*~")),
        1,
        2,
        3,
    )
    text = (
        '{"issueTimestamp":1,"renewers":["User%3Abob","User%3Ad%2A%7E"],"tokenRequester":'
        '"User%3Ax%3Ay","tokenId":"AAAAAAAAAAAAAAAAAAAAAA","owner":"User%3ACN%3Da%2CO%3Db%20c",'
        '"expiryTimestamp":2,"maxTimestamp":3,"version":3}'
    )
    assert TokenZnode.encode(token).decode() == text
    assert TokenZnode.decode(token.token_id, text.encode()) == token


def test_before_version_3_the_owner_is_the_requester() -> None:
    """Kafka 3.2 and earlier write no requester."""
    old = (
        b'{"version":1,"owner":"User%3Aalice","renewers":[],"issueTimestamp":1,"maxTimestamp":3,'
        b'"expiryTimestamp":2,"tokenId":"t"}'
    )
    assert TokenZnode.decode("t", old).requester == ALICE


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"",
        b"[]",
        b"{}",
        b'{"version":4,"tokenId":"t"}',
        b'{"version":1,"owner":"alice","renewers":[],"issueTimestamp":1,"maxTimestamp":3,'
        b'"expiryTimestamp":2,"tokenId":"t"}',
        b'{"version":1,"owner":"User%3Aalice","renewers":[],"issueTimestamp":1,"maxTimestamp":3,'
        b'"expiryTimestamp":2,"tokenId":"another"}',
    ],
)
def test_invalid_content_is_rejected(data: bytes | None) -> None:
    with pytest.raises(ZnodeContentError, match="tokens/t"):
        TokenZnode.decode("t", data)


def test_a_token_logs_in_with_its_hmac_as_password() -> None:
    """One credential per mechanism is cached until the token is removed."""
    cluster = Cluster()
    response = cluster.issue()
    cache = TokenCache(SECRET, new_salt=random.Random(7).randbytes)
    cache.replace_all(cluster.image.tokens)
    password = base64.b64encode(response.hmac).decode()
    for mechanism in (1, 2):
        credential = cache.scram_credential(response.token_id, mechanism)
        assert credential is not None
        salted = salted_password(mechanism, password, credential.salt, 4096)
        assert credential == parse_credential(
            credential_text(mechanism, credential.salt, salted, 4096)
        )
        assert cache.scram_credential(response.token_id, mechanism) is credential
    assert cache.owner(response.token_id) == "alice"
    assert cache.expires_at_ms(response.token_id) == response.expiry_timestamp_ms
    cache.update(response.token_id, replace(cluster.token(response.token_id), expiry_ms=9))
    assert cache.expires_at_ms(response.token_id) == 9
    cache.update(response.token_id, None)
    assert (cache.owner(response.token_id), cache.scram_credential(response.token_id, 1)) == (
        None,
    ) * 2


def test_the_active_controller_uses_the_tokens_of_its_image() -> None:
    """Clients can log in with a new token immediately, and not with a removed one."""
    cluster = Cluster()
    response = cluster.issue()
    image: list[Any] = [cluster.image.tokens]
    cache = TokenCache(SECRET, new_salt=random.randbytes, active_tokens=lambda: image[0])
    assert cache.owner(response.token_id) == "alice"
    assert cache.scram_credential(response.token_id, 1) is not None
    image[0] = None
    assert cache.owner(response.token_id) is None
    cache.update(response.token_id, cluster.token(response.token_id))
    image[0] = {}
    assert cache.scram_credential(response.token_id, 1) is None


def test_tokens_that_changed_between_two_sessions_are_reported() -> None:
    """If they were not reported, the controller in this process would not know the changes."""
    old, new = (DelegationToken("kept", ALICE, ALICE, (), 1, end, 3) for end in (2, 3))
    gone = replace(old, token_id="gone")
    seen: list[tuple[str, DelegationToken | None]] = []
    cache = TokenCache(
        SECRET, new_salt=random.randbytes, seen=lambda *arguments: seen.append(arguments)
    )
    cache.replace_all({"gone": gone, "kept": old})
    cache.replace_all({"kept": new})
    assert seen == [("gone", gone), ("kept", old), ("gone", None), ("kept", new)]


def test_tokens_cannot_log_in_without_a_secret_key() -> None:
    cache = TokenCache(None, new_salt=random.randbytes)
    cache.replace_all({"t": DelegationToken("t", ALICE, ALICE, (), 1, 2, 3)})
    assert (cache.owner("t"), cache.scram_credential("t", 1)) == (None, None)
