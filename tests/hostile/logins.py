"""Attempts to log in without the right credential. The outcomes are Kafka's error codes.

`served` means that a request after the attempt was answered, so the attacker is logged in. Some
rows log in with the right credentials, to show that the attacker's own SASL and TLS work.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import ssl
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import jwt

from tests.hostile.attempt import Attempt, attempt
from tests.hostile.requests import create_topics
from tests.hostile.scram import (
    AUTHENTICATE,
    Scram,
    auth_bytes,
    error_of,
    handshake,
    is_served,
    plain,
    probe,
    token,
)
from tests.hostile.target import Target
from tests.hostile.wire import CLOSED, Wire, blob, framed, head, joined

FAILED, NO_MECHANISM, NOT_NOW = "58", "33", "34"
Login = Callable[[Wire], str]


def _outcome(wire: Wire, last: str) -> str:
    """Return `served` if Metadata now returns brokers, else `last`, the error of the login."""
    return "served" if is_served(wire.call(probe())) else last


def secure(login: Login) -> Callable[[Target], str]:
    """An attempt on the SASL_SSL listener."""

    def run(target: Target) -> str:
        with Wire(target.address("SECURE"), target.tls) as wire:
            return _outcome(wire, login(wire))

    return run


def _plain(data: bytes) -> Callable[[Target], str]:
    return secure(lambda wire: plain(wire, data))


def _frames(*payloads: bytes) -> Callable[[Target], str]:
    """Send requests one after another; the outcome is that of the last request."""

    def login(wire: Wire) -> str:
        last = CLOSED
        for payload in payloads:
            last = error_of(wire.call(payload))
        return last

    return secure(login)


def _scram(**changes: Any) -> Callable[[Target], str]:
    return secure(Scram(**changes).run)


_GOOD_PLAIN: Final = b"\0alice\0alice-secret"
PLAIN_ROWS: Final = (
    ("the right password", _plain(_GOOD_PLAIN), "served"),
    ("a wrong password", _plain(b"\0alice\0guess"), FAILED),
    ("an empty password", _plain(b"\0alice\0"), FAILED),
    ("no password field", _plain(b"\0alice"), FAILED),
    ("an empty token", _plain(b""), FAILED),
    ("only NUL bytes", _plain(b"\0\0"), FAILED),
    ("four fields", _plain(b"\0alice\0alice-secret\0admin"), FAILED),
    ("alice's password, authorized as admin", _plain(b"admin\0alice\0alice-secret"), FAILED),
    ("a user in capitals", _plain(b"\0ALICE\0alice-secret"), FAILED),
    ("a user with a trailing space", _plain(b"\0alice \0alice-secret"), FAILED),
    ("a password with a trailing space", _plain(b"\0alice\0alice-secret "), FAILED),
    ("the beginning of the password", _plain(b"\0alice\0alice-secre"), FAILED),
    ("another user's password", _plain(b"\0admin\0alice-secret"), FAILED),
    ("an unknown user", _plain(b"\0mallory\0alice-secret"), FAILED),
    ("the brokers' user without password", _plain(b"\0broker\0"), FAILED),
    ("a principal instead of a user", _plain(b"\0User:alice\0alice-secret"), FAILED),
    ("bytes that are not UTF-8", _plain(b"\0\xff\xfe\0\xff"), FAILED),
    ("a password of 64 KB", _plain(b"\0alice\0" + b"x" * 65_000), FAILED),
    ("a token of 200 KB", _plain(b"\0alice\0" + b"x" * 200_000), CLOSED),
    ("a full-width user name", _plain("\0ａｌｉｃｅ\0alice-secret".encode()), FAILED),
)
_SCRAM_FIRST: Final = token(Scram().first_message())
ORDER_ROWS: Final = (
    ("a request before the login", _frames(probe()), CLOSED),
    ("a token before the handshake", _frames(token(_GOOD_PLAIN)), CLOSED, NOT_NOW),
    ("a raw token before the handshake", _frames(_GOOD_PLAIN), CLOSED),
    ("a raw token with a wrong password", _frames(handshake("PLAIN", 0), b"\0alice\0x"), CLOSED),
    ("an unknown mechanism", _frames(handshake("GSSAPI")), NO_MECHANISM),
    ("a mechanism in small letters", _frames(handshake("plain")), NO_MECHANISM),
    ("SCRAM-SHA-1", _frames(handshake("SCRAM-SHA-1")), NO_MECHANISM),
    ("OAUTHBEARER where it is off", _frames(handshake("OAUTHBEARER")), NO_MECHANISM),
    ("an empty mechanism", _frames(handshake("")), NO_MECHANISM),
    ("a mechanism of 30 KB", _frames(handshake("P" * 30_000)), NO_MECHANISM),
    ("a second handshake", _frames(handshake("PLAIN"), handshake("PLAIN")), CLOSED, NOT_NOW),
    # Kafka answers with an error response. For Metadata, an error response is empty.
    ("a request instead of a token", _frames(handshake("PLAIN"), probe()), "0", CLOSED),
    ("a token of a newer version", _frames(handshake("PLAIN"), token(_GOOD_PLAIN, 99)), CLOSED),
    ("PLAIN's token for SCRAM", _frames(handshake("SCRAM-SHA-256"), token(_GOOD_PLAIN)), FAILED),
    (
        "an Envelope before the login",
        _frames(joined([*head(58, 0, flexible=True), *blob(bytes(20))])),
        CLOSED,
    ),
    (
        "SCRAM's first message twice",
        _frames(handshake("SCRAM-SHA-256"), _SCRAM_FIRST, _SCRAM_FIRST),
        FAILED,
    ),
    (
        "a switch to PLAIN within SCRAM",
        _frames(handshake("SCRAM-SHA-256"), _SCRAM_FIRST, token(_GOOD_PLAIN)),
        FAILED,
    ),
    (
        "a handshake within SCRAM",
        _frames(handshake("SCRAM-SHA-256"), _SCRAM_FIRST, handshake("PLAIN")),
        CLOSED, NOT_NOW,
    ),
    (
        "SCRAM's last message first",
        _frames(handshake("SCRAM-SHA-256"), token(b"c=biws,r=x,p=AAAA")),
        FAILED,
    ),
    (
        "a token length beyond the frame",
        _frames(handshake("PLAIN"), joined(head(AUTHENTICATE, 1)) + b"\x7f\xff\xff\xff"),
        CLOSED,
    ),
    (
        "a negative token length",
        _frames(handshake("PLAIN"), joined(head(AUTHENTICATE, 1)) + b"\xff\xff\xff\xfe"),
        CLOSED,
    ),
)  # fmt: skip
SCRAM_ROWS: Final = (
    ("the right password", _scram(), "served"),
    ("the right password, SHA-512", _scram(mechanism="SCRAM-SHA-512"), "served"),
    ("a wrong password", _scram(password="guess"), FAILED),
    ("an empty password", _scram(password=""), FAILED),
    ("an unknown user", _scram(user="mallory"), FAILED),
    ("another user's password", _scram(user="admin"), FAILED),
    ("no user", _scram(user=""), FAILED),
    ("a user with a raw comma", _scram(user="alice,admin"), FAILED),
    ("a user with a raw equals sign", _scram(user="ali=ce"), FAILED),
    ("a user with an escaped NUL", _scram(user="alice\0"), FAILED),
    ("no nonce", _scram(nonce=""), FAILED),
    ("a nonce with another server part", _scram(nonce_of=lambda r: r[:-4] + "AAAA"), FAILED),
    ("a nonce without server part", _scram(nonce_of=lambda r: r[:8]), FAILED),
    ("a longer nonce", _scram(nonce_of=lambda r: r + "A"), FAILED),
    ("another client part of the nonce", _scram(nonce_of=lambda r: "x" + r[1:]), FAILED),
    ("a proof of zeros", _scram(proof_of=lambda p: bytes(len(p))), FAILED),
    ("an empty proof", _scram(proof_of=lambda _: b""), FAILED, CLOSED),
    ("half a proof", _scram(proof_of=lambda p: p[:16]), FAILED, CLOSED),
    ("a proof with one byte more", _scram(proof_of=lambda p: p + b"\0"), FAILED, CLOSED),
    ("a proof with one bit changed", _scram(proof_of=lambda p: bytes([p[0] ^ 1]) + p[1:]), FAILED),
    ("no proof", _scram(final=lambda m: m.partition(b",p=")[0]), FAILED),
    ("a proof that is not base64", _scram(final=lambda m: m.partition(b",p=")[0] + b",p=?"), FAILED),
    ("a proof of 60 KB", _scram(final=lambda m: m + b"A" * 60_000), FAILED),
    ("a last message that is not UTF-8", _scram(final=lambda m: b"\xff" + m), FAILED),
    ("channel binding requested", _scram(gs2="p=tls-unique,,"), FAILED),
    ("authorized as admin", _scram(gs2="n,a=admin,"), FAILED),
    ("a mandatory extension", _scram(first=lambda m: m.replace(b"n=alice", b"m=x,n=alice")), FAILED),
    ("tokenauth with a password", _scram(extensions=",tokenauth=true"), FAILED),
    ("a first message of 60 KB", _scram(nonce="x" * 60_000), FAILED, "served"),
    (
        "SHA-512's message under SHA-256",
        _scram(proof_of=lambda p: p + p),
        FAILED, CLOSED,
    ),
    (
        "another channel binding in the last message",
        _scram(final=lambda m: b"c=eSws" + m[6:]),
        FAILED,
    ),
)  # fmt: skip


def _replayed(target: Target) -> str:
    """Send both messages of an earlier, successful login again."""
    seen: list[bytes] = []

    def keep(message: bytes) -> bytes:
        seen.append(message)
        return message

    honest = Scram(first=keep, final=keep)
    with Wire(target.address("SECURE"), target.tls) as wire:
        assert _outcome(wire, honest.run(wire)) == "served"
    first, final = seen
    replay = dataclasses.replace(honest, first=lambda _: first, final=lambda _: final)
    return secure(replay.run)(target)


def _pipelined(*, login: bytes) -> Callable[[Target], str]:
    """Send a wrong login and CreateTopics in one packet. The outcome `created` is a finding."""
    creation = joined([*head(19, 4), *create_topics("alice-pipelined")])

    def run(target: Target) -> str:
        with Wire(target.address("INTERNAL")) as wire:
            wire.raw(framed(handshake("PLAIN")) + framed(token(login)) + framed(creation))
            wire.respond()
            login_error = error_of(wire.respond())
            return "created" if isinstance(wire.respond(), bytes) else login_error

    return run


def _again(data: bytes) -> Callable[[Target], str]:
    """Log in as alice, then log in again with `data` on the same connection."""

    def run(target: Target) -> str:
        with Wire(target.address("SECURE"), target.tls) as wire:
            assert plain(wire, _GOOD_PLAIN) == "0"
            return plain(wire, data)

    return run


REUSE_ROWS: Final = (
    ("a recorded SCRAM login", _replayed, FAILED),
    ("a creation after a wrong login", _pipelined(login=b"\0alice\0guess"), FAILED),
    ("a second login, wrong password", _again(b"\0alice\0guess"), NOT_NOW),
    ("a second login as another user", _again(b"\0admin\0admin-secret"), NOT_NOW),
)


def _oauth(
    make: Callable[[Target], str], before: str = "n,,", kind: str = "Bearer"
) -> Callable[[Target], str]:
    def run(target: Target) -> str:
        with Wire(target.address("TOKENS")) as wire:
            response = wire.call(handshake("OAUTHBEARER"))
            assert error_of(response) == "0"
            data = f"{before}\x01auth={kind} {make(target)}\x01\x01".encode()
            response = wire.call(token(data))
            result = error_of(response)
            if result == "0" and isinstance(response, bytes) and auth_bytes(response):
                result = FAILED  # the server describes the failure in its token
            return _outcome(wire, result)

    return run


def _claims(**changes: Any) -> dict[str, Any]:
    now = int(time.time())
    good = {"sub": "alice", "iss": "operator", "aud": "kafka", "iat": now - 5, "exp": now + 600}
    return {name: value for name, value in {**good, **changes}.items() if value is not None}


def _signed(**changes: Any) -> Callable[[Target], str]:
    return lambda target: jwt.encode(
        _claims(**changes), target.token_key, "RS256", {"kid": "operator"}
    )


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def _unsigned(header: dict[str, str], signature: str = "") -> Callable[[Target], str]:
    return lambda _: f"{_part(header)}.{_part(_claims(sub='admin'))}.{signature}"


def _confused(target: Target) -> str:
    """A token signed with HS256; the secret is the beginning of the public key's file."""
    public = (target.folder.parent / "keys.json").read_bytes()
    return jwt.encode(_claims(sub="admin"), public[:64], "HS256", {"kid": "operator"})


