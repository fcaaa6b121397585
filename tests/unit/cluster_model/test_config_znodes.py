"""Configs of users, clients and IPs: the image and the znodes stay consistent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_model.image import MetadataImage
from cluster_model.records import ConfigRecord, ConfigResource
from cluster_model.znodes.layout import (
    START_UP_PATHS,
    ConfigZnode,
    ControllerEpochZnode,
)
from cluster_model.znodes.operations import Create, Delete, Operation, SetData
from cluster_model.znodes.values import ZnodeContentError
from controller.store.load import load
from controller.store.plan import plan_operations
from zookeeper_client.config_reading import read_some_configs
from zookeeper_client.wire import Read, ReadData, ReadResult, Stat, ZnodeData

CHANGES = "/config/changes/config_change_"
STAT = Stat(*[0] * 11)


class Tree:
    """A model of ZooKeeper: a created znode needs a parent, a deleted one must have no children."""

    def __init__(self) -> None:
        self.znodes: dict[str, bytes | None] = dict.fromkeys(
            ["/config", "/bridgehead/outcomes", *START_UP_PATHS]
        )
        self.changes: list[str] = []

    def children(self, path: str) -> list[str]:
        return [
            znode.rpartition("/")[2] for znode in self.znodes if znode.rpartition("/")[0] == path
        ]

    def apply(self, operations: Sequence[Operation]) -> None:
        for operation in operations:
            match operation:
                case Create(path, data, _, True):
                    assert path == CHANGES
                    self.changes.append(json.loads(data or b"")["entity_path"])
                case Create(path, data):
                    assert path not in self.znodes, f"{path} exists"
                    assert path.rpartition("/")[0] in self.znodes, f"{path} has no parent"
                    self.znodes[path] = data
                case SetData(path, data):
                    assert path in self.znodes, f"no {path}"
                    self.znodes[path] = data
                case Delete(path):
                    assert not self.children(path), f"{path} has children"
                    del self.znodes[path]
                case _:
                    raise AssertionError(operation)

    async def read(self, reads: Sequence[Read]) -> list[ReadResult]:
        results: list[ReadResult] = []
        for read in reads:
            if read.path not in self.znodes:
                results.append(None)
            elif isinstance(read, ReadData):
                results.append(ZnodeData(self.znodes[read.path], STAT.pack()))
            else:
                results.append(self.children(read.path))
        return results

    def configs(self) -> set[str]:
        below = ("/config/users/", "/config/clients/", "/config/ips/")
        return {path for path in self.znodes if path.startswith(below)}


def after(*changes: tuple[str, str, Mapping[str, str]]) -> tuple[Tree, MetadataImage]:
    """Apply config changes in order."""
    tree, image = Tree(), MetadataImage()
    for entity_type, name, configs in changes:
        record = ConfigRecord(ConfigResource(entity_type, name), configs)
        tree.apply(plan_operations((record,), image))
        image = image.replay((record,))
    return tree, image


SOME = {"consumer_byte_rate": "1"}
NONE: Mapping[str, str] = {}
USERS = "/config/users"


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        # The configs of a user's client: the znodes above the client are created, too.
        ([("users", "u/clients/c", SOME)], ["u", "u/clients", "u/clients/c"]),
        # When a user's last client is removed, the znodes above the client are removed, too.
        ([("users", "u/clients/c", SOME), ("users", "u/clients/c", NONE)], []),
        # These znodes stay while the user has another client.
        (
            [
                ("users", "u/clients/c", SOME),
                ("users", "u/clients/d", SOME),
                ("users", "u/clients/c", NONE),
            ],
            ["u", "u/clients", "u/clients/d"],
        ),
        # The user has configs of its own, so its znode stays.
        (
            [("users", "u", SOME), ("users", "u/clients/c", SOME), ("users", "u/clients/c", NONE)],
            ["u"],
        ),
        # The znode of a user without configs stays until the user's last client is removed.
        (
            [("users", "u", SOME), ("users", "u/clients/c", SOME), ("users", "u", NONE)],
            ["u", "u/clients", "u/clients/c"],
        ),
        (
            [
                ("users", "u", SOME),
                ("users", "u/clients/c", SOME),
                ("users", "u", NONE),
                ("users", "u/clients/c", NONE),
            ],
            [],
        ),
        ([("users", "u", SOME), ("users", "u", NONE)], []),
        ([("users", "u", NONE)], []),
        ([("users", "u/clients/c", NONE)], []),
        ([("users", "<default>/clients/<default>", SOME)], None),
    ],
)
def test_znodes_of_users_are_the_same_as_in_kafka(
    changes: list[tuple[str, str, Mapping[str, str]]], left: list[str] | None
) -> None:
    """See docs/kafka/znodes.md#scram-and-quota-values."""
    tree, _ = after(*changes)
    if left is None:
        left = ["<default>", "<default>/clients", "<default>/clients/<default>"]
    assert tree.configs() == {f"{USERS}/{name}" for name in left}


