"""A1: every committed change was authorized by the ACLs at the time of the decision.

The principal is the one that the client's broker authenticated, not the one that the controller
used. A change by an API without known rights (event_log/rights.py) is a violation. A broker below
the bridge release decides its own writes: it records the zxid of the ACLs that it used, or -1 if
the ACLs changed while it read them. Writes with -1 are not judged.

A request may be executed several times: after a conflict, or because it was sent again. A1 uses
the last execution whose image is older than the commit, or the last execution if no image is older.

A controller may decide on ACLs that are newer than the zxid of its image, because an earlier
request of the same round or a broker below the bridge release has changed them. So it is enough if
the ACLs at the commit allow the change. For a change of ACLs, the ACLs just before the commit are
used instead, because no change may grant its own right.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from event_log.properties import Violation
from event_log.rights import WRITES_ACLS, required_rights
from judge.history import NONE, History, Identity, identity_of, row_of
from judge.properties.reference_authorizer import Access, AclHistory
from judge.properties.violations import violation, zxid_row

NO_EPOCH: Final = 0  # the epoch in decisions of brokers below the bridge release


def check(history: History) -> Iterator[Violation | None]:
    """Judge every committed element of a request with a known principal."""
    acls = AclHistory(history)
    super_users = history.run.super_users or ()
    images: dict[tuple[Identity, int], list[int]] = defaultdict(list)
    for event in history.of_kind["execution_started"]:
        broker_id, incarnation, sequence = event["identity"]
        request = (broker_id, incarnation, sequence), event["epoch"]
        images[request].append(event["image_zxid"])
    epochs = {term.session: term.epoch for term in history.terms}
    for commit, outcome in history.outcomes:
        received = history.received.get(outcome.request_id)
        if received is None or outcome.error != NONE:
            continue
        rights = required_rights(received["api_key"], outcome.element)
        request = identity_of(outcome), epochs.get(commit.session, NO_EPOCH)
        image = _image_of(images.get(request, ()), commit.zxid)
        if rights is None or image < 0:
            continue
        requester = received["principal"], received["client_host"]
        times = [image]
        if request[1] != NO_EPOCH:
            times.append(commit.zxid - (received["api_key"] in WRITES_ACLS))
        accesses = [Access(*requester, *right) for right in rights]
        allowed = any(acls.allows(access, zxid) for access in accesses for zxid in times)
        if allowed or received["principal"] in super_users:
            yield None
            continue
        reason = f"by API {received['api_key']}, whose rights are not known"
        if rights:
            reason = f"without {rights[0][0]} on {rights[0][1]} {rights[0][2]}"
        sentence = (
            f"{outcome.request_id}: {received['principal']} changed {outcome.element} at zxid "
            f"{commit.zxid} {reason}"
        )
        key = f"{outcome.request_id}/{outcome.element}"
        yield violation("A1", key, [row_of(received), zxid_row(commit.zxid)], sentence)


def _image_of(images: Sequence[int], committed: int) -> int:
    """Return the zxid of the image on which a commit was decided; -1 if it is not known.

    This is the last image older than the commit, or the last image if none is older.
    """
    before = [image for image in images if image < committed]
    return (before or images or (-1,))[-1]