def _swapped(target: Target) -> str:
    """A token with changed claims and the signature of the original claims."""
    first, _, signature = _signed()(target).split(".")
    return f"{first}.{_part(_claims(sub='admin'))}.{signature}"


def _by_url(target: Target) -> str:
    """A token whose header names the attacker's own key."""
    return jwt.encode(
        _claims(sub="admin"), "x" * 64, "HS256",
        {"kid": "operator", "jku": "file:///tmp/keys.json", "jwk": {"kty": "oct", "k": "eHg"}},
    )  # fmt: skip


TOKEN_ROWS: Final = (
    ("a signed token", _oauth(_signed()), "served"),
    ("a token that expired in 2023", _oauth(_signed(exp=1_700_000_000)), FAILED),
    ("a token without expiry", _oauth(_signed(exp=None)), FAILED),
    ("a token for another audience", _oauth(_signed(aud="zookeeper")), FAILED),
    ("a token of another issuer", _oauth(_signed(iss="mallory")), FAILED),
    ("a token without subject", _oauth(_signed(sub=None)), FAILED),
    ("a token of the future", _oauth(_signed(iat=4_000_000_000, nbf=4_000_000_000)), FAILED),
    ("alg none", _oauth(_unsigned({"alg": "none"})), FAILED),
    ("alg None, with the key's id", _oauth(_unsigned({"alg": "None", "kid": "operator"})), FAILED),
    ("no signature", _oauth(_unsigned({"alg": "RS256", "kid": "operator"})), FAILED),
    ("a wrong signature", _oauth(_unsigned({"alg": "RS256", "kid": "operator"}, "AAAA")), FAILED),
    ("HS256 with the public key", _oauth(_confused), FAILED),
    ("a signature of other claims", _oauth(_swapped), FAILED),
    ("a key at the attacker's address", _oauth(_by_url), FAILED),
    ("a key id with a path", _oauth(_unsigned({"alg": "RS256", "kid": "../../keys"})), FAILED),
    ("no token", _oauth(lambda _: ""), FAILED),
    ("noise", _oauth(lambda _: "." * 40_000), FAILED),
    ("a token authorized as admin", _oauth(_signed(), before="n,a=admin,"), FAILED),
    ("Basic instead of Bearer", _oauth(_signed(), kind="Basic"), FAILED, CLOSED),
    ("PLAIN on the token listener", lambda t: _on_tokens(t, handshake("PLAIN")), NO_MECHANISM),
)


