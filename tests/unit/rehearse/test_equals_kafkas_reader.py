"""The scan tells from a znode's content what Kafka's own decoders do with it.

`tests/data/migration_reader.jsonl.gz` has contents, and what the classes of Kafka 3.9.1 made of
them (3.9.2 made the same): a value, null, or an exception.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from rehearse.checks import RULES
from rehearse.cluster import Cluster, ServerProperties, State, java_int, read_configs, read_state
from rehearse.passwords import is_encoded_with, is_password
from rehearse.seeds import TOKEN, healthy
from rehearse.znodes import Znode, ZnodeTree

DATA = Path(__file__).parents[2] / "data" / "migration_reader.jsonl.gz"
FIND = {rule.id: rule.find for rule in RULES}
RAISES = object()


def rows_by_kind() -> dict[str, list[dict[str, Any]]]:
    kinds = defaultdict(list)
    with gzip.open(DATA, "rt") as lines:
        for line in lines:
            row = json.loads(line)
            kinds[row["kind"]].append(row)
    return kinds


ROWS = rows_by_kind()


def cases(kind: str) -> list[tuple[bytes | None, str, Any]]:
    """Return content or text, and what Kafka made of it: RAISES for an exception."""
    return [
        (
            base64.b64decode(row["data"]) if "data" in row else None,
            row.get("text", ""),
            RAISES if "raises" in row else row["value"],
        )
        for row in ROWS[kind]
    ]


def cluster_with(path: str, data: bytes | None) -> Cluster:
    parent = path.rpartition("/")[0]
    return Cluster(ZnodeTree({parent: Znode(), **healthy().znodes, path: Znode(data)}))


def is_found(rule: str, cluster: Cluster, path: str) -> bool:
    return path in [place.where for place in FIND[rule](cluster)]


def test_rows_are_of_every_kind() -> None:
    assert {kind: len(rows) >= 5 for kind, rows in ROWS.items()} == dict.fromkeys(ROWS, True)
    assert sum(map(len, ROWS.values())) > 2_000
    for kind in ("topic", "state", "acl", "token", "producer", "migration", "controller"):
        assert len({"raises" in row for row in ROWS[kind]}) == 2, kind


def test_topics() -> None:
    path = "/brokers/topics/orders"
    for data, _, kafka in cases("topic"):
        cluster = cluster_with(path, data)
        (topic,) = [topic for topic in cluster.topics if topic.name == "orders"]
        blocked = [
            rule
            for rule in ("topic-unreadable", "topic-without-data", "topic-without-id")
            if is_found(rule, cluster, path)
        ]
        if kafka is RAISES or kafka["id"] is None:
            assert len(blocked) == 1, data
            continue
        assert not blocked, data
        assert topic.topic_id == kafka["id"], data
        for name in ("partitions", "adding", "removing"):
            numbers = {int(number): ids for number, ids in kafka[name].items()}
            ours = getattr(topic, name)
            assert {p: list(ours.get(p, ())) for p in numbers} == numbers, data


def test_states() -> None:
    for data, _, kafka in cases("state"):
        state = read_state(data)
        if kafka is RAISES:
            assert isinstance(state, str), data
        elif kafka is None:
            assert state is None, data
        else:
            assert isinstance(state, State)
            assert state.leader == kafka["leader"]
            assert state.leader_epoch == kafka["leader_epoch"]
            assert list(state.isr) == kafka["isr"]
            assert state.controller_epoch == kafka["controller_epoch"]


def test_configs() -> None:
    path = "/config/users/alice"
    for data, _, kafka in cases("configs"):
        is_named = is_found("config-not-a-string", cluster_with(path, data), path)
        assert is_named == (kafka is RAISES), data
        if kafka is not RAISES:
            assert read_configs(path, Znode(data)).values == kafka, data


def test_acls() -> None:
    path = "/kafka-acl/Topic/orders"
    for data, _, kafka in cases("acl"):
        cluster = cluster_with(path, data)
        is_named = {
            rule: is_found(rule, cluster, path)
            for rule in ("acl-odd", "acl-principal", "acl-unreadable", "acl-word-unknown")
        }
        assert (is_named["acl-odd"] or is_named["acl-principal"]) == (kafka is RAISES), data
        assert is_named["acl-unreadable"] == (kafka == []), data
        unknown = kafka is not RAISES and any("UNKNOWN" in entry for entry in kafka)
        assert is_named["acl-word-unknown"] == unknown, data


def test_tokens() -> None:
    path = f"/delegation_token/tokens/{TOKEN}"
    for data, _, kafka in cases("token"):
        cluster = cluster_with(path, data)
        assert is_found("token-odd", cluster, path) == (kafka is RAISES), data
        assert is_found("token-unreadable", cluster, path) == (kafka is None), data
        renamed = kafka not in (RAISES, None) and kafka["id"] != TOKEN
        assert is_found("token-renamed", cluster, path) == renamed, data


@pytest.mark.parametrize(
    ("kind", "path", "rule"),
    [
        ("producer", "/latest_producer_id_block", "producer-ids-unreadable"),
        ("migration", "/migration", "migration-unreadable"),
        ("controller", "/controller", "controller-unreadable"),
    ],
)
def test_single_znodes(kind: str, path: str, rule: str) -> None:
    """Without data, Kafka does not decode the producer ids; another rule names /migration."""
    for data, _, kafka in cases(kind):
        if data is not None or kind == "controller":
            assert is_found(rule, cluster_with(path, data), path) == (kafka is RAISES), data


def test_controller_epochs() -> None:
    for data, _, kafka in cases("epoch"):
        last = kafka == 2**31 - 1
        is_named = is_found(
            "controller-epoch", cluster_with("/controller_epoch", data), "/controller_epoch"
        )
        assert is_named == (kafka is RAISES or last), data


def test_numbers() -> None:
    for _, text, kafka in cases("integer"):
        assert java_int(text) == (None if kafka is RAISES else kafka), text


def configs(name: str, text: str) -> bytes:
    return json.dumps({"version": 1, "config": {name: text}}).encode()


def test_credentials() -> None:
    path = "/config/users/carol"
    for _, text, kafka in cases("scram"):
        cluster = cluster_with(path, configs("SCRAM-SHA-256", text))
        assert is_found("scram-unreadable", cluster, path) == (kafka is RAISES), text


def test_quotas() -> None:
    path = "/config/users/carol"
    for _, text, kafka in cases("quota"):
        cluster = cluster_with(path, configs("request_percentage", text))
        assert is_found("quota-not-a-number", cluster, path) == (kafka is RAISES), text


def test_names() -> None:
    for _, text, kafka in cases("name"):
        if not text or text == "<default>":
            continue  # No znode has an empty name, and the default entity is not unescaped.
        path = f"/config/clients/{text}"
        cluster = cluster_with(path, None)
        assert is_found("entity-name-escape", cluster, path) == (kafka is RAISES), text
        changed = kafka is not RAISES and kafka["again"] != text
        assert is_found("entity-name-unescaped", cluster, path) == changed, text


def test_resource_types() -> None:
    for _, text, kafka in cases("resource"):
        if text:
            cluster = cluster_with(f"/kafka-acl/{text}/x", b"")
            is_read = kafka == text and kafka not in ("Unknown", "Any")
            assert is_found("acl-type-unknown", cluster, f"/kafka-acl/{text}") != is_read, text


@pytest.mark.parametrize("kind", ["operation", "permission"])
def test_words_of_acls(kind: str) -> None:
    field = {"operation": "operation", "permission": "permissionType"}[kind]
    good = {"principal": "User:eve", "host": "*", "operation": "Read", "permissionType": "Allow"}
    for _, text, kafka in cases(kind):
        entry = {**good, field: text}
        data = json.dumps({"version": 1, "acls": [entry]}).encode()
        cluster = cluster_with("/kafka-acl/Topic/t", data)
        is_named = is_found("acl-word-unknown", cluster, "/kafka-acl/Topic/t")
        assert is_named == (kafka == "UNKNOWN"), text
        assert is_found("acl-odd", cluster, "/kafka-acl/Topic/t") == (kafka == "ANY"), text


def test_passwords() -> None:
    for _, name, kafka in cases("is_password"):
        assert is_password(name) == kafka, name


def test_encrypted_passwords() -> None:
    for _, text, encoded in cases("encode"):
        secret, _, cipher, _ = text.split("\n")
        assert is_encoded_with(encoded, secret), cipher
        assert not is_encoded_with(encoded, f"{secret}x"), cipher
        assert not is_encoded_with(encoded[:-30], secret), cipher


def test_password_of_the_controllers_secret_has_no_finding() -> None:
    path = "/config/brokers/2"
    _, text, encoded = cases("encode")[0]
    tree = cluster_with(path, configs("ssl.key.password", encoded)).tree
    for secret, count in ((text.split("\n")[0], 0), ("another", 1)):
        values = {"process.roles": "controller", "password.encoder.secret": secret}
        cluster = Cluster(tree, [ServerProperties("c.properties", values)])
        assert len(list(FIND["password-of-another-secret"](cluster))) == count
        assert not list(FIND["password-without-secret"](cluster))
