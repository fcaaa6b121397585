"""CreateAcls, DeleteAcls and DescribeAcls beyond what was recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bridgehead.authorizer import AccessControlEntry, ResourcePattern
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.create_acls import AclCreation, CreateAclsRequest
from bridgehead.kafka_wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from cluster_model.acls import AclSet
from cluster_model.image import MetadataImage
from controller.apis.base import Outcome, RequestContext
from controller.apis.create_acls import CreateAcls
from controller.apis.delete_acls import DeleteAcls
from controller.store.outcomes import RequestOutcomes, decode_outcomes, encode_outcomes
from envelope.messages import RequestIdentity
from tests.unit.authorizing import Rule
from tests.unit.request_contexts import a_context

TOPIC, LITERAL, PREFIXED, ANY, READ, ALLOW = 2, 3, 4, 1, 3, 3
ORDERS = ResourcePattern("TOPIC", "LITERAL", "orders")
ALICE = AccessControlEntry("User:alice", "*", "READ", "ALLOW")
BOB = AccessControlEntry("User:bob", "*", "READ", "ALLOW")


def context(rule: Rule | bool = True) -> RequestContext:
    return a_context(30, 3, rule)


def creating(*rows: tuple[str, str], pattern_type: int = LITERAL) -> CreateAclsRequest:
    return CreateAclsRequest(
        [AclCreation(TOPIC, name, pattern_type, who, "*", READ, ALLOW) for name, who in rows]
    )


def meaning(name: str | None, who: str | None = None) -> DeleteAclsFilter:
    return DeleteAclsFilter(TOPIC, name, LITERAL if name else ANY, who, None, ANY, ANY)


def executed(
    api: Any, request: Any, image: MetadataImage, settled: Mapping[str, Outcome] | None = None
) -> tuple[Any, MetadataImage, dict[str, Outcome]]:
    """The answer, the image afterwards, and the outcomes, which went through their znode."""
    decision = api.decide(context(), request, image, settled or {})
    outcomes = dict(settled or {})
    for decided in decision.elements:
        outcomes[decided.element] = decided.outcome
        image = image.replay(decided.records)
    identity = RequestIdentity(1, "i", 1)
    stored = encode_outcomes(1, [RequestOutcomes(identity, "r", outcomes)])
    (read,) = decode_outcomes("/p", stored)
    return api.answer(context(), request, outcomes, image, frozenset()), image, dict(read.elements)


def codes(answer: Any) -> list[int]:
    return [each.error_code for each in answer.results]


def test_rules_of_one_pattern_are_one_write_and_keep_their_order() -> None:
    """Whatever stands between them in the request; what is there already is written no more."""
    request = creating(("orders", "User:alice"), ("other", "User:x"), ("orders", "User:bob"))
    decision = CreateAcls(True).decide(context(), request, MetadataImage(), {})
    records = [record for decided in decision.elements for record in decided.records]
    assert [(r.pattern.name, len(r.entries)) for r in records] == [("orders", 2), ("other", 1)]
    _, image, _ = executed(CreateAcls(True), request, MetadataImage())
    assert image.acls.entries(ORDERS) == (ALICE, BOB)
    again = CreateAcls(True).decide(context(), request, image, {})
    assert [decided.records for decided in again.elements] == [(), ()]


def test_what_cannot_be_stored_fails_its_pattern_alone() -> None:
    """A principal that is none, a name that no znode can have: -1, and the others are made."""
    request = creating(
        ("orders", "User:alice"), ("orders", "alice"), ("a\nb", "User:x"), ("fine", "User:x")
    )
    answer, image, _ = executed(CreateAcls(True), request, MetadataImage())
    assert codes(answer) == [-1, -1, -1, 0]
    assert [pattern.name for pattern, _ in image.acls] == ["fine"]


def test_one_creation_for_anything_fails_them_all() -> None:
    """ANY and MATCH belong into filters."""
    for pattern_type in (1, 2):
        request = creating(("orders", "User:alice"), pattern_type=pattern_type)
        request.creations.insert(0, creating(("fine", "User:x")).creations[0])
        answer, image, _ = executed(CreateAcls(True), request, MetadataImage())
        assert (codes(answer), len(image.acls)) == ([-1, -1], 0)


def test_without_an_authorizer_there_are_no_acls() -> None:
    """SECURITY_DISABLED in each place, with Kafka's text; who may not is told that first."""
    answer, *_ = executed(CreateAcls(False), creating(("a", "User:a")), MetadataImage())
    (told,) = answer.results
    assert (told.error_code, told.error_message) == (54, "No Authorizer is configured.")
    answer, *_ = executed(DeleteAcls(False), DeleteAclsRequest([meaning("a")]), MetadataImage())
    assert answer.filter_results[0].error_code == ErrorCode.SECURITY_DISABLED
    (denied,) = (
        CreateAcls(False)
        .decide(context(False), creating(("a", "User:a")), MetadataImage(), {})
        .elements
    )
    assert denied.outcome.error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_a_rule_that_two_filters_mean_is_told_under_the_first() -> None:
    """And goes once."""
    image = MetadataImage(acls=AclSet.of({ORDERS: (ALICE, BOB)}))
    request = DeleteAclsRequest([meaning("orders", "User:bob"), meaning(None), meaning("none")])
    answer, image, _ = executed(DeleteAcls(True), request, image)
    told = [[acl.principal for acl in each.matching_acls] for each in answer.filter_results]
    assert told == [["User:bob"], ["User:alice"], []]
    assert len(image.acls) == 0


def test_a_deletion_that_comes_again_is_told_what_it_removed() -> None:
    """After a failover the rules are gone; the outcomes of the request still know them."""
    other = ResourcePattern("TOPIC", "PREFIXED", "o")
    image = MetadataImage(acls=AclSet.of({ORDERS: (ALICE, BOB), other: (ALICE,)}))
    request = DeleteAclsRequest([meaning(None)])
    first, image, stored = executed(DeleteAcls(True), request, image)
    second, _, _ = executed(DeleteAcls(True), request, image, stored)
    assert second == first
    assert len(second.filter_results[0].matching_acls) == 3


def test_a_deletion_spares_what_came_after_it() -> None:
    """A pattern that was done is not done again, though somebody has made new rules meanwhile."""
    image = MetadataImage(acls=AclSet.of({ORDERS: (ALICE,)}))
    request = DeleteAclsRequest([meaning("orders")])
    _, image, stored = executed(DeleteAcls(True), request, image)
    _, image, _ = executed(CreateAcls(True), creating(("orders", "User:bob")), image)
    answer, image, _ = executed(DeleteAcls(True), request, image, stored)
    assert image.acls.entries(ORDERS) == (BOB,)
    assert [acl.principal for acl in answer.filter_results[0].matching_acls] == ["User:alice"]
