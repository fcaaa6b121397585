"""Requests that write one test object, through every write API.

An object is a topic with an ACL, a quota, a SCRAM credential and a delegation token. The topic is
configured, gets more partitions, is reassigned and elects a leader. The token is renewed.
UpdateFeatures is left out: with ZooKeeper it never writes.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.raw_client.codec import Body, create_topic_body

TOPIC: Final = 2
VALIDATED: Final = "-validated"  # the end of the name of a topic that must never exist
TOKEN_LIFETIME_MS: Final = 86_400_000  # longer than any run
_ELECTION_NOT_NEEDED: Final = 84
_LITERAL, _READ, _ALLOW, _SHA_256 = 3, 3, 3, 1
_NO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"  # the topic id in a request that has the topic's name


class Write(NamedTuple):
    """One request about one object, and the fact that brokers must report if it succeeds.

    A fact is, for example, a number of partitions or a quota.
    """

    kind: str  # of the fact: `partitions`, `config`, `acl`, …
    key: ApiKey
    version: int
    body: Body
    code: Callable[[Body], int]  # the error code in the response
    value: object  # the fact after a success; None: the fact no longer exists
    # The request's elements, named as in the event `request_decided` (docs/events.md), for the
    # clients' history.
    elements: tuple[str, ...] = ()


def _first(*path: str) -> Callable[[Body], int]:
    """Return a function that reads a response's error code.

    The function follows the named lists, takes the first element of each, and stops early at a
    non-zero code.
    """

    def code(body: Body) -> int:
        for name in path:
            if body.get("errorCode"):
                return int(body["errorCode"])
            body = body[name][0]
        return int(body["errorCode"])

    return code


def _elected(body: Body) -> int:
    code = _first("replicaElectionResults", "partitionResult")(body)
    return 0 if code == _ELECTION_NOT_NEEDED else code


def _config(name: str, value: str, **operation: int) -> Body:
    entry = {"name": "retention.ms", "value": value, **operation}
    resource = {"resourceType": TOPIC, "resourceName": name, "configs": [entry]}
    return {"resources": [resource], "validateOnly": False}


def _acl(name: str) -> Body:
    return {
        "resourceType": TOPIC,
        "resourceName": name,
        "resourcePatternType": _LITERAL,
        "principal": f"User:{name}",
        "host": "*",
        "operation": _READ,
        "permissionType": _ALLOW,
    }


def _acl_element(name: str) -> tuple[str]:
    return (f"TOPIC:LITERAL:{name}",)


def _quota_element(name: str) -> tuple[str]:
    return (f"0:user={name}",)


def acl_filter(name: str | None) -> Body:
    """Return a filter for all ACLs of a topic, or of every topic (None)."""
    return {
        "resourceTypeFilter": TOPIC,
        "resourceNameFilter": name,
        "patternTypeFilter": _LITERAL,
        "principalFilter": None,
        "hostFilter": None,
        "operation": 1,
        "permissionType": 1,
    }


def _quota(name: str, value: float | None) -> Body:
    op = {"key": "producer_byte_rate", "value": value or 0.0, "remove": value is None}
    entry = {"entity": [{"entityType": "user", "entityName": name}], "ops": [op]}
    return {"entries": [entry], "validateOnly": False}


def _scram(name: str, iterations: int) -> Body:
    upsertion = {
        "name": name,
        "mechanism": _SHA_256,
        "iterations": iterations,
        "salt": base64.b64encode(name.encode()).decode(),
        "saltedPassword": base64.b64encode(bytes(32)).decode(),
    }
    return {"deletions": [], "upsertions": [upsertion]}


def creations(name: str, number: int, replica: int) -> Iterator[Write]:
    """Yield the requests that create an object; its first partition moves to `replica`."""
    topic, config = (name,), (f"{TOPIC}:{name}",)
    partition = {"partitionIndex": 0, "replicas": [replica]}
    reassignment = {"timeoutMs": 30_000, "topics": [{"name": name, "partitions": [partition]}]}
    new_partitions = {
        "topics": [{"name": name, "count": 3, "assignments": None}],
        "timeoutMs": 30_000,
        "validateOnly": False,
    }
    election = {
        "electionType": 0,
        "topicPartitions": [{"topic": name, "partitions": [1]}],
        "timeoutMs": 30_000,
    }
    renewer = {"principalType": "User", "principalName": name}
    token = {
        "ownerPrincipalType": None,
        "ownerPrincipalName": None,
        "renewers": [renewer],
        "maxLifetimeMs": TOKEN_LIFETIME_MS,
    }
    responses, results, code = _first("responses"), _first("results"), _first()
    body = {**create_topic_body(name, 2, 2), "timeoutMs": 30_000}
    retention, rate, rounds = str(10_000 + number), float(1000 + number), 4096 + number
    yield Write("partitions", ApiKey.CREATE_TOPICS, 7, body, _first("topics"), 2, topic)
    dry_run = {**create_topic_body(f"{name}{VALIDATED}", 1, 1), "validateOnly": True}
    yield Write("validated", ApiKey.CREATE_TOPICS, 7, dry_run, _first("topics"), None)
    yield Write(
        "config",
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        1,
        _config(name, retention, configOperation=0),
        responses,
        retention,
        config,
    )
    longer = f"{retention}0"
    old = _config(name, longer)
    yield Write("config", ApiKey.ALTER_CONFIGS, 2, old, responses, longer, config)
    yield Write("partitions", ApiKey.CREATE_PARTITIONS, 3, new_partitions, results, 3, topic)
    yield Write(
        "replicas",
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        0,
        reassignment,
        _first("responses", "partitions"),
        (replica,),
        (f"{name}:0",),
    )
    yield Write("leader", ApiKey.ELECT_LEADERS, 2, election, _elected, None)
    acl, quota, scram = {"creations": [_acl(name)]}, _quota(name, rate), _scram(name, rounds)
    entries, acl_of, quota_of = _first("entries"), _acl_element(name), _quota_element(name)
    yield Write("acl", ApiKey.CREATE_ACLS, 3, acl, results, 1, acl_of)
    yield Write("quota", ApiKey.ALTER_CLIENT_QUOTAS, 1, quota, entries, rate, quota_of)
    yield Write("scram", ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, scram, results, rounds, topic)
    yield Write("token", ApiKey.CREATE_DELEGATION_TOKEN, 3, token, code, 1)


def renewal(hmac: str) -> Write:
    """Return the request that renews a token for its whole remaining lifetime."""
    body = {"hmac": hmac, "renewPeriodMs": 10 * TOKEN_LIFETIME_MS}
    return Write("renewed", ApiKey.RENEW_DELEGATION_TOKEN, 2, body, _first(), True)


def deletions(name: str, hmac: str | None) -> Iterator[Write]:
    """Yield the requests that delete an object; `hmac` identifies its token (None: unknown)."""
    credential = {"name": name, "mechanism": _SHA_256}
    scram = {"deletions": [credential], "upsertions": []}
    delete = {"topics": [{"name": name, "topicId": _NO_ID}], "timeoutMs": 30_000}
    results = _first("results")
    acls = {"filters": [acl_filter(name)]}
    quota, user = _quota(name, None), ApiKey.ALTER_USER_SCRAM_CREDENTIALS
    entries, quota_of = _first("entries"), _quota_element(name)
    # `elements` is empty: after a creation with an unknown outcome, the filter may match no ACL.
    yield Write("acl", ApiKey.DELETE_ACLS, 3, acls, _first("filterResults"), None)
    yield Write("quota", ApiKey.ALTER_CLIENT_QUOTAS, 1, quota, entries, None, quota_of)
    yield Write("scram", user, 0, scram, results, None, (name,))
    if hmac is not None:
        expiry = {"hmac": hmac, "expiryTimePeriodMs": -1}
        yield Write("token", ApiKey.EXPIRE_DELEGATION_TOKEN, 2, expiry, _first(), None)
    yield Write("partitions", ApiKey.DELETE_TOPICS, 6, delete, _first("responses"), None, (name,))
