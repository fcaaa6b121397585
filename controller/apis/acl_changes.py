"""What CreateAcls, DeleteAcls and AlterAcls have in common."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from bridgehead.authorizer import AccessControlEntry, ResourcePattern
from bridgehead.kafka_wire.errors import ErrorCode
from cluster_model.acls.authorization import CLUSTER_NAME
from cluster_model.acls.requests import NO_AUTHORIZER
from cluster_model.image import MetadataImage
from cluster_model.records import AclRecord
from controller.apis.base import DONE, Decided, Outcome, RequestContext


def whole_rejection(context: RequestContext, *, has_authorizer: bool) -> Outcome | None:
    """Return the error that fails a whole CreateAcls or DeleteAcls request, if there is one."""
    if not context.authorize("ALTER", "CLUSTER", CLUSTER_NAME):
        # Kafka's message is the toString() of its request objects. We send it only if the quirk
        # DENIAL_DUMPS_REQUEST is enabled.
        return Outcome.with_default_text(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if not has_authorizer:
        return Outcome(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    return None


def pattern_element(pattern: ResourcePattern) -> str:
    """Return the element name of a pattern, for example `TOPIC:LITERAL:orders`."""
    return ":".join(pattern)


def with_changes(
    element: str,
    pattern: ResourcePattern,
    image: MetadataImage,
    *,
    deleted: Collection[AccessControlEntry] = (),
    added: Iterable[AccessControlEntry] = (),
) -> Decided:
    """Delete entries of a pattern, then add others. Without a change nothing is written."""
    existing = image.acls.entries(pattern)
    kept = [entry for entry in existing if entry not in deleted]
    wanted = tuple(dict.fromkeys((*kept, *added)))
    if wanted == existing:
        return Decided(element, DONE)
    return Decided(element, DONE, (AclRecord(pattern, wanted),))
