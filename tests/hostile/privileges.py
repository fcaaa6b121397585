"""Attempts to do what the ACLs do not allow. The outcomes are Kafka's error codes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

from tests.hostile.attempt import Attempt, attempt
from tests.hostile.logins import delegation_token
from tests.hostile.requests import (
    CLUSTER,
    LOOT,
    READS,
    TARGET,
    TOPIC,
    WRITES,
    Request,
    acl,
    create_topics,
)
from tests.hostile.scram import Scram, plain
from tests.hostile.target import CONTROLLER, FOLLOWER, Target
from tests.hostile.wire import (
    TAGS,
    Field,
    Wire,
    array,
    blob,
    carray,
    ctext,
    flat,
    head,
    i8,
    i16,
    i32,
    i64,
    joined,
    text,
)

Open = Callable[[Target], AbstractContextManager[Wire]]


def alice(target: Target) -> Wire:
    """A connection of alice, who has rights on topics that begin with `alice-`."""
    wire = Wire(target.address("SECURE"), target.tls)
    assert plain(wire, b"\0alice\0alice-secret") == "0"
    return wire


IDENTITIES: Final[dict[str, Open]] = {
    "a stranger at the controller": lambda target: Wire(target.address("OPEN", CONTROLLER)),
    "a stranger at another broker": lambda target: Wire(target.address("OPEN", FOLLOWER)),
    "a stranger, drafted protocol": lambda target: Wire(target.address("DRAFT", CONTROLLER)),
    "mallory with a certificate": lambda target: Wire(target.address("MUTUAL"), target.mutual),
    "alice with a password": alice,
}


# The drafted protocol requires CREATE on Cluster instead of CREATE on the topic. Its DeleteTopics
# returns the error of a missing topic if the client lacks DESCRIBE on the topic.
DRAFTED: Final = {19: ("31",), 20: ("17",)}


def _code_of(open_: Open, request: Request) -> Callable[[Target], str]:
    def run(target: Target) -> str:
        with open_(target) as wire:
            response = wire.call(request.payload())
        return response if isinstance(response, str) else str(request.error_of(response))

    return run


def _privileges() -> list[Attempt]:
    return [
        attempt(
            f"rights, {identity}",
            request.name,
            _code_of(open_, request),
            str(request.denied),
            *(DRAFTED.get(request.key, ()) if "drafted" in identity else ()),
        )
        for identity, open_ in IDENTITIES.items()
        for request in (*WRITES, *READS)
    ]


def _creation(name: str) -> Request:
    return Request(name, 19, 4, False, lambda: create_topics(name), "4 4 s e", 29)


# Most of these names resemble alice's prefix. Error 17: the name is not valid for a topic.
NAMES: Final = (
    ("Alice-x", "29"),
    ("ALICE-X", "29"),
    ("alice", "29"),
    ("alice_x", "29"),
    (" alice-x", "29"),
    ("xalice-x", "29"),
    ("alice\u2010x", "29"),
    ("alic\u0435-x", "29"),  # a Cyrillic letter
    ("alice-../treasure", "17"),
    ("alice-/treasure", "17"),
    ("alice-\0", "17"),
    ("alice-" + "x" * 300, "17"),
    ("*", "29"),
    ("", "29"),
    (".", "29"),
    ("__consumer_offsets", "29"),
)


def _second_of_two(target: Target) -> str:
    """Validate a topic that alice may not create and one that she may; return both error codes."""
    topics = [flat(text(n), i32(1), i16(1), array(), array()) for n in (f"{LOOT}-a", "alice-b")]
    body = flat(array(*topics), i32(10_000), i8(1))
    with alice(target) as wire:
        response = wire.call(joined([*head(19, 4), *body]))
    assert isinstance(response, bytes)
    at, codes = 12, []
    for _ in topics:
        at += 2 + int.from_bytes(response[at : at + 2], "big")
        codes.append(struct.unpack_from(">h", response, at)[0])
        (length,) = struct.unpack_from(">h", response, at + 2)
        at += 4 + max(length, 0)
    return " ".join(map(str, sorted(codes)))


def _token_request(
    key: int, body: Callable[[Target], list[Field]], version: int = 1
) -> Callable[[Target], str]:
    def run(target: Target) -> str:
        with alice(target) as wire:
            response = wire.call(joined([*head(key, version, flexible=version > 1), *body(target)]))
        at = 5 if version > 1 else 4
        return (
            response
            if isinstance(response, str)
            else str(struct.unpack_from(">h", response, at)[0])
        )

    return run


def _for_admin(_: Target) -> list[Field]:
    return flat(ctext("User"), ctext("admin"), carray(), i64(60_000), TAGS)


def _of_stranger(_: Target) -> list[Field]:
    return flat(blob(bytes(32)), i64(-1))


def _token_on_plaintext(target: Target) -> str:
    with Wire(target.address("OPEN")) as wire:
        response = wire.call(joined(flat(head(38, 1), array(), i64(60_000))))
    assert isinstance(response, bytes)
    return str(struct.unpack_from(">h", response, 4)[0])


def _token_by_token(target: Target) -> str:
    """A client that logged in with a token cannot create another one."""
    token_id, secret = delegation_token(target, 600_000)
    login = Scram(user=token_id, password=secret, extensions=",tokenauth=true")
    for _ in range(100):  # The broker learns of the token a moment later.
        with Wire(target.address("SECURE"), target.tls) as wire:
            if login.run(wire) == "0":
                response = wire.call(joined(flat(head(38, 1), array(), i64(60_000))))
                assert isinstance(response, bytes)
                return str(struct.unpack_from(">h", response, 4)[0])
    return "no login"


def _grant(resource: int, name: str) -> Request:
    return Request(name, 30, 1, False, lambda: array(acl(resource, name)), "4 4 e", 31)


def privilege_attempts() -> list[Attempt]:
    """Return the attempts of this module."""
    tricks = "rights, beyond alice's own"
    return [
        *_privileges(),
        *(
            attempt(tricks, f"CreateTopics {name[:20]!r}", _code_of(alice, _creation(name)), right)
            for name, right in NAMES
        ),
        attempt(tricks, "a permitted and a forbidden topic", _second_of_two, "0 29"),
        attempt(tricks, "an ACL on her own topic", _code_of(alice, _grant(TOPIC, "alice-x")), "31"),
        attempt(tricks, "an ACL on treasure", _code_of(alice, _grant(TOPIC, TARGET)), "31"),
        attempt(tricks, "an ACL on the cluster", _code_of(alice, _grant(CLUSTER, "x")), "31"),
        attempt(tricks, "a token for admin", _token_request(38, _for_admin, 3), "65"),
        attempt(tricks, "a token on PLAINTEXT", _token_on_plaintext, "64"),
        attempt(tricks, "a token by a token", _token_by_token, "64"),
        attempt(tricks, "renew an unknown token", _token_request(39, _of_stranger), "62"),
        attempt(tricks, "expire an unknown token", _token_request(40, _of_stranger), "62"),
    ]
