"""Rights on a drafted listener, by raw frames: the ACL APIs of KIP-4, and deletions of topics.

The authorizer denies exactly the rights that the client id lists. It raises an exception for the
client id FAILS.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bridgehead.cluster import Cluster
from tests.integration.drafted_listeners import BOTH_DIALECTS, Listener, creation, deletion
from tests.integration.processes import wait_until

CREATE, DELETE, DESCRIBE_ACLS, LIST_ACLS, ALTER_ACLS = 19, 20, 29, 10002, 10003
NONE, INVALID_TOPIC, TOPIC_DENIED, CLUSTER_DENIED, INVALID_REQUEST = 0, 17, 29, 31, 42
UNKNOWN = -1
CODE = """
from bridgehead.authorizer import Verdict


class ByClientId:
    def __init__(self, properties):
        pass

    def authorize(self, requester, action, acls):
        denied = (requester.client_id or "").split(",")
        if denied == ["FAILS"]:
            raise RuntimeError("the client id says so")
        return Verdict(f"{action.operation} {action.resource_type}" not in denied)

    def authorize_by_resource_type(self, requester, operation, resource_type, acls):
        return Verdict(True)
"""


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, new_chroot: Callable[[], str]
) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("rights")
    (folder / "their_authorizer.py").write_text(CODE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        running = Cluster(
            zookeeper=new_chroot(),
            brokers=1,
            properties={
                **BOTH_DIALECTS,
                "authorizer.class.name": "their_authorizer.ByClientId",
            },
        )
        with running:
            yield running


def test_an_error_of_the_authorizer_is_a_generic_error_and_logged(drafted: Listener) -> None:
    """KIP-4 §Alter ACLs Request: an exception of the authorizer has no code of its own."""
    body = {"requests": [on("others", action(1, "User:a"), action(1, "User:b"))]}
    response = drafted.call(1, ALTER_ACLS, 0, body, "FAILS")
    codes = [result["errorCode"] for result in response["responses"][0]["results"]]
    assert codes == [UNKNOWN, UNKNOWN]
    log = (drafted.cluster.data_dir / "nodes" / "1" / "node.log").read_text()
    assert "the authorizer failed on Action(operation='CREATE', resource_type='CLUSTER'" in log
    assert "RuntimeError: the client id says so" in log
    listed = {"principal": None, "resourceType": 2, "resourceName": "others"}
    assert drafted.call(1, LIST_ACLS, 0, listed)["responses"] == []


def action(kind: int, principal: str) -> dict[str, Any]:
    acl = {"aclPrincipal": principal, "aclPermissionType": 3, "aclHost": "*", "aclOperation": 3}
    return {"action": kind, "acl": acl}


def on(name: str, *actions: dict[str, Any]) -> dict[str, Any]:
    return {"resourceType": 2, "resourceName": name, "actions": list(actions)}


def test_acls_are_altered_and_listed(drafted: Listener, shipped: Listener) -> None:
    """KIP-4 §Alter ACLs Request, §List ACLs Request. The shipped DescribeAcls shows the ACLs."""
    ours, theirs = "User:ANONYMOUS", "User:other"
    delete, add = 0, 1
    body = {"requests": [on("orders", action(add, ours), action(add, theirs))]}
    denied = drafted.call(1, ALTER_ACLS, 0, body, "ALTER CLUSTER")
    assert [result["errorCode"] for result in denied["responses"][0]["results"]] == [
        CLUSTER_DENIED
    ] * 2
    response = drafted.call(1, ALTER_ACLS, 0, body)
    assert [result["errorCode"] for result in response["responses"][0]["results"]] == [NONE, NONE]

    def listed(
        principal: str | None = None, kind: int = -1, name: str = "", client_id: str = "test"
    ) -> tuple[int, list[tuple[str, str]]]:
        request = {"principal": principal, "resourceType": kind, "resourceName": name}
        response = drafted.call(1, LIST_ACLS, 0, request, client_id)
        return response["errorCode"], [
            (row["resourceName"], acl["aclPrincipal"])
            for row in response["responses"]
            for acl in row["acls"]
        ]

    both = [("orders", ours), ("orders", theirs)]
    wait_until(lambda: listed() == (NONE, both))
    assert listed(theirs) == (NONE, both[1:])
    assert listed(kind=2, name="orders") == (NONE, both)
    assert listed(kind=2, name="nothing") == (NONE, [])
    assert listed("User:nobody") == (NONE, [])
    not_all = "IDEMPOTENT_WRITE CLUSTER"
    assert listed(ours, client_id=not_all) == (NONE, both[:1])
    assert listed(theirs, client_id=not_all) == (CLUSTER_DENIED, [])
    assert listed(client_id=not_all) == (CLUSTER_DENIED, [])
    described = shipped.call(
        1,
        DESCRIBE_ACLS,
        1,
        {
            "resourceTypeFilter": 2,
            "resourceNameFilter": "orders",
            "patternTypeFilter": 3,
            "principalFilter": None,
            "hostFilter": None,
            "operation": 1,
            "permissionType": 1,
        },
    )
    assert [acl["principal"] for acl in described["resources"][0]["acls"]] == [ours, theirs]
    twice = {"requests": [on("orders", action(delete, ours)), on("orders", action(add, ours))]}
    (single,) = drafted.call(1, ALTER_ACLS, 0, twice)["responses"]
    assert [result["errorCode"] for result in single["results"]] == [INVALID_REQUEST]
    log = (drafted.cluster.data_dir / "nodes" / "1" / "node.log").read_text()
    assert "ALTER_ACLS: INVALID_REQUEST for '2:orders': Found multiple entries" in log
    again = {"requests": [on("orders", action(add, ours), action(delete, ours))]}
    drafted.call(1, ALTER_ACLS, 0, again)
    wait_until(lambda: listed() == (NONE, both[::-1]))


def test_a_deletion_needs_delete_on_the_topic(drafted: Listener, shipped: Listener) -> None:
    """KIP-4 §Delete Topics Request 5: for a client with neither right, the topic is missing."""
    assert drafted.codes(1, CREATE, 0, creation("t")) == [NONE]
    both = deletion("t", "missing")
    only_describe, neither = "DELETE TOPIC", "DELETE TOPIC,DESCRIBE TOPIC"
    assert drafted.codes(1, DELETE, 0, both, only_describe) == [TOPIC_DENIED, TOPIC_DENIED]
    assert drafted.codes(1, DELETE, 0, both, neither) == [INVALID_TOPIC, INVALID_TOPIC]
    assert shipped.codes(1, DELETE, 0, both, neither) == [TOPIC_DENIED, TOPIC_DENIED]
    only_delete = ",".join(f"{name} TOPIC" for name in ("DESCRIBE", "ALTER", "READ", "WRITE"))
    assert drafted.codes(1, DELETE, 0, deletion("t"), only_delete) == [NONE]
