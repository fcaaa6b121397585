"""A cluster's metadata as items, so that two states can be compared item by item.

An item's value is text. It contains no secret: credentials and passwords appear as digests, which
differ if the secrets differ. `items_of_znodes` reads what Kafka's migration would read from
ZooKeeper; `rehearse.metadata_log` returns the same items for KRaft.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import orjson

from cluster_model.znodes.layout import DEFAULT_ENTITY
from rehearse.znodes import ZnodeTree

_SECRET_WORDS: Final = ("password", "secret", "jaas.config", "keystore.key", "credential")
_QUOTA_ENTITIES: Final = {"users": "user", "clients": "client-id", "ips": "ip"}
_SCRAM: Final = "SCRAM-"
_DIGITS_MAX: Final = 19


class Kind(StrEnum):
    """The kinds of items."""

    TOPIC = "topic"
    PARTITION = "partition"
    LEADERSHIP = "leadership"
    """Leader, ISR and epochs of a partition. They change whenever a broker restarts."""
    CONFIG = "config"
    QUOTA = "quota"
    SCRAM = "SCRAM credential"
    ACL = "ACL"
    TOKEN = "delegation token"  # noqa: S105 - the name of a kind
    PRODUCER_IDS = "producer ids"


class Item(NamedTuple):
    """The name of an item, which is unique within its kind."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        """Return for example `topic orders`."""
        return f"{self.kind} {self.name}".strip()


Items = Mapping[Item, str]


def topic(name: str, topic_id: str) -> tuple[Item, str]:
    """Return a topic; its value is its id."""
    return Item(Kind.TOPIC, name), topic_id


def partition(
    name: str, index: int, replicas: Iterable[int], adding: Iterable[int], removing: Iterable[int]
) -> tuple[Item, str]:
    """Return where a partition is."""
    moving = "".join(
        f", {word} {_numbers(ids)}"
        for word, ids in (("adding", adding), ("removing", removing))
        if ids
    )
    return Item(Kind.PARTITION, f"{name}-{index}"), f"replicas {_numbers(replicas)}{moving}"


def leadership(
    name: str, index: int, isr: Iterable[int], numbers: tuple[Any, Any, int]
) -> tuple[Item, str]:
    """Return who leads a partition. `numbers` are leader, leader epoch and partition epoch."""
    leader, leader_epoch, partition_epoch = numbers
    return (
        Item(Kind.LEADERSHIP, f"{name}-{index}"),
        f"leader {leader}, leader epoch {leader_epoch}, ISR {_numbers(isr)}, "
        f"partition epoch {partition_epoch}",
    )


def config(entity_type: str, entity: str, name: str, value: str) -> tuple[Item, str]:
    """Return a config. `entity_type` is `topic` or `broker`."""
    shown = digest(value.encode()) if any(word in name for word in _SECRET_WORDS) else value
    return Item(Kind.CONFIG, f"{entity_type} {entity} {name}"), shown


def quota(entities: Iterable[tuple[str, str | None]], name: str, value: float) -> tuple[Item, str]:
    """Return a quota of (type, name) pairs; a name of None is the default entity."""
    entity = ", ".join(
        f"{kind} {DEFAULT_ENTITY if entity is None else repr(entity)}"
        for kind, entity in sorted(entities, key=lambda pair: pair[0])
    )
    return Item(Kind.QUOTA, f"{entity} {name}"), f"{value:.17g}"


def scram(user: str, mechanism: str, keys: Sequence[bytes], iterations: int) -> tuple[Item, str]:
    """Return a credential. `keys` are salt, stored key and server key."""
    secret = digest(b"".join(len(key).to_bytes(4) + key for key in keys))
    return Item(Kind.SCRAM, f"{user} {mechanism}"), f"{secret}, {iterations} iterations"


def acl(
    resource_type: str,
    resource: str,
    pattern: str,
    entry: tuple[str, str, str, str],
) -> tuple[Item, str]:
    """Return an ACL. `entry` is principal, host, operation and permission, as in znodes."""
    principal, host, operation, permission = entry
    name = f"{permission} {principal} from {host} {operation} on {resource_type} {resource!r}"
    return Item(Kind.ACL, f"{name} ({pattern.lower()})"), "present"


def token(
    token_id: str, owner: str, requester: str, renewers: Iterable[str], times_ms: Sequence[int]
) -> tuple[Item, str]:
    """Return a delegation token. `times_ms` are issue, maximum and expiry."""
    issue, maximum, expiry = times_ms
    return (
        Item(Kind.TOKEN, token_id),
        f"owner {owner}, requester {requester}, renewers {' '.join(sorted(renewers)) or '-'}, "
        f"issued {issue}, maximum {maximum}, expires {expiry}",
    )


def producer_ids(next_id: int) -> tuple[Item, str]:
    """Return the first producer id that no broker has reserved."""
    return Item(Kind.PRODUCER_IDS, ""), f"next {next_id}"


def digest(secret: bytes) -> str:
    """Return a short digest that stands for a secret."""
    return "sha256:" + hashlib.sha256(secret).hexdigest()[:12]


def counts(items: Items) -> dict[Kind, int]:
    """Return the number of items of each kind that occurs."""
    result: dict[Kind, int] = {}
    for item in items:
        result[item.kind] = result.get(item.kind, 0) + 1
    return result


def items_of_znodes(tree: ZnodeTree) -> dict[Item, str]:
    """Return the items of a ZooKeeper. What is unreadable has none; `scan` names it."""
    items: dict[Item, str] = {}
    for read in (_topics, _configs, _users_and_clients, _acls, _tokens, _producer_ids):
        items.update(read(tree))
    return items


def _topics(tree: ZnodeTree) -> Iterator[tuple[Item, str]]:
    for name in tree.children("/brokers/topics"):
        path = f"/brokers/topics/{name}"
        content = _json(tree, path)
        assignment = content.get("partitions")
        if not isinstance(content.get("topic_id"), str) or not isinstance(assignment, dict):
            continue
        yield topic(name, content["topic_id"])
        for index in tree.children(f"{path}/partitions"):
            if index not in assignment:
                yield Item(Kind.PARTITION, f"{name}-{index}"), "a state without an assignment"
        for index, replicas in assignment.items():
            state_path = f"{path}/partitions/{index}/state"
            state = _json(tree, state_path)
            if not _is_number(index) or not isinstance(replicas, list):
                continue
            adding = _list(content, "adding_replicas", index)
            removing = _list(content, "removing_replicas", index)
            yield partition(name, int(index), replicas, adding, removing)
            if isinstance(isr := state.get("isr"), list):
                numbers = (state.get("leader"), state.get("leader_epoch"))
                version = tree.znodes[state_path].version
                yield leadership(name, int(index), isr, (*numbers, version))


def _configs(tree: ZnodeTree) -> Iterator[tuple[Item, str]]:
    for folder, kind in (("topics", "topic"), ("brokers", "broker")):
        for entity in tree.children(f"/config/{folder}"):
            for name, value in _config(tree, f"/config/{folder}/{entity}").items():
                yield config(kind, entity, name, str(value))


def _users_and_clients(tree: ZnodeTree) -> Iterator[tuple[Item, str]]:
    for folder, kind in _QUOTA_ENTITIES.items():
        for entity in tree.children(f"/config/{folder}"):
            path = f"/config/{folder}/{entity}"
            yield from _quotas_and_credentials(tree, path, [(kind, entity_of(entity))])
            for client in tree.children(f"{path}/clients"):
                pair = [(kind, entity_of(entity)), ("client-id", entity_of(client))]
                yield from _quotas_and_credentials(tree, f"{path}/clients/{client}", pair)


def _quotas_and_credentials(
    tree: ZnodeTree, path: str, entities: Sequence[tuple[str, str | None]]
) -> Iterator[tuple[Item, str]]:
    for name, value in _config(tree, path).items():
        if not name.startswith(_SCRAM):
            try:
                yield quota(entities, name, float(value))
            except (OverflowError, TypeError, ValueError):
                continue
        elif (credential := _credential(value)) is not None:
            # Kafka migrates a credential of a client or of the default user as one of a user.
            user = entities[0][1]
            yield scram(DEFAULT_ENTITY if user is None else user, name, *credential)


def _credential(text: Any) -> tuple[list[bytes], int] | None:
    try:
        parts = dict(part.split("=", 1) for part in text.split(","))
        names = ("salt", "stored_key", "server_key")
        return [base64.b64decode(parts[name]) for name in names], int(parts["iterations"])
    except (AttributeError, KeyError, ValueError):
        return None


def _acls(tree: ZnodeTree) -> Iterator[tuple[Item, str]]:
    roots = [("/kafka-acl", "Literal")]
    roots += [
        (f"/kafka-acl-extended/{pattern}", pattern)
        for pattern in tree.children("/kafka-acl-extended")
    ]
    for root, pattern in roots:
        for resource_type in tree.children(root):
            for name in tree.children(f"{root}/{resource_type}"):
                entries = _json(tree, f"{root}/{resource_type}/{name}").get("acls")
                for entry in entries if isinstance(entries, list) else ():
                    if isinstance(entry, dict):
                        fields = ("principal", "host", "operation", "permissionType")
                        values = tuple(str(entry.get(field)) for field in fields)
                        yield acl(resource_type, name, pattern, values)  # type: ignore[arg-type]


def _tokens(tree: ZnodeTree) -> Iterator[tuple[Item, str]]:
    parent = "/delegation_token/tokens"
    for name in tree.children(parent):
        content = _json(tree, f"{parent}/{name}")
        try:
            owner = unquote(content["owner"])
            yield token(
                str(content["tokenId"]),
                owner,
                unquote(content.get("tokenRequester", content["owner"])),
                [unquote(renewer) for renewer in content["renewers"]],
                [content[key] for key in ("issueTimestamp", "maxTimestamp", "expiryTimestamp")],
            )
        except (AttributeError, KeyError, TypeError):
            continue


def _producer_ids(tree: ZnodeTree) -> Iterator[tuple[Item, str]]:
    end = _json(tree, "/latest_producer_id_block").get("block_end")
    if isinstance(end, str) and _is_number(end):
        yield producer_ids(int(end) + 1)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX


def _json(tree: ZnodeTree, path: str) -> dict[str, Any]:
    try:
        content = orjson.loads(tree.data(path) or b"{}")
    except orjson.JSONDecodeError:
        return {}
    return content if isinstance(content, dict) else {}


def _config(tree: ZnodeTree, path: str) -> dict[str, Any]:
    configs = _json(tree, path).get("config")
    return configs if isinstance(configs, dict) else {}


def _list(content: Mapping[str, Any], field: str, index: str) -> list[int]:
    lists = content.get(field)
    ids = lists.get(index, []) if isinstance(lists, dict) else []
    return ids if isinstance(ids, list) else []


def _numbers(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids)) or "none"


def entity_of(name: str) -> str | None:
    """Return the entity that a znode's name means; None for the default one."""
    return None if name == DEFAULT_ENTITY else unquote(name)
