"""A tree of znodes as Kafka's migration reads it.

Kafka's reader decides what is lost, and its rules differ from those of our own nodes: it takes any
partition numbers and any broker ids, a number is no string, and JSON that cannot be parsed is the
same as no content, while JSON of another shape is an exception. Nothing here raises for any bytes
(Kafka 3.9.1, kafka.zk.ZkData, kafka.zk.migration).
"""

from __future__ import annotations

import base64
import codecs
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple

import orjson

from cluster_model.znodes.layout import DEFAULT_ENTITY, encode_uuid
from cluster_model.znodes.values import INT32_MAX
from rehearse.znodes import Znode, ZnodeTree

MISSING: Final = object()  # the content is empty bytes: neither a value nor unreadable
_NUMBER: Final = re.compile(r"[+-]?\d{1,100}")  # as in Java, digits of any script
_UUID: Final = re.compile(r"[A-Za-z0-9_-]{22}(==)?")
_JSON_BYTES_MAX: Final = 1 << 20  # a slower parser gets no more


class UnreadableError(Exception):
    """The content is not JSON, or there is none. The text says which."""


class ShapeError(Exception):
    """The content is JSON of another shape, for which Kafka raises an exception."""


def json_value(data: bytes | None) -> Any:
    """Return the JSON value, as Jackson's `readTree`: MISSING for empty bytes.

    Raises:
        UnreadableError: there are no data, or they are not JSON.
    """
    if data is None:
        raise UnreadableError("it has no data")
    data = data.removeprefix(codecs.BOM_UTF8)
    if not data.strip():
        return MISSING
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    # Jackson ignores what follows the first value.
    try:
        if len(data) > _JSON_BYTES_MAX:
            raise ValueError
        return json.JSONDecoder(parse_constant=_reject).raw_decode(data.decode().lstrip())[0]
    except (ValueError, RecursionError):
        raise UnreadableError("it is not JSON") from None


def _reject(_constant: str) -> None:
    raise ValueError


def object_in(data: bytes | None) -> dict[str, Any]:
    """Return a JSON object. Raises UnreadableError and ShapeError."""
    return _as_object(json_value(data), "it")


def _as_object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ShapeError(f"{what} is not a JSON object")
    return value


def integer(value: Any) -> int:
    """Return a JSON number that is a Java int. Raises ShapeError."""
    if type(value) is not int or not -INT32_MAX - 1 <= value <= INT32_MAX:
        raise ShapeError("there is no whole number where one must be")
    return value


def string(value: Any) -> str:
    """Return a JSON string. Raises ShapeError."""
    if not isinstance(value, str):
        raise ShapeError("there is no string where one must be")
    return value


def java_int(text: str, largest: int = INT32_MAX) -> int | None:
    """Return the number that Java's `Integer.valueOf` reads, None if it raises an exception."""
    if _NUMBER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if -largest - 1 <= number <= largest else None