def _on_tokens(target: Target, payload: bytes) -> str:
    with Wire(target.address("TOKENS")) as wire:
        return _outcome(wire, error_of(wire.call(payload)))


def delegation_token(target: Target, lifetime_ms: int) -> tuple[str, str]:
    """As alice, create a token; return its id and its HMAC in base64."""
    with Wire(target.address("SECURE"), target.tls) as wire:
        assert plain(wire, _GOOD_PLAIN) == "0"
        body = joined(head(38, 1)) + (0).to_bytes(4, "big") + lifetime_ms.to_bytes(8, "big")
        response = wire.call(body)
    assert isinstance(response, bytes)
    fields = response[6:]
    for _ in range(2):  # the owner's type and name
        fields = fields[2 + int.from_bytes(fields[:2], "big") :]
    fields = fields[24:]  # three timestamps
    size = int.from_bytes(fields[:2], "big")
    token_id, fields = fields[2 : 2 + size], fields[2 + size :]
    size = int.from_bytes(fields[:4], "big")
    return token_id.decode(), base64.b64encode(fields[4 : 4 + size]).decode()


def _with_token(lifetime_ms: int, wait_s: float, **changes: Any) -> Callable[[Target], str]:
    """Create a token, wait, log in. If the login must succeed, retry until the token is known."""

    def run(target: Target) -> str:
        token_id, secret = delegation_token(target, lifetime_ms)
        time.sleep(wait_s)
        login = Scram(**{
            "user": token_id, "password": secret, "extensions": ",tokenauth=true", **changes,
        })  # fmt: skip
        deadline = time.monotonic() + 5
        while (result := secure(login.run)(target)) != "served" and not changes and not wait_s:
            if time.monotonic() > deadline:  # The broker learns of the token a moment later.
                break
        return result

    return run


