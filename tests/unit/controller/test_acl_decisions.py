"""CreateAcls and DeleteAcls: cases that no recording covers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bridgehead.authorizer import AccessControlEntry, ResourcePattern
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.create_acls import AclCreation, CreateAclsRequest
from bridgehead.kafka_wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from cluster_model.acls.bindings import AclSet
from cluster_model.image import MetadataImage
from cluster_model.records import AclRecord
from controller.apis.base import Outcome, RequestContext, Results
from controller.apis.create_acls import CreateAcls
from controller.apis.delete_acls import DeleteAcls
from controller.store.outcomes import RequestOutcomes, decode_outcomes, encode_outcomes
from envelope.messages import RequestIdentity
from tests.unit.broker_proxy.client_requests import Rule
from tests.unit.controller.request_contexts import a_context

TOPIC, LITERAL, PREFIXED, ANY, READ, ALLOW = 2, 3, 4, 1, 3, 3
ORDERS = ResourcePattern("TOPIC", "LITERAL", "orders")
ALICE = AccessControlEntry("User:alice", "*", "READ", "ALLOW")
BOB = AccessControlEntry("User:bob", "*", "READ", "ALLOW")


def context(rule: Rule | bool = True) -> RequestContext:
    return a_context(30, 3, rule)


def creating(*rows: tuple[str, str], pattern_type: int = LITERAL) -> CreateAclsRequest:
    return CreateAclsRequest(
        [
            AclCreation(TOPIC, name, pattern_type, principal, "*", READ, ALLOW)
            for name, principal in rows
        ]
    )


def matching(name: str | None, principal: str | None = None) -> DeleteAclsFilter:
    return DeleteAclsFilter(TOPIC, name, LITERAL if name else ANY, principal, None, ANY, ANY)


def executed(
    api: Any, request: Any, image: MetadataImage, committed: Mapping[str, Outcome] | None = None
) -> tuple[Any, MetadataImage, dict[str, Outcome]]:
    """Execute a request; return response, new image, and outcomes as read from their znode."""
    decision = api.decide(context(), request, image, committed or {})
    outcomes = dict(committed or {})
    for decided in decision.elements:
        outcomes[decided.element] = decided.outcome
        image = image.replay(decided.records)
    identity = RequestIdentity(1, "i", 1)
    stored = encode_outcomes(1, [RequestOutcomes(identity, "r", outcomes)])
    (read,) = decode_outcomes("/p", stored)
    return api.response(context(), request, Results(outcomes, image)), image, dict(read.elements)


def test_create_acls_writes_each_pattern_once_in_request_order() -> None:
    """A repeated request writes nothing."""
    request = creating(("orders", "User:alice"), ("other", "User:x"), ("orders", "User:bob"))
    decision = CreateAcls(True).decide(context(), request, MetadataImage(), {})
    records = [record for decided in decision.elements for record in decided.records]
    written = [(r.pattern.name, len(r.entries)) for r in records if isinstance(r, AclRecord)]
    assert (written, len(records)) == ([("orders", 2), ("other", 1)], 2)
    _, image, _ = executed(CreateAcls(True), request, MetadataImage())
    assert image.acls.entries(ORDERS) == (ALICE, BOB)
    again = CreateAcls(True).decide(context(), request, image, {})
    assert [decided.records for decided in again.elements] == [(), ()]


def test_invalid_acls_fail_their_pattern_and_invalid_pattern_types_fail_the_request() -> None:
    """An ACL is invalid if its principal has no type or its resource name is no valid znode name.

    Only filters may have the pattern types ANY (1) and MATCH (2).
    """
    rows = ("orders", "User:alice"), ("orders", "alice"), ("a\nb", "User:x"), ("fine", "User:x")
    response, image, _ = executed(CreateAcls(True), creating(*rows), MetadataImage())
    assert [result.error_code for result in response.results] == [-1, -1, -1, 0]
    assert [pattern.name for pattern, _ in image.acls] == ["fine"]
    for pattern_type in (1, 2):
        request = creating(("orders", "User:alice"), pattern_type=pattern_type)
        request.creations += creating(("fine", "User:x")).creations
        response, image, _ = executed(CreateAcls(True), request, MetadataImage())
        assert [result.error_code for result in response.results] == [-1, -1]
        assert len(image.acls) == 0


def test_unauthorized_create_acls_is_denied_even_without_an_authorizer() -> None:
    request = creating(("a", "User:a"))
    (denied,) = CreateAcls(False).decide(context(False), request, MetadataImage(), {}).elements
    assert denied.outcome.error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_delete_acls_lists_an_acl_only_under_the_first_matching_filter() -> None:
    image = MetadataImage(acls=AclSet.of({ORDERS: (ALICE, BOB)}))
    request = DeleteAclsRequest([matching("orders", "User:bob"), matching(None), matching("none")])
    response, image, _ = executed(DeleteAcls(True), request, image)
    listed = [[acl.principal for acl in result.matching_acls] for result in response.filter_results]
    assert listed == [["User:bob"], ["User:alice"], []]
    assert len(image.acls) == 0


def test_resent_delete_acls_lists_the_acls_that_it_removed() -> None:
    """The ACLs come from the outcomes, because the image no longer has them."""
    other = ResourcePattern("TOPIC", "PREFIXED", "o")
    image = MetadataImage(acls=AclSet.of({ORDERS: (ALICE, BOB), other: (ALICE,)}))
    request = DeleteAclsRequest([matching(None)])
    first, image, stored = executed(DeleteAcls(True), request, image)
    second, _, _ = executed(DeleteAcls(True), request, image, stored)
    assert second == first
    assert len(second.filter_results[0].matching_acls) == 3


def test_resent_delete_acls_keeps_acls_that_were_added_later() -> None:
    image = MetadataImage(acls=AclSet.of({ORDERS: (ALICE,)}))
    request = DeleteAclsRequest([matching("orders")])
    _, image, stored = executed(DeleteAcls(True), request, image)
    _, image, _ = executed(CreateAcls(True), creating(("orders", "User:bob")), image)
    response, image, _ = executed(DeleteAcls(True), request, image, stored)
    assert image.acls.entries(ORDERS) == (BOB,)
    assert [acl.principal for acl in response.filter_results[0].matching_acls] == ["User:alice"]
