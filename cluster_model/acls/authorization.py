"""Authorization checks: may the client of this request perform that operation?

APIs receive an `Authorize`, which is bound to one request, to the current ACLs and to the
authorizer log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, get_args

from bridgehead.authorizer import (
    AclOperation,
    Acls,
    Action,
    Authorizer,
    Operation,
    Requester,
    ResourceType,
    Verdict,
)

_log = logging.getLogger(__name__)
CLUSTER_NAME: Final = "kafka-cluster"
OPERATION_CODES: Final[Mapping[AclOperation, int]] = {
    "ALL": 2,
    **{word: code for code, word in enumerate(get_args(Operation), start=3)},
}
# Operations on a resource, for the `authorized_operations` fields
# (docs/kafka/acls.md#operations-of-a-resource).
TOPIC_OPERATIONS: Final[tuple[Operation, ...]] = (
    *("READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE"),
    *("DESCRIBE_CONFIGS", "ALTER_CONFIGS"),
)
GROUP_OPERATIONS: Final[tuple[Operation, ...]] = ("READ", "DELETE", "DESCRIBE")
CLUSTER_OPERATIONS: Final[tuple[Operation, ...]] = (
    *("CREATE", "ALTER", "DESCRIBE", "CLUSTER_ACTION"),
    *("DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE"),
)


class AuthorizerFailedError(Exception):
    """The authorizer raised an exception, which is logged."""


class Authorize(Protocol):
    """(operation, resource type, resource name) -> allowed, for the client of one request.

    `count` is how often the request names the resource; it is logged. If `log_if_denied` is False,
    a denial is logged at TRACE only. If `log_if_allowed` is False, an allowed operation is logged
    at TRACE only. Both are False, for example, if the check only filters a list
    (docs/kafka/logs.md#authorizer-log). If the authorizer fails, the operation is denied; with
    `may_raise`, AuthorizerFailedError is raised instead.
    """

    def __call__(
        self,
        operation: Operation,
        resource_type: ResourceType,
        resource_name: str,
        /,
        *,
        count: int = 1,
        log_if_denied: bool = True,
        log_if_allowed: bool = True,
        may_raise: bool = False,
    ) -> bool:
        """Return whether the operation is allowed."""
        ...


class Audit(Protocol):
    """Logs the verdicts."""

    def record(
        self,
        requester: Requester,
        action: Action,
        verdict: Verdict,
        *,
        count: int,
        log_if_denied: bool,
        log_if_allowed: bool,
    ) -> None:
        """Log one verdict, if the log level includes it."""
        ...


# Returns the Authorize for one request: for its client and these ACLs.
BindAuthorize = Callable[[Requester, Acls], Authorize]


def allow_everything(*_question: Any, **_log: Any) -> bool:
    """Allow everything: the Authorize of a cluster without an authorizer."""
    return True


def no_authorizer(_requester: Requester, _acls: Acls) -> Authorize:
    """See `allow_everything`."""
    return allow_everything


def bind_authorize(authorizer: Authorizer, audit: Audit) -> BindAuthorize:
    """Return a function that binds this authorizer to a request."""

    def bind(requester: Requester, acls: Acls) -> Authorize:
        def authorize(
            operation: Operation,
            resource_type: ResourceType,
            resource_name: str,
            /,
            *,
            count: int = 1,
            log_if_denied: bool = True,
            log_if_allowed: bool = True,
            may_raise: bool = False,
        ) -> bool:
            action = Action(operation, resource_type, resource_name)
            try:
                verdict = authorizer.authorize(requester, action, acls)
            except Exception as error:
                # A custom authorizer can fail. Without a verdict the action is denied.
                _log.exception("the authorizer failed on %s; denied", action)
                if may_raise:
                    raise AuthorizerFailedError from error
                verdict = Verdict(False, "the authorizer failed")
            audit.record(
                requester,
                action,
                verdict,
                count=count,
                log_if_denied=log_if_denied,
                log_if_allowed=log_if_allowed,
            )
            return verdict.allowed

        return authorize

    return bind


def cached_authorize(authorize: Authorize) -> Authorize:
    """Return an Authorize that checks and logs each action once."""
    verdicts: dict[tuple[Any, ...], bool] = {}

    def check(*action: Any, **log: Any) -> bool:
        if action not in verdicts:
            verdicts[action] = authorize(*action, **log)
        return verdicts[action]

    return check


def without_logging(authorize: Authorize) -> Authorize:
    """Return an Authorize that logs at TRACE only."""

    def check(*action: Any, **log: Any) -> bool:
        return authorize(*action, **{**log, "log_if_denied": False, "log_if_allowed": False})

    return check


def authorized_operations(
    authorize: Authorize,
    operations: tuple[Operation, ...],
    resource_type: ResourceType,
    name: str,
) -> int:
    """Return the operations that the client may perform, one bit per operation code."""
    return sum(
        1 << OPERATION_CODES[operation]
        for operation in operations
        if authorize(operation, resource_type, name, log_if_denied=False, log_if_allowed=False)
    )