DELEGATION_ROWS: Final = (
    ("a delegation token", _with_token(600_000, 0), "served"),
    ("a token with a wrong HMAC", _with_token(600_000, 0, password="x"), FAILED),
    ("a token without tokenauth", _with_token(600_000, 0, extensions=""), FAILED),
    ("tokenauth=false", _with_token(600_000, 0, extensions=",tokenauth=false"), FAILED),
    ("an unknown token", _with_token(600_000, 0, user="AAAAAAAAAAAAAAAAAAAAAA"), FAILED),
    # Kafka accepts the login, with a session lifetime of 0, but no request after it.
    ("an expired token", _with_token(1, 0.05), "0", FAILED),
)


def _tls(**options: Any) -> Callable[[Target], str]:
    """Connect to the SSL listener, which requires a certificate, and send a request."""

    def run(target: Target) -> str:
        context = _context(target, **options)
        try:
            with Wire(target.address("MUTUAL"), context) as wire:
                return _outcome(wire, CLOSED)
        except OSError:
            return CLOSED

    return run


def _context(
    target: Target, user: str = "", *, foreign: bool = False, version: ssl.TLSVersion | None = None
) -> ssl.SSLContext:
    context = target.files.client_tls(user, foreign=foreign)
    if version is not None:
        context.minimum_version = context.maximum_version = version
    return context


