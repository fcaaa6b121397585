"""Forged Envelopes of Kafka's protocol (key 58).

The outcome is the outer error code. If there is an inner response, `/` and its code follow.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from tests.hostile.attempt import Attempt, attempt
from tests.hostile.requests import LOOT, create_inner, create_topics, principal
from tests.hostile.scram import plain
from tests.hostile.target import CONTROLLER, FOLLOWER, PASSWORDS, Target
from tests.hostile.wire import CLOSED, TAGS, Wire, ctext, flat, head, joined, text

ADMIN, BOB = principal("User", "admin"), principal("User", "bob")
LOCALHOST: Final = b"\x7f\0\0\1"


def enveloped(inner: bytes, user: bytes | None = BOB, host: bytes | None = LOCALHOST) -> bytes:
    """An Envelope request."""
    return joined(flat(head(58, 0, flexible=True), ctext(inner), ctext(user), ctext(host), TAGS))


def outcome(response: bytes | str) -> str:
    """Return the outer error code and, if there is an inner response, its first error code."""
    if isinstance(response, str):
        return response
    length, at, shift = 0, 5, 0
    while True:
        length |= (response[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if response[at - 1] < 0x80:
            break
    size = max(length - 1, 0)
    inner = response[at : at + size]
    (outer,) = struct.unpack_from(">h", response, at + size)
    if not inner:
        return str(outer)
    name = 12 + 2 + int.from_bytes(inner[12:14], "big")  # in the response to CreateTopics v4
    return f"{outer}/{struct.unpack_from('>h', inner, name)[0]}"


def _sent(
    payload: bytes, user: str = "", listener: str = "INTERNAL", broker: int = CONTROLLER
) -> Callable[[Target], str]:
    """Send an Envelope as a user; without `user` there is no login."""

    def run(target: Target) -> str:
        tls = {"SECURE": target.tls, "MUTUAL": target.mutual}.get(listener)
        with Wire(target.address(listener, broker), tls) as wire:
            if user:
                assert plain(wire, f"\0{user}\0{PASSWORDS[user]}".encode()) == "0"
            return outcome(wire.call(payload))

    return run


LOOTING: Final = joined(create_inner())
AS_ADMIN: Final = enveloped(LOOTING, ADMIN)
# These clients lack CLUSTER_ACTION or use a listener that accepts no Envelopes.
WITHOUT_RIGHTS: Final = (
    ("a stranger on PLAINTEXT", _sent(AS_ADMIN, listener="OPEN"), CLOSED),
    ("a stranger, drafted protocol", _sent(AS_ADMIN, listener="DRAFT"), "31", CLOSED),
    ("mallory with a certificate", _sent(AS_ADMIN, listener="MUTUAL"), CLOSED),
    ("alice on SASL_SSL", _sent(AS_ADMIN, "alice", "SECURE"), CLOSED),
    ("admin on SASL_SSL", _sent(AS_ADMIN, "admin", "SECURE"), CLOSED),
    ("alice on the brokers' listener", _sent(AS_ADMIN, "alice"), "31"),
    ("alice at another broker", _sent(AS_ADMIN, "alice", broker=FOLLOWER), "31"),
    ("alice, as herself", _sent(enveloped(LOOTING, principal("User", "alice")), "alice"), "31"),
    ("no login on the brokers' listener", _sent(AS_ADMIN), CLOSED),
    ("alice, an empty Envelope", _sent(enveloped(b"", None, None), "alice"), "31", CLOSED),
)


def _forged(
    inner: bytes = LOOTING, user: bytes | None = BOB, host: bytes | None = LOCALHOST
) -> Callable[[Target], str]:
    """Send an Envelope as a client with CLUSTER_ACTION."""
    return _sent(enveloped(inner, user, host), "forwarder")


def _inner(key: int, version: int, body: bytes = b"") -> bytes:
    return joined(head(key, version)) + body


_CREATION: Final = joined(create_topics(LOOT))
FORGED: Final = (
    ("as bob, who has no rights", _forged(), "0/29"),
    ("as the principal Group:admin", _forged(user=principal("Group", "admin")), "0/29"),
    ("as ADMIN", _forged(user=principal("User", "ADMIN")), "0/29"),
    ("as the empty user", _forged(user=principal("User", "")), "0/29"),
    ("as User:User:admin", _forged(user=principal("User", "User:admin")), "0/29"),
    ("as the wildcard", _forged(user=principal("User", "*")), "0/29"),
    ("as admin with a trailing NUL", _forged(user=principal("User", "admin\0")), "0/29"),
    ("from an IPv6 address", _forged(host=bytes(15) + b"\1"), "0/29"),
    ("from another host", _forged(host=b"\x0a\0\0\1"), "0/29"),
    (
        "at a broker that is not the controller",
        _sent(enveloped(LOOTING), "forwarder", broker=2),
        "41",
    ),
    ("no principal", _forged(user=None), "97"),
    ("an empty principal", _forged(user=b""), "97"),
    ("half a principal", _forged(user=BOB[:4]), "97"),
    ("a principal of a newer version", _forged(user=b"\0\7" + BOB[2:]), "97"),
    ("a principal without type", _forged(user=principal("", "bob")), "97"),
    ("bytes after the principal", _forged(user=BOB + ADMIN), "97"),
    ("a principal that is not UTF-8", _forged(user=b"\0\0\5User\4\xff\xff\xff\0\0"), "97"),
    ("a principal of 1 MB", _forged(user=principal("User", "b" * 1_000_000)), "0/29"),
    ("no address", _forged(host=b""), "42"),
    ("an address of three bytes", _forged(host=LOCALHOST[:3]), "42"),
    ("an address of seventeen bytes", _forged(host=bytes(17)), "42"),
    ("a host name for an address", _forged(host=b"localhost"), "42"),
    ("no inner request", _forged(b""), "35", CLOSED),
    ("half an inner header", _forged(LOOTING[:5]), "35", CLOSED),
    ("half an inner body", _forged(LOOTING[:-7]), "35", CLOSED),
    ("bytes after the inner body", _forged(LOOTING + b"\0"), "0/29"),  # Kafka ignores them
    ("an inner array of two billion", _forged(_inner(19, 4, b"\x7f\xff\xff\xff")), "35", CLOSED),
    ("a nested Envelope", _forged(enveloped(LOOTING, ADMIN)), "42"),
    ("Metadata inside", _forged(_inner(3, 1, b"\0\0\0\0")), "42"),
    ("SaslHandshake inside", _forged(_inner(17, 1, joined(text("PLAIN")))), "42"),
    ("DescribeAcls inside", _forged(_inner(29, 1, bytes(16))), "42"),
    ("UpdateMetadata inside", _forged(_inner(6, 7, bytes(16))), "42", "35"),
    ("a drafted API inside", _forged(_inner(10001, 0, bytes(8))), "42", "35"),
    ("an unknown API inside", _forged(_inner(999, 0, bytes(8))), "42", "35"),
    ("a negative API inside", _forged(_inner(-1, 0, bytes(8))), "42", "35"),
    ("a newer version inside", _forged(_inner(19, 99, _CREATION)), "35"),
)


def envelope_attempts() -> list[Attempt]:
    """Return the attempts of this module."""
    return [
        *(attempt("Envelope without rights", name, run, *r) for name, run, *r in WITHOUT_RIGHTS),
        *(attempt("Envelope with CLUSTER_ACTION", name, run, *r) for name, run, *r in FORGED),
    ]
