"""Our AclAuthorizer decides like Kafka's AclAuthorizer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.authorizer import (
    AccessControlEntry,
    AclOperation,
    Action,
    Operation,
    PatternType,
    Permission,
    Requester,
    ResourcePattern,
)
from cluster_model.acls.authorizer import AclAuthorizer, super_users_of
from cluster_model.acls.bindings import AclSet
from cluster_model.principal import KafkaPrincipal

HOST = "10.0.0.5"
Rule = tuple[PatternType, str, str, str, AclOperation, Permission]


def a_requester(name: str = "alice", host: str = HOST, kind: str = "User") -> Requester:
    return Requester(KafkaPrincipal(kind, name), host, 19, 7, None, "PLAINTEXT", "PLAINTEXT")


def acls(*rules: Rule) -> AclSet:
    entries: dict[ResourcePattern, tuple[AccessControlEntry, ...]] = {}
    for pattern_type, name, principal, host, operation, permission in rules:
        pattern = ResourcePattern("TOPIC", pattern_type, name)
        entry = AccessControlEntry(principal, host, operation, permission)
        entries[pattern] = (*entries.get(pattern, ()), entry)
    return AclSet.of(entries)


def allow(
    operation: AclOperation = "READ",
    *,
    name: str = "orders",
    kind: PatternType = "LITERAL",
    who: str = "User:alice",
    host: str = "*",
) -> Rule:
    return (kind, name, who, host, operation, "ALLOW")


def deny(operation: AclOperation = "READ", **rest: Any) -> Rule:
    return (*allow(operation, **rest)[:5], "DENY")


def is_allowed(
    rules: Iterable[Rule],
    operation: Operation = "READ",
    *,
    who: Requester | None = None,
    name: str = "orders",
    **properties: str,
) -> bool:
    authorizer = AclAuthorizer({key.replace("_", "."): value for key, value in properties.items()})
    action = Action(operation, "TOPIC", name)
    return authorizer.authorize(who or a_requester(), action, acls(*rules)).allowed


def test_deny_takes_precedence_over_allow() -> None:
    for denial in (
        deny(),
        deny("ALL"),
        deny(name="ord", kind="PREFIXED"),
        deny(name="*"),
        deny(who="User:*"),
        deny(host=HOST),
    ):
        assert not is_allowed([allow(), allow("ALL"), allow(name="*"), denial])


def test_allow_implies_describe_and_deny_implies_nothing() -> None:
    implying: tuple[AclOperation, ...] = ("READ", "WRITE", "DELETE", "ALTER", "DESCRIBE", "ALL")
    for operation in implying:
        assert is_allowed([allow(operation)], "DESCRIBE")
    assert not is_allowed([allow("CREATE")], "DESCRIBE")
    assert is_allowed([allow("ALTER_CONFIGS")], "DESCRIBE_CONFIGS")
    assert not is_allowed([allow("ALTER")], "DESCRIBE_CONFIGS")
    assert is_allowed([allow("READ"), allow("DESCRIBE"), deny("READ")], "DESCRIBE")
    assert not is_allowed([allow("READ"), deny("DESCRIBE")], "DESCRIBE")


def test_patterns_are_literal_wildcard_or_prefixed() -> None:
    """`*` has no special meaning in a prefixed pattern; names are case-sensitive."""
    assert is_allowed([allow(name="*")])
    assert is_allowed([allow(name="ord", kind="PREFIXED")])
    assert is_allowed([allow(name="orders", kind="PREFIXED")])
    assert not is_allowed([allow(name="orders2", kind="PREFIXED")])
    assert not is_allowed([allow(name="*", kind="PREFIXED")])
    assert not is_allowed([allow(name="ord")])
    assert not is_allowed([allow(name="ORDERS")])


def test_principals_and_hosts_are_compared_as_text() -> None:
    """`User:*` matches principals of every type; a host is a single address."""
    assert is_allowed([allow(who="User:*")], who=a_requester("g", kind="Group"))
    assert not is_allowed([allow(who="Group:*")], who=a_requester("g", kind="Group"))
    assert not is_allowed([allow()], who=a_requester("Alice"))
    assert is_allowed([allow(host=HOST)])
    assert not is_allowed([allow(host="10.0.0.0/8")])
    assert not is_allowed([allow(host="10.0.0.6")])


def test_a_resource_without_acls_follows_allow_everyone_if_no_acl_found() -> None:
    """The config has no effect once the resource has an ACL."""
    everyone: dict[str, Any] = {"allow_everyone_if_no_acl_found": "true"}
    assert not is_allowed([])
    assert is_allowed([], **everyone)
    assert not is_allowed([allow(who="User:bob")], **everyone)
    assert not is_allowed([allow(who="User:bob", name="*")], **everyone)


def test_super_users_are_always_allowed() -> None:
    """Semicolons separate the names, because a name can contain commas."""
    some: dict[str, Any] = {"super_users": "User:CN=a,O=b; User:alice"}
    assert is_allowed([deny("ALL")], **some)
    assert not is_allowed([deny("ALL")], who=a_requester("bob"), **some)
    assert super_users_of({"super.users": "User:CN=a,O=b;"}) == {"User:CN=a,O=b"}
    with pytest.raises(ValueError, match="write User:alice"):
        super_users_of({"super.users": "alice"})


def test_the_reason_of_a_verdict_has_kafkas_text() -> None:
    """The reason names the operation of the matching ACL."""
    action = Action("DESCRIBE", "TOPIC", "orders")
    reason = AclAuthorizer({}).authorize(a_requester(), action, acls(allow("DELETE"))).reason
    assert reason == (
        "operation = DELETE on resource = ResourcePattern(resourceType=TOPIC, name=orders, "
        "patternType=LITERAL) from host = 10.0.0.5 is ALLOW based on acl = User:alice has ALLOW "
        "permission for operations: DELETE from hosts: *"
    )
    nothing = AclAuthorizer({}).authorize(a_requester(), action, acls()).reason
    assert nothing == (
        "No acl found for resource ResourcePattern(resourceType=TOPIC, name=orders, "
        "patternType=LITERAL), authorized = false"
    )


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([], False),
        ([allow("WRITE", name="a")], True),
        ([allow("WRITE", name="a"), deny("WRITE", name="a")], False),
        ([allow("WRITE", name="a"), deny("WRITE", name="a", kind="PREFIXED")], False),
        ([allow("WRITE", name="ab", kind="PREFIXED"), deny("WRITE", name="a")], True),
        (
            [
                allow("WRITE", name="ab", kind="PREFIXED"),
                deny("WRITE", name="a", kind="PREFIXED"),
            ],
            False,
        ),
        ([allow("WRITE", name="*"), deny("WRITE", name="a", kind="PREFIXED")], True),
        ([allow("WRITE", name="a"), deny("WRITE", name="*")], False),
        ([allow("READ", name="a")], False),
    ],
)
def test_a_right_on_any_topic_is_found_by_resource_type(rules: list[Rule], expected: bool) -> None:
    """The check for idempotent producers: is WRITE allowed on at least one topic?"""
    verdict = AclAuthorizer({}).authorize_by_resource_type(
        a_requester(), "WRITE", "TOPIC", acls(*rules)
    )
    assert verdict.allowed is expected


OPERATIONS: tuple[Operation, ...] = ("READ", "WRITE", "DESCRIBE", "ALTER", "DELETE", "CREATE")
RULES = st.lists(
    st.tuples(
        st.sampled_from(["LITERAL", "PREFIXED"]),
        st.sampled_from(["*", "a", "ab", "abc", "b"]),
        st.sampled_from(["User:alice", "User:bob", "User:*", "Group:alice"]),
        st.sampled_from(["*", HOST, "::1"]),
        st.sampled_from([*OPERATIONS, "ALL"]),
        st.sampled_from(["ALLOW", "DENY"]),
    ),
    max_size=8,
)


@given(rules=RULES, operation=st.sampled_from(OPERATIONS), name=st.sampled_from(["a", "ab", "b"]))
def test_decisions_equal_a_simple_model(rules: list[Rule], operation: Operation, name: str) -> None:
    """The model evaluates every ACL in turn."""

    def concerns(rule: Rule) -> bool:
        kind, pattern = rule[0], rule[1]
        return name.startswith(pattern) if kind == "PREFIXED" else pattern in ("*", name)

    def matches(rule: Rule, wanted: set[str]) -> bool:
        who, host = rule[2] in ("User:alice", "User:*"), rule[3] in ("*", HOST)
        return concerns(rule) and who and host and rule[4] in wanted | {"ALL"}

    implied = {"READ", "WRITE", "DELETE", "ALTER"} if operation == "DESCRIBE" else set()
    denied = any(r[5] == "DENY" and matches(r, {operation}) for r in rules)
    allowed = any(r[5] == "ALLOW" and matches(r, {operation} | implied) for r in rules)
    assert is_allowed(rules, operation, name=name) is (allowed and not denied)


def test_a_prefix_that_is_added_later_matches_longer_names() -> None:
    """Lookups try the prefixes of a name up to the length of the longest stored prefix."""
    short = ResourcePattern("TOPIC", "PREFIXED", "or")
    long = ResourcePattern("TOPIC", "PREFIXED", "orders-eu-")
    entry = AccessControlEntry("User:alice", "*", "READ", "ALLOW")
    acl_set = AclSet.of({short: (entry,)})
    assert len(acl_set.matching("TOPIC", "orders-eu-1")) == 1
    acl_set = acl_set.with_entries(long, (entry,))
    assert len(acl_set.matching("TOPIC", "orders-eu-1")) == 2
    acl_set = acl_set.with_entries(long, ())
    assert len(acl_set.matching("TOPIC", "orders-eu-1")) == 1
    assert len(acl_set.matching("TOPIC", "o")) == 0


class CountedName(str):
    """Counts how many prefixes of the name are taken."""

    slices = 0

    def __getitem__(self, key: Any) -> str:
        self.slices += 1
        return super().__getitem__(key)


def test_a_long_name_costs_no_more_than_the_longest_prefix() -> None:
    name = CountedName("x" * 32_767)
    acls(allow(name="team-", kind="PREFIXED")).matching("TOPIC", name)
    assert name.slices == len("team-")