def _broker_ids(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise ShapeError("a list of replicas is not a JSON array")
    return tuple(map(integer, value))


class Topic(NamedTuple):
    """A topic. `problem` says why Kafka cannot read it; then it has no partitions here."""

    name: str
    problem: str | None
    topic_id: str | None
    partitions: Mapping[int, tuple[int, ...]]
    adding: Mapping[int, tuple[int, ...]]
    removing: Mapping[int, tuple[int, ...]]

    @property
    def path(self) -> str:
        """The path of its znode."""
        return f"/brokers/topics/{self.name}"


def _topic(name: str, data: bytes | None) -> Topic:
    try:
        content = object_in(data)
        topic_id = _topic_id(content)
        adding = _as_object(content.get("adding_replicas", {}), "adding_replicas")
        removing = _as_object(content.get("removing_replicas", {}), "removing_replicas")
        lists: tuple[dict[int, tuple[int, ...]], ...] = ({}, {}, {})
        for number, replicas in _as_object(content.get("partitions", {}), "partitions").items():
            if (partition := java_int(number)) is None:
                raise ShapeError("the number of a partition is not a number")
            moving = (adding.get(number, []), removing.get(number, []))
            for broker_ids, value in zip(lists, (replicas, *moving), strict=True):
                broker_ids[partition] = _broker_ids(value)
        return Topic(name, None, topic_id, *lists)
    except (UnreadableError, ShapeError) as error:
        return Topic(name, str(error), None, {}, {}, {})


def _topic_id(content: Mapping[str, Any]) -> str | None:
    if "topic_id" not in content:
        return None
    encoded = string(content["topic_id"])
    if _UUID.fullmatch(encoded) is None:
        raise ShapeError("its topic id is not a UUID")
    # The last character has unused bits: several texts are the same id.
    return encode_uuid(base64.urlsafe_b64decode(f"{encoded[:22]}=="))


class State(NamedTuple):
    """The state of a partition."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int


@lru_cache(maxsize=4096)
def read_state(data: bytes | None) -> State | str | None:
    """Return a partition's state; None if Kafka ignores the content, a text if it raises."""
    try:
        content = object_in(data)
        if integer(content.get("leader_recovery_state", 0)) & 0xFF not in (0, 1):  # a byte
            raise ShapeError("its leader_recovery_state is unknown")
        return State(
            integer(content.get("leader")),
            integer(content.get("leader_epoch")),
            _broker_ids(content.get("isr")),
            integer(content.get("controller_epoch")),
        )
    except UnreadableError as error:
        return None if data is not None else str(error)
    except ShapeError as error:
        return str(error)


class Configs(NamedTuple):
    """The configs of an entity: any JSON values. `is_unreadable`: Kafka reads no configs there.

    `left_out` has the names of configs whose values a dump does not have.
    """

    path: str
    values: Mapping[str, Any]
    is_unreadable: bool = False
    left_out: tuple[str, ...] = ()


def read_configs(path: str, znode: Znode) -> Configs:
    """Return the configs that a znode below /config has."""
    if znode.data is None:
        return Configs(path, {})
    try:
        content = json_value(znode.data)
    except UnreadableError:
        return Configs(path, {}, is_unreadable=True)
    configs = content.get("config") if isinstance(content, dict) else content
    if not isinstance(configs, dict):
        return Configs(path, {}, is_unreadable=configs not in (MISSING, None))
    return Configs(path, configs, left_out=znode.left_out)


class ServerProperties(NamedTuple):
    """A given server.properties file."""

    file: str
    values: Mapping[str, str]

    def get(self, name: str) -> str | None:
        """Return a value; None if it is missing or empty."""
        return self.values.get(name, "").strip() or None

    def words(self, name: str, default: str = "") -> tuple[str, ...]:
        """Return the elements of a list."""
        return tuple(w for word in self.values.get(name, default).split(",") if (w := word.strip()))

    @property
    def is_controller(self) -> bool:
        """Whether the file is of a KRaft controller."""
        return "controller" in self.words("process.roles")

    @property
    def is_zookeeper_broker(self) -> bool:
        """Whether the file is of a broker in ZooKeeper mode."""
        return not self.words("process.roles")

    @property
    def node_id(self) -> int | None:
        """The id of the broker or controller."""
        text = self.get("node.id") or self.get("broker.id")
        return java_int(text) if text else None


class Cluster:
    """What the checks look at. Its parts are decoded when the first check needs them."""

    def __init__(self, tree: ZnodeTree, properties: Sequence[ServerProperties] = ()) -> None:
        self.tree = tree
        self.properties = properties

    def readable(self, path: str) -> Znode | None:
        """Return a znode; None if it does not exist or its data are hidden."""
        znode = self.tree.znodes.get(path)
        return znode if znode is not None and znode.hidden is None else None

    def children(self, parent: str) -> Iterator[tuple[str, str, Znode]]:
        """Yield name, path and znode of the children whose data the source has."""
        for name in self.tree.children(parent):
            path = f"{parent}/{name}"
            if (znode := self.readable(path)) is not None:
                yield name, path, znode

    @cached_property
    def queued_deletions(self) -> frozenset[str]:
        """The topics that the ZooKeeper controller has still to delete."""
        return frozenset(self.tree.children("/admin/delete_topics"))

    @cached_property
    def topics(self) -> Sequence[Topic]:
        """The topics that Kafka's migration reads: all but those that are queued for deletion."""
        return [
            _topic(name, znode.data)
            for name, _, znode in self.children("/brokers/topics")
            if name not in self.queued_deletions
        ]

    def state(self, topic: Topic, partition: int) -> State | str | None:
        """Return a partition's state as `read_state` does; None if it is missing or hidden."""
        znode = self.readable(self.state_path(topic, partition))
        return None if znode is None else read_state(znode.data)

    @staticmethod
    def state_path(topic: Topic, partition: int) -> str:
        """Return the path of a partition's state."""
        return f"{topic.path}/partitions/{partition}/state"

    @cached_property
    def states(self) -> Sequence[tuple[Topic, int, tuple[int, ...], State]]:
        """Topic, partition, replicas and state of all partitions that have a good state."""
        return [
            (topic, partition, replicas, state)
            for topic in self.topics
            for partition, replicas in topic.partitions.items()
            if isinstance(state := self.state(topic, partition), State)
        ]

    @cached_property
    def registered(self) -> frozenset[int]:
        """The ids of the registered brokers."""
        numbers = map(java_int, self.tree.children("/brokers/ids"))
        return frozenset(number for number in numbers if number is not None)

    def configs(self, entity_type: str) -> Iterator[tuple[str, Configs]]:
        """Yield name and configs of each entity, also if a dump left a part out."""
        for name in self.tree.children(f"/config/{entity_type}"):
            path = f"/config/{entity_type}/{name}"
            znode = self.tree.znodes[path]
            if znode.data is not None or znode.hidden is None:
                yield name, read_configs(path, znode)

    def client_configs(self) -> Iterator[tuple[str, Configs]]:
        """Yield the type (users, clients, ips, or users/clients) and configs of each entity."""
        for entity_type in ("users", "clients", "ips"):
            for _, configs in self.configs(entity_type):
                yield entity_type, configs
        for user in self.tree.children("/config/users"):
            for _, configs in self.configs(f"users/{user}/clients"):
                yield "users/clients", configs

    def controller_files(self) -> Iterator[ServerProperties]:
        """Yield the given files of KRaft controllers."""
        return (file for file in self.properties if file.is_controller)

    def broker_files(self) -> Iterator[ServerProperties]:
        """Yield the given files of brokers in ZooKeeper mode."""
        return (file for file in self.properties if file.is_zookeeper_broker)


def is_default(name: str) -> bool:
    """Return whether a znode's name means the default entity."""
    return name == DEFAULT_ENTITY
