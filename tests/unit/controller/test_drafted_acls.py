"""KIP-4's ListAcls and AlterAcls: rights, filters and the outcome of each action."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from bridgehead.authorizer import AccessControlEntry, ResourcePattern
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.drafted.alter_acls import (
    AclAction,
    AlterAclsRequest,
    AlterResourceAcls,
)
from bridgehead.kafka_wire.messages.drafted.list_acls import Acl, ListAclsRequest
from broker_proxy.apis.admin.list_acls import ListAcls
from cluster_model.acls.authorization import CLUSTER_OPERATIONS, bind_authorize
from cluster_model.acls.bindings import AclSet
from cluster_model.image import MetadataImage
from cluster_model.principal import KafkaPrincipal
from cluster_model.records import AclRecord
from controller.apis.alter_acls import AlterAcls
from controller.apis.base import Results
from tests.unit.broker_proxy.client_requests import a_request
from tests.unit.controller.request_contexts import a_context
from tests.unit.controller.topic_decisions import context

TOPIC, CLUSTER = 2, 4
DELETE, ADD = 0, 1
DENY, ALLOW = 2, 3
READ, WRITE, CREATE = 3, 4, 5
ORDERS = ResourcePattern("TOPIC", "LITERAL", "orders")


def everything_but(*denied: str) -> Any:
    return lambda operation, kind, name, **_: f"{operation} {kind}" not in denied


EVERYTHING = everything_but()
# Each of these sets of rights lacks one operation on the cluster, so it does not amount to All.
NOT_ALL = [everything_but(f"{operation} CLUSTER") for operation in CLUSTER_OPERATIONS]


def rule(principal: str, operation: Any = "READ", permission: Any = "ALLOW") -> AccessControlEntry:
    return AccessControlEntry(principal, "*", operation, permission)


THERE = AclSet.of(
    {
        ORDERS: [rule("User:a"), rule("User:a", "WRITE", "DENY"), rule("User:b")],
        ResourcePattern("GROUP", "LITERAL", "g"): [rule("User:a")],
        ResourcePattern("TOPIC", "PREFIXED", "or"): [rule("User:a")],
    }
)


async def listed(authorize: Any = EVERYTHING, as_: str = "a", **fields: Any) -> Any:
    """Return (type, name, principal, operation) of the listed ACLs."""
    api = ListAcls(lambda: THERE, lambda _request: authorize, True)
    request = a_request(10002, 0, dialect="drafted", principal=KafkaPrincipal("User", as_))
    response = await api.handle(request, ListAclsRequest(**fields))
    return {
        (responded.resource_type, responded.resource_name, acl.acl_principal, acl.acl_operation)
        for responded in response.responses
        for acl in responded.acls
    }


async def test_list_acls_filters_by_principal_and_resource() -> None:
    """Resource type -1 matches any type. Only literal patterns are listed."""
    orders_a = {(2, "orders", "User:a", READ), (2, "orders", "User:a", WRITE)}
    orders_b, group = {(2, "orders", "User:b", READ)}, {(3, "g", "User:a", READ)}
    assert await listed() == orders_a | orders_b | group
    assert await listed(principal="User:a") == orders_a | group
    assert await listed(resource_type=TOPIC, resource_name="orders") == orders_a | orders_b
    assert await listed(principal="User:nobody") == set()
    assert await listed(resource_type=TOPIC, resource_name="nothing") == set()


GROUP = 3


async def test_list_acls_returns_only_resources_with_acls() -> None:
    """KIP-4: no error, and no entry, for a resource or a principal without ACLs."""

    async def resources(**fields: Any) -> list[tuple[int, str]]:
        api = ListAcls(lambda: THERE, lambda _request: EVERYTHING, True)
        request = a_request(10002, 0, dialect="drafted", principal=KafkaPrincipal("User", "a"))
        response = await api.handle(request, ListAclsRequest(**fields))
        assert response.error_code == 0
        return [(row.resource_type, row.resource_name) for row in response.responses]

    denied = AccessControlEntry("Group:ops", "10.0.0.9", "WRITE", "DENY")
    only = AclSet.of({ORDERS: [denied]})
    response = await ListAcls(lambda: only, lambda _request: EVERYTHING, True).handle(
        a_request(10002, 0, dialect="drafted"), ListAclsRequest()
    )
    assert response.responses[0].acls == [Acl("Group:ops", DENY, "10.0.0.9", WRITE)]
    assert sorted(await resources()) == [(TOPIC, "orders"), (GROUP, "g")]
    assert await resources(principal="User:b") == [(TOPIC, "orders")]
    assert await resources(principal="User:nobody") == []
    assert await resources(resource_type=GROUP, resource_name="orders") == []
    assert await resources(resource_type=GROUP, resource_name="g") == [(GROUP, "g")]


@pytest.mark.parametrize("rights", NOT_ALL, ids=CLUSTER_OPERATIONS)
async def test_list_acls_shows_a_client_its_own_allow_acls(rights: Any) -> None:
    """To list other ACLs, the client needs every operation on the cluster (All)."""
    own_acls = await listed(rights, principal="User:a")
    assert own_acls == {(2, "orders", "User:a", READ), (3, "g", "User:a", READ)}
    nothing = everything_but(*(f"{operation} CLUSTER" for operation in CLUSTER_OPERATIONS))
    assert await listed(nothing, principal="User:a") == own_acls
    for fields in ({}, {"principal": "User:b"}, {"resource_type": TOPIC}):
        with pytest.raises(ApiError) as rejected:
            await listed(rights, **fields)
        assert rejected.value.error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def action(code: int, principal: str = "User:a", operation: int = READ, kind: int = ALLOW) -> Any:
    return AclAction(code, Acl(principal, kind, "*", operation))


def on(name: str, *actions: AclAction, kind: int = TOPIC) -> AlterResourceAcls:
    return AlterResourceAcls(kind, name, list(actions))


def alter(
    *alterations: AlterResourceAcls, authorize: Any = EVERYTHING, has_authorizer: bool = True
) -> tuple[list[list[int]], AclSet]:
    """Return the error codes of each resource's actions, and the ACLs afterwards."""
    api, image = AlterAcls(has_authorizer), MetadataImage(acls=THERE)
    client = context(0, authorize, dialect="drafted")
    request = AlterAclsRequest(list(alterations))
    decision = api.decide(client, request, image, {})
    outcomes = {element.element: element.outcome for element in decision.elements}
    response = api.response(client, request, Results(outcomes, image))
    records = [record for element in decision.elements for record in element.records]
    codes = [[row.error_code for row in responded.results] for responded in response.responses]
    return codes, image.replay(records).acls


