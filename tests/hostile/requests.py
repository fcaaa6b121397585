"""The attacker's requests, field by field, and the place of the error code in their responses.

`error_at` leads to the first error code of the response: a number skips that many bytes, `s` skips
a string, `c` skips a compact string, and `e` reads the code. The layouts are those of Kafka's
message definitions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, NamedTuple

from tests.hostile.wire import (
    TAGS,
    Field,
    array,
    blob,
    carray,
    ctext,
    f64,
    flat,
    head,
    i8,
    i16,
    i32,
    i64,
    joined,
    text,
)

LOOT: Final = "loot"  # a topic that the attacker tries to create
TARGET: Final = "treasure"  # a topic that exists and belongs to others
TOPIC, CLUSTER, LITERAL, PREFIXED, ALL, ALLOW = 2, 4, 3, 4, 2, 3


class Request(NamedTuple):
    """One request of the attacker."""

    name: str
    key: int
    version: int
    flexible: bool
    body: Callable[[], list[Field]]
    error_at: str
    denied: int  # Kafka's error code for a user without rights

    def fields(self) -> list[Field]:
        return [*head(self.key, self.version, flexible=self.flexible), *self.body()]

    def payload(self) -> bytes:
        return joined(self.fields())

    def error_of(self, response: bytes) -> int:
        """Return the first error code in a response with its header."""
        at = 4
        for step in self.error_at.split():
            if step == "s":
                (length,) = struct.unpack_from(">h", response, at)
                at += 2 + max(length, 0)
            elif step == "c":
                at += response[at]
            elif step != "e":
                at += int(step)
        (code,) = struct.unpack_from(">h", response, at)
        return int(code)


def create_topics(name: str, *, partitions: int = 1) -> list[Field]:
    topic = flat(text(name), i32(partitions), i16(1), array(), array())
    return flat(array(topic), i32(10_000), i8(0))


def acl(resource: int, name: str) -> list[Field]:
    return flat(
        i8(resource), text(name), i8(LITERAL), text("User:*"), text("*"), i8(ALL), i8(ALLOW)
    )


def _any_acl() -> list[Field]:
    return flat(i8(1), text(None), i8(1), text(None), text(None), i8(1), i8(1))


def _config(resource: int, name: str, key: str, value: str) -> list[Field]:
    return flat(array(flat(i8(resource), text(name), array([*text(key), *text(value)]))), i8(0))


def _increment(resource: int, name: str, key: str, value: str) -> list[Field]:
    entry = flat(text(key), i8(0), text(value))
    return flat(array(flat(i8(resource), text(name), array(entry))), i8(0))


def _scram(user: str) -> list[Field]:
    upsertion = flat(ctext(user), i8(1), i32(4096), ctext(b"saltsaltsalt"), ctext(bytes(32)), TAGS)
    return flat(carray(), carray(upsertion), TAGS)


def _quota(entity: str, name: str) -> list[Field]:
    entry = flat(
        array([*text(entity), *text(name)]),
        array(flat(text("controller_mutation_rate"), f64(1e9), i8(0))),
    )
    return flat(array(entry), i8(0))


def _reassign() -> list[Field]:
    partition = flat(i32(0), carray([i32(2)]), TAGS)
    topic = flat(ctext(TARGET), carray(partition), TAGS)
    return flat(i32(10_000), carray(topic), TAGS)


_DENIED_TOPIC, _DENIED_CLUSTER = 29, 31

WRITES: Final = (
    Request("CreateTopics", 19, 4, False, lambda: create_topics(LOOT), "4 4 s e", _DENIED_TOPIC),
    Request(
        "CreateTopics, dry run", 19, 4, False,
        lambda: [*create_topics(LOOT)[:-1], i8(1)], "4 4 s e", _DENIED_TOPIC,
    ),
    Request(
        "DeleteTopics", 20, 1, False,  # the newest version that is the same in both dialects
        lambda: flat(array(text(TARGET)), i32(10_000)), "4 4 s e", _DENIED_TOPIC,
    ),
    Request(
        "DeleteRecords", 21, 0, False,
        lambda: flat(array([*text(TARGET), *array([i32(0), i64(0)])]), i32(10_000)),
        "4 4 s 4 4 8 e", _DENIED_TOPIC,
    ),
    Request(
        "CreateAcls, on Cluster", 30, 1, False,
        lambda: array(acl(CLUSTER, "kafka-cluster")), "4 4 e", _DENIED_CLUSTER,
    ),
    Request(
        "CreateAcls, on a topic", 30, 1, False,
        lambda: array(acl(TOPIC, TARGET)), "4 4 e", _DENIED_CLUSTER,
    ),
    Request("DeleteAcls", 31, 1, False, lambda: array(_any_acl()), "4 4 e", _DENIED_CLUSTER),
    Request(
        "AlterConfigs, topic", 33, 1, False,
        lambda: _config(TOPIC, TARGET, "retention.ms", "1"), "4 4 e", _DENIED_TOPIC,
    ),
    Request(
        "AlterConfigs, all brokers", 33, 1, False,
        lambda: _config(CLUSTER, "", "log.cleaner.threads", "2"), "4 4 e", _DENIED_CLUSTER,
    ),
    Request(
        "IncrementalAlterConfigs, topic", 44, 0, False,
        lambda: _increment(TOPIC, TARGET, "retention.ms", "1"), "4 4 e", _DENIED_TOPIC,
    ),
    Request(
        "IncrementalAlterConfigs, all brokers", 44, 0, False,
        lambda: _increment(CLUSTER, "", "max.connections", "1"), "4 4 e", _DENIED_CLUSTER,
    ),
    Request(
        "IncrementalAlterConfigs, logger", 44, 0, False,
        lambda: _increment(8, "1", "kafka", "TRACE"), "4 4 e", _DENIED_CLUSTER,
    ),
    Request(
        "CreatePartitions", 37, 1, False,
        lambda: flat(array(flat(text(TARGET), i32(9), i32(-1))), i32(10_000), i8(0)),
        "4 4 s e", _DENIED_TOPIC,
    ),
    Request(
        "AlterReplicaLogDirs", 34, 1, False,
        lambda: array([*text("/tmp/loot"), *array([*text(TARGET), *array([i32(0)])])]),
        "4 4 s 4 4 e", _DENIED_CLUSTER,
    ),
    Request(
        "ElectLeaders", 43, 1, False,
        lambda: flat(i8(1), array([*text(TARGET), *array([i32(0)])]), i32(10_000)),
        "4 e", _DENIED_CLUSTER,
    ),
    Request("AlterPartitionReassignments", 45, 0, True, _reassign, "1 4 e", _DENIED_CLUSTER),
    Request(
        "AlterClientQuotas, user", 49, 0, False,
        lambda: _quota("user", "admin"), "4 4 e", _DENIED_CLUSTER,
    ),
    Request(
        "AlterClientQuotas, ip", 49, 0, False,
        lambda: _quota("ip", "127.0.0.1"), "4 4 e", _DENIED_CLUSTER,
    ),
    Request(
        "AlterUserScramCredentials, admin's", 51, 0, True,
        lambda: _scram("admin"), "1 4 1 c e", _DENIED_CLUSTER,
    ),
    Request(
        "AlterUserScramCredentials, a new user", 51, 0, True,
        lambda: _scram(LOOT), "1 4 1 c e", _DENIED_CLUSTER,
    ),
    Request(
        "UpdateFeatures", 57, 0, True,
        lambda: flat(i32(10_000), carray(flat(ctext("loot"), i16(1), i8(0), TAGS)), TAGS),
        "1 4 e", _DENIED_CLUSTER,
    ),
)  # fmt: skip
READS: Final = (
    Request("DescribeAcls", 29, 1, False, _any_acl, "4 e", _DENIED_CLUSTER),
    Request(
        "DescribeUserScramCredentials", 50, 0, True,
        lambda: flat(carray(), TAGS), "1 4 e", _DENIED_CLUSTER,
    ),
    Request(
        "DescribeClientQuotas", 48, 0, False,
        lambda: flat(array(), i8(0)), "4 e", _DENIED_CLUSTER,
    ),
    Request(
        "DescribeConfigs, broker", 32, 1, False,
        lambda: flat(array(flat(i8(CLUSTER), text("1"), i32(-1))), i8(1)), "4 4 e", _DENIED_CLUSTER,
    ),
    Request(
        "DescribeConfigs, topic", 32, 1, False,
        lambda: flat(array(flat(i8(TOPIC), text(TARGET), i32(-1))), i8(1)), "4 4 e", _DENIED_TOPIC,
    ),
    Request(
        "ListPartitionReassignments", 46, 0, True,
        lambda: flat(i32(10_000), ctext(None), TAGS), "1 4 e", _DENIED_CLUSTER,
    ),
)  # fmt: skip
# Only mutations.py uses these requests, as frames to damage. Most of them need no right.
HARMLESS: Final = (
    Request("ApiVersions", 18, 0, False, list, "e", 0),
    Request(
        "ApiVersions, flexible", 18, 3, True,
        lambda: flat(ctext("hostile"), ctext("1"), TAGS), "e", 0,
    ),
    Request("SaslHandshake", 17, 1, False, lambda: text("PLAIN"), "e", 0),
    Request("SaslAuthenticate", 36, 1, False, lambda: blob(b"\0admin\0guess"), "e", 0),
    Request(
        "DescribeCluster", 60, 0, True, lambda: flat(i8(0), TAGS), "1 4 e", 0,
    ),
    Request("ListGroups", 16, 1, False, list, "4 e", 0),
    Request(
        "FindCoordinator", 10, 1, False,
        lambda: flat(text("loot"), i8(0)), "4 e", 30,
    ),
    Request(
        "Envelope", 58, 0, True,
        lambda: flat(ctext(joined(create_inner())), ctext(principal("User", "admin")),
                     ctext(b"\x7f\0\0\1"), TAGS),
        "", 0,
    ),
)  # fmt: skip


def create_inner(name: str = LOOT) -> list[Field]:
    """CreateTopics v4 with its header, as an Envelope holds it."""
    return [*head(19, 4), *create_topics(name)]


def principal(kind: str, name: str) -> bytes:
    """Kafka's DefaultPrincipalData, version 0."""
    return joined(flat(i16(0), ctext(kind), ctext(name), i8(0), TAGS))