def test_a_created_parent_has_no_data_but_removed_configs_leave_an_empty_config() -> None:
    tree, _ = after(("users", "u/clients/c", SOME))
    assert tree.znodes[f"{USERS}/u"] is None
    assert tree.znodes[f"{USERS}/u/clients"] is None
    tree, _ = after(("users", "u/clients/c", SOME), ("users", "u", NONE))
    assert tree.znodes[f"{USERS}/u"] == b'{"version":1,"config":{}}'


def test_every_config_change_writes_a_notification() -> None:
    """This includes a removal of configs from an entity without a znode."""
    tree, _ = after(("users", "u/clients/c", NONE), ("ips", "10.0.0.1", NONE))
    assert tree.configs() == set()
    assert tree.changes == ["users/u/clients/c", "ips/10.0.0.1"]


def test_an_empty_clients_znode_is_reused() -> None:
    """Another process left the znode behind, and a new controller must not create it again."""
    tree = Tree()
    tree.znodes |= {f"{USERS}/u": b'{"version":1,"config":{}}', f"{USERS}/u/clients": None}
    image = asyncio.run(load(tree.read, 1)).image
    assert dict(image.user_clients) == {"u": frozenset()}
    record = ConfigRecord(ConfigResource("users", "u/clients/c"), SOME)
    tree.apply(plan_operations((record,), image))
    assert tree.configs() == {f"{USERS}/{name}" for name in ("u", "u/clients", "u/clients/c")}


ENTITIES = st.sampled_from(
    [("users", name) for user in "uv" for name in (user, f"{user}/clients/c", f"{user}/clients/d")]
    + [("clients", "c"), ("ips", "10.0.0.1")]
)


@given(st.lists(st.tuples(ENTITIES, st.sampled_from([SOME, NONE])), max_size=25))
def test_the_image_equals_the_loaded_znodes(
    changes: list[tuple[tuple[str, str], Mapping[str, str]]],
) -> None:
    tree, image = after(*[(*entity, configs) for entity, configs in changes])
    loaded = asyncio.run(load(tree.read, 1)).image
    assert loaded.configs == image.configs
    assert loaded.user_clients == image.user_clients
    paths = {ConfigZnode.path(resource) for resource in image.configs}
    paths |= {f"{USERS}/{user}/clients" for user in image.user_clients}
    assert tree.configs() == paths
    assert len(tree.changes) == len(changes)


async def test_invalid_configs_count_as_no_configs_and_can_be_replaced() -> None:
    """Kafka does the same. The next write replaces the znode at the version that it has."""
    resource = ConfigResource("topics", "t")

    async def read(reads: Sequence[Read]) -> list[ReadResult]:
        return [ZnodeData(b"{", STAT._replace(version=7).pack()) for _ in reads]

    configs = await read_some_configs(read, [resource])
    assert configs.configs == {resource: {}}
    assert [text.partition(":")[0] for text in configs.invalid] == ["/config/topics/t"]
    image = MetadataImage().with_config(resource, {}, configs.versions[resource])
    record = ConfigRecord(resource, {"retention.ms": "1"}, notify=False)
    (operation,) = plan_operations([record], image)
    assert operation == SetData(ConfigZnode.path(resource), ConfigZnode.encode(record.configs), 7)


LAST = b"%d" % (2**31 - 1)  # the next epoch would not fit into a message


@pytest.mark.parametrize(
    "data", [None, b"", b"x", b"-5", b"1_0", b" 1", "\u0661".encode(), LAST, b"9" * 10**6]
)
def test_a_controller_epoch_that_is_not_a_decimal_number_is_rejected(data: bytes | None) -> None:
    with pytest.raises(ZnodeContentError, match="/controller_epoch"):
        ControllerEpochZnode.decode(data)
    assert ControllerEpochZnode.decode(b"10") == 10
