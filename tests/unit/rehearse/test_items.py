"""The items of any znodes: nothing raises, and what is readable has an item."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehearse.metadata import Item, Kind, items_of_znodes
from rehearse.participants import plan_brokers
from rehearse.seeds import SEEDS, Seed, healthy
from rehearse.znodes import Znode, ZnodeTree

_PATHS = sorted(path for path in healthy().znodes if path not in ("/brokers/ids",))
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda children: (
        st.lists(children, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "partitions",
                    "topic_id",
                    "isr",
                    "config",
                    "acls",
                    "tokenId",
                    "owner",
                    "renewers",
                    "0",
                ]
            ),
            children,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def _with(path: str, data: bytes) -> ZnodeTree:
    return ZnodeTree({**healthy().znodes, path: Znode(data)})


@given(st.sampled_from(_PATHS), st.binary(max_size=40))
def test_any_bytes_do_not_raise(path: str, data: bytes) -> None:
    items_of_znodes(_with(path, data))


@given(st.sampled_from(_PATHS), _JSON)
def test_any_json_does_not_raise(path: str, value: object) -> None:
    tree = _with(path, json.dumps(value).encode())
    items_of_znodes(tree)
    plan_brokers(tree)
    stopped = {path: znode for path, znode in tree.znodes.items() if "/ids/" not in path}
    plan_brokers(ZnodeTree(stopped))


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.name)
def test_seeds_items_are_named_as_here(seed: Seed) -> None:
    """The items of a seed that `scan` calls kept or changed exist before the migration."""
    names = set(map(str, items_of_znodes(seed.planted(healthy()))))
    named_anywhere = names | set(map(str, items_of_znodes(healthy())))
    assert set(seed.items) <= named_anywhere


def test_values_are_those_of_the_znodes() -> None:
    items = items_of_znodes(healthy())
    assert items[Item(Kind.PARTITION, "audit-1")] == "replicas 2,3,1"
    assert items[Item(Kind.LEADERSHIP, "audit-1")].startswith("leader 2, leader epoch 4, ISR 2,3,")
    assert items[Item(Kind.CONFIG, "topic orders cleanup.policy")] == "compact"
    quota = "client-id 'reports', user 'bob@example.org' request_percentage"
    assert items[Item(Kind.QUOTA, quota)] == "12.5"
    denied = "Deny User:mallory from * All on Topic 'orders' (literal)"
    assert items[Item(Kind.ACL, denied)] == "present"
    assert items[Item(Kind.PRODUCER_IDS, "")] == "next 5000"


def test_passwords_are_digests() -> None:
    data = b'{"version":1,"config":{"ssl.key.password":"sesame"}}'
    items = items_of_znodes(_with("/config/brokers/2", data))
    value = items[Item(Kind.CONFIG, "broker 2 ssl.key.password")]
    assert value.startswith("sha256:")
    assert "sesame" not in value
