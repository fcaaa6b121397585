"""The znodes of ACLs have the paths and contents that Kafka 3.9.1 writes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.authorizer import AccessControlEntry, ResourcePattern
from cluster_model.acls.bindings import AclSet
from cluster_model.acls.codes import OPERATIONS
from cluster_model.image import MetadataImage
from cluster_model.records import AclRecord
from cluster_model.znode_names import is_valid_znode_name
from cluster_model.znodes.acls import ACL_PATHS, AclChangeZnode, AclZnode
from cluster_model.znodes.layout import ZnodeContentError
from cluster_model.znodes.operations import Create, Delete, SetData
from controller.store.plan import plan_operations

RECORDINGS = Path(__file__).parents[2] / "recordings"
READ = AccessControlEntry("User:alice", "*", "READ", "ALLOW")
ORDERS = ResourcePattern("TOPIC", "LITERAL", "orders")
PRE = ResourcePattern("TRANSACTIONAL_ID", "PREFIXED", "pre")


def recorded() -> dict[str, bytes | None]:
    with gzip.open(RECORDINGS / "znodes-direct-secured.jsonl.gz", "rt") as lines:
        znodes = map(json.loads, lines)
        return {
            znode["path"]: None if znode["data"] is None else znode["data"].encode()
            for znode in znodes
            if znode["path"].startswith("/kafka-acl")
        }


def test_recorded_znodes_round_trip() -> None:
    """The recording has ACLs of every resource type, and notifications."""
    parents = {path: (kind, patterns) for kind, patterns, path in AclZnode.parents()}
    rules = changes = 0
    for path, data in recorded().items():
        parent, _, name = path.rpartition("/")
        if parent in parents:
            pattern = ResourcePattern(*parents[parent], name)
            assert AclZnode.path(pattern) == path
            assert AclZnode.encode(AclZnode.decode(path, data)) == data
            rules += 1
        elif parent in AclChangeZnode.parents:
            pattern = AclChangeZnode.decode(parent, data)
            assert AclChangeZnode.encode(pattern) == data
            assert AclChangeZnode.prefix(pattern) == path[:-10]
            changes += 1
    assert (rules, changes) == (24, 104)


def test_start_up_creates_the_recorded_parents() -> None:
    parents = {path for path, data in recorded().items() if data is None}
    above = {"/kafka-acl", "/kafka-acl-extended", "/kafka-acl-extended/prefixed"}
    assert parents == {*ACL_PATHS, *above}


def test_a_pattern_is_written_at_the_znode_version_that_is_known() -> None:
    """Every write also creates a notification."""
    image = MetadataImage()
    record = AclRecord(ORDERS, (READ,))
    change = Create("/kafka-acl-changes/acl_changes_", b"TOPIC:orders", sequential=True)
    content = AclZnode.encode((READ,))
    assert plan_operations([record], image) == [Create("/kafka-acl/Topic/orders", content), change]
    image = image.replay([record, record, record])
    assert image.acl_versions[ORDERS] == 2
    rewritten = SetData("/kafka-acl/Topic/orders", content, 2)
    assert plan_operations([record], image) == [rewritten, change]
    gone = AclRecord(ORDERS, ())
    assert plan_operations([gone], image) == [Delete("/kafka-acl/Topic/orders", 2), change]
    image = image.replay([gone])
    assert (dict(image.acl_versions), len(image.acls)) == ({}, 0)
    prefixed = plan_operations([AclRecord(PRE, (READ,))], image)
    assert prefixed[0].path == "/kafka-acl-extended/prefixed/TransactionalId/pre"
    assert prefixed[1].path == "/kafka-acl-extended-changes/acl_changes_"


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b"{}",
        b'{"version":2,"acls":[]}',
        b'{"version":1,"acls":[{}]}',
        b'{"version":1,"acls":[{"principal":1,"permissionType":"Allow","host":"*","operation":"Read"}]}',
        b'{"version":1,"acls":[{"principal":"User:a","permissionType":"Allow","host":"*","operation":"Fly"}]}',
    ],
)
def test_invalid_content_is_an_error(content: bytes) -> None:
    """If such content counted as no ACLs, a DENY would be ignored."""
    with pytest.raises(ZnodeContentError, match="/kafka-acl/Topic/x"):
        AclZnode.decode("/kafka-acl/Topic/x", content)


def test_notifications_of_other_writers_are_decoded() -> None:
    """The resource type of a literal pattern has several spellings; a name can contain colons."""
    read = AclChangeZnode.decode
    for data in (b"TRANSACTIONAL_ID:a:b", b"TransactionalId:a:b", b"transactionalid:a:b"):
        pattern = ResourcePattern("TRANSACTIONAL_ID", "LITERAL", "a:b")
        assert read(AclChangeZnode.literal, data) == pattern
    for junk in (b"", b"Thing:x", b"\xff"):
        with pytest.raises(ZnodeContentError):
            read(AclChangeZnode.literal, junk)
        with pytest.raises(ZnodeContentError):
            read(AclChangeZnode.extended, junk)


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("bad name", True),
        ("*", True),
        ("é", True),
        ("\xa0\ud7ff\uf900\uffef", True),
        ("", False),
        (".", False),
        ("..", False),
        ("a/b", False),
        ("a\0b", False),
        ("a\nb", False),
        ("\x1f", False),
        ("\x7f", False),
        ("\x85", False),
        ("\x9f", False),
        ("\uf8ff", False),
        ("\ufff0", False),
        ("\uffff", False),
        ("\ufffd", False),
        ("😀", False),
    ],
)
def test_a_znode_name_is_valid_if_zookeeper_accepts_it(name: str, valid: bool) -> None:
    """ZooKeeper closes the session for some invalid names."""
    assert is_valid_znode_name(name) is valid


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ENTRIES = st.builds(
    AccessControlEntry,
    TEXTS,
    TEXTS,
    st.sampled_from(sorted(OPERATIONS.values())),
    st.sampled_from(["ALLOW", "DENY"]),
)


@given(entries=st.lists(ENTRIES, min_size=1, max_size=6, unique=True))
def test_any_principal_and_host_round_trip(entries: list[AccessControlEntry]) -> None:
    assert list(AclZnode.decode("/p", AclZnode.encode(entries))) == entries


@given(data=st.data())
def test_an_acl_set_equals_a_simple_model(data: st.DataObject) -> None:
    """The model searches all entries."""
    names = st.sampled_from(["*", "a", "ab", "abc", "b"])
    patterns = st.builds(
        ResourcePattern,
        st.sampled_from(["TOPIC", "GROUP"]),
        st.sampled_from(["LITERAL", "PREFIXED"]),
        names,
    )
    wanted = data.draw(st.dictionaries(patterns, st.lists(ENTRIES, min_size=1, max_size=2)))
    acls = AclSet()
    for pattern, entries in wanted.items():
        acls = acls.with_entries(pattern, (READ,)).with_entries(pattern, entries)
    gone = data.draw(st.sets(patterns))
    for pattern in gone:
        acls = acls.with_entries(pattern, ())
    left = {pattern: tuple(entries) for pattern, entries in wanted.items() if pattern not in gone}
    assert acls == AclSet.of(left)
    assert dict(acls) == left
    name = data.draw(names)
    covering = [
        entry
        for (kind, how, resource), entries in left.items()
        for entry in entries
        if kind == "TOPIC"
        and (name.startswith(resource) if how == "PREFIXED" else resource in ("*", name))
    ]
    assert sorted(acls.matching("TOPIC", name)) == sorted(covering)