def _without_tls(listener: str, data: bytes) -> Callable[[Target], str]:
    def run(target: Target) -> str:
        with Wire(target.address(listener), timeout_s=5) as wire:
            wire.raw(data)
            wire.half_close()
            response = wire.rest()
            return "served" if b"alice" in response or b"treasure" in response else CLOSED

    return run


TLS_ROWS: Final = (
    ("a certificate of the authority", _tls(user="mallory"), "served"),
    ("no certificate", _tls(), CLOSED),
    ("a certificate of another authority", _tls(user="admin", foreign=True), CLOSED),
    ("TLS 1.1", _tls(user="mallory", version=ssl.TLSVersion.TLSv1_1), CLOSED),
    ("a request without TLS on SSL", _without_tls("MUTUAL", framed(probe())), CLOSED),
    ("a request without TLS on SASL_SSL", _without_tls("SECURE", framed(probe())), CLOSED),
    ("half a ClientHello", _without_tls("MUTUAL", b"\x16\x03\x01\x02\x00\x01\x00"), CLOSED),
    ("a TLS record of 64 KB", _without_tls("MUTUAL", b"\x16\x03\x03\xff\xff" + bytes(65535)), CLOSED),
    ("a heartbeat record", _without_tls("MUTUAL", b"\x18\x03\x02\x00\x03\x01\x40\x00"), CLOSED),
    ("HTTP on a Kafka listener", _without_tls("OPEN", b"GET / HTTP/1.1\r\n\r\n"), CLOSED),
)  # fmt: skip


def _rows(group: str, rows: Sequence[Any]) -> list[Attempt]:
    return [attempt(group, name, run, *right) for name, run, *right in rows]


def login_attempts() -> list[Attempt]:
    """Return the attempts of this module."""
    return [
        *_rows("login, PLAIN", PLAIN_ROWS),
        *_rows("login, order of messages", ORDER_ROWS),
        *_rows("login, SCRAM", SCRAM_ROWS),
        *_rows("login, replay and reuse", REUSE_ROWS),
        *_rows("login, signed tokens", TOKEN_ROWS),
        *_rows("login, delegation tokens", DELEGATION_ROWS),
        *_rows("login, TLS", TLS_ROWS),
    ]