def test_alter_acls_deletes_before_it_adds() -> None:
    codes, after = alter(on("orders", action(ADD), action(ADD, "User:c"), action(DELETE)))
    assert codes == [[0, 0, 0]]
    assert after.entries(ORDERS) == (
        rule("User:a", "WRITE", "DENY"),
        rule("User:b"),
        rule("User:a"),
        rule("User:c"),
    )


def test_alter_acls_rejects_a_duplicate_resource_with_a_single_code() -> None:
    twice = on("orders", action(DELETE), action(ADD, "User:c"))
    codes, after = alter(twice, on("new", action(ADD)), twice)
    assert codes == [[ErrorCode.INVALID_REQUEST], [0]]
    assert after.entries(ORDERS) == THERE.entries(ORDERS)
    assert after.entries(ORDERS._replace(name="new")) == (rule("User:a"),)


@pytest.mark.parametrize(
    "wrong",
    [action(2), action(ADD, operation=1), action(ADD, operation=99), action(ADD, kind=1)],
)
def test_alter_acls_rejects_only_the_invalid_action(wrong: AclAction) -> None:
    codes, after = alter(on("new", wrong, action(ADD, "User:c")))
    assert codes == [[ErrorCode.INVALID_REQUEST, 0]]
    assert after.entries(ORDERS._replace(name="new")) == (rule("User:c"),)


def test_alter_acls_without_effect_writes_nothing() -> None:
    api, image = AlterAcls(True), MetadataImage(acls=THERE)
    request = AlterAclsRequest([on("orders", action(ADD), action(DELETE, "User:nobody"))])
    (decided,) = api.decide(context(0), request, image, {}).elements
    assert (decided.outcome.succeeded, decided.records) == (True, ())


def test_alter_acls_needs_every_operation_on_the_cluster_and_an_authorizer() -> None:
    for rights in NOT_ALL:
        denied, after = alter(on("new", action(ADD)), authorize=rights)
        assert denied == [[ErrorCode.CLUSTER_AUTHORIZATION_FAILED]]
        assert after == THERE
    disabled, after = alter(on("new", action(ADD)), has_authorizer=False)
    assert disabled == [[ErrorCode.SECURITY_DISABLED]]
    assert after == THERE


def test_an_authorizer_that_fails_is_a_generic_error_of_every_action_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """KIP-4: a generic error if the authorizer fails, and not a denial."""
    authorizer = Mock(authorize=Mock(side_effect=ValueError("the database is down")))
    client = a_context(10003, 0, dialect="drafted").client
    authorize = bind_authorize(authorizer, Mock())(client.requester(10003, 0), THERE)
    context = a_context(10003, 0, dialect="drafted", authorize=authorize)
    api, image = AlterAcls(True), MetadataImage(acls=THERE)
    request = AlterAclsRequest([on("orders", action(ADD), action(DELETE)), on("t", action(ADD))])
    with caplog.at_level("INFO"):
        decision = api.decide(context, request, image, {})
    outcomes = {element.element: element.outcome for element in decision.elements}
    response = api.response(context, request, Results(outcomes, image))
    codes = [[row.error_code for row in resource.results] for resource in response.responses]
    assert codes == [[-1, -1], [-1]]
    assert not any(element.records for element in decision.elements)
    assert "the database is down" in caplog.text


def test_alter_acls_writes_a_resource_in_one_record() -> None:
    api, image = AlterAcls(True), MetadataImage(acls=THERE)
    request = AlterAclsRequest([on("orders", action(DELETE), action(ADD, "User:c"))])
    (decided,) = api.decide(context(0), request, image, {}).elements
    (record,) = decided.records
    assert isinstance(record, AclRecord)
