"""The one question that every API asks: may the asker of this request do that?

`Authorize` is bound to one request, to the ACLs of one moment and to the log of what was decided;
APIs hold nothing else of authorization. Pure but for the log, which is handed in.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final, Protocol, get_args

from bridgehead.authorizer import (
    AclOperation,
    Acls,
    Action,
    Asker,
    Authorizer,
    Operation,
    ResourceType,
    Verdict,
)

_log = logging.getLogger(__name__)
CLUSTER_NAME: Final = "kafka-cluster"
OPERATION_CODES: Final[Mapping[AclOperation, int]] = {
    "ALL": 2,
    **{word: code for code, word in enumerate(get_args(Operation), start=3)},
}
# What can be allowed on a resource: the fields of authorized operations (kafka-semantics 6.3).
TOPIC_OPERATIONS: Final[tuple[Operation, ...]] = (
    *("READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE"),
    *("DESCRIBE_CONFIGS", "ALTER_CONFIGS"),
)
GROUP_OPERATIONS: Final[tuple[Operation, ...]] = ("READ", "DELETE", "DESCRIBE")
CLUSTER_OPERATIONS: Final[tuple[Operation, ...]] = (
    *("CREATE", "ALTER", "DESCRIBE", "CLUSTER_ACTION"),
    *("DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE"),
)


class Authorize(Protocol):
    """(operation, resource type, resource name) -> allowed, for the asker of one request.

    `count` is how often the request names the resource, which the log tells. Denials of what was
    not really asked for, as when a list is filtered, are not logged (kafka-semantics 6.5).
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
    ) -> bool:
        """See the class."""
        ...


class Audit(Protocol):
    """Where verdicts are told."""

    def told(
        self,
        asker: Asker,
        action: Action,
        verdict: Verdict,
        *,
        count: int,
        log_if_denied: bool,
        log_if_allowed: bool,
    ) -> None:
        """Write what the log's level asks for."""
        ...

    def flush(self) -> None:
        """Hand over what was told."""
        ...

    def close(self) -> None:
        """The node stops."""
        ...


# (who asks, the ACLs of the moment) -> the question bound to both.
BindAuthorize = Callable[[Asker, Acls], Authorize]


def allow_everything(
    _operation: Operation,
    _resource_type: ResourceType,
    _resource_name: str,
    /,
    *,
    count: int = 1,
    log_if_denied: bool = True,
    log_if_allowed: bool = True,
) -> bool:
    """What is allowed while no authorizer is configured."""
    return True


def nothing_is_allowed(
    _operation: Operation,
    _resource_type: ResourceType,
    _resource_name: str,
    /,
    *,
    count: int = 1,
    log_if_denied: bool = True,
    log_if_allowed: bool = True,
) -> bool:
    """What is allowed before a request is bound to ACLs."""
    return False


def no_authorizer(_asker: Asker, _acls: Acls) -> Authorize:
    """Bind nothing: see `allow_everything`."""
    return allow_everything


def bind_authorize(authorizer: Authorizer, audit: Audit) -> BindAuthorize:
    """Return what makes an `Authorize` of one request with this authorizer."""

    def bind(asker: Asker, acls: Acls) -> Authorize:
        def authorize(
            operation: Operation,
            resource_type: ResourceType,
            resource_name: str,
            /,
            *,
            count: int = 1,
            log_if_denied: bool = True,
            log_if_allowed: bool = True,
        ) -> bool:
            action = Action(operation, resource_type, resource_name)
            try:
                verdict = authorizer.authorize(asker, action, acls)
            except Exception:
                # Somebody's own authorizer; what is not decided is not allowed.
                _log.exception("the authorizer failed on %s; it counts as denied", action)
                verdict = Verdict(False, "the authorizer failed")
            audit.told(
                asker,
                action,
                verdict,
                count=count,
                log_if_denied=log_if_denied,
                log_if_allowed=log_if_allowed,
            )
            return verdict.allowed

        return authorize

    return bind


def asked_once(authorize: Authorize) -> Authorize:
    """Return the same, but what was answered is neither asked nor told again."""
    answers: dict[tuple[str, str, str], bool] = {}

    def ask(
        operation: Operation,
        resource_type: ResourceType,
        resource_name: str,
        /,
        *,
        count: int = 1,
        log_if_denied: bool = True,
        log_if_allowed: bool = True,
    ) -> bool:
        question = operation, resource_type, resource_name
        if question not in answers:
            answers[question] = authorize(
                *question,
                count=count,
                log_if_denied=log_if_denied,
                log_if_allowed=log_if_allowed,
            )
        return answers[question]

    return ask


def quietly(authorize: Authorize) -> Authorize:
    """Return the same question, of which the log is told no more than of filtered lists."""

    def ask(
        operation: Operation,
        resource_type: ResourceType,
        resource_name: str,
        /,
        *,
        count: int = 1,
        log_if_denied: bool = True,
        log_if_allowed: bool = True,
    ) -> bool:
        return authorize(
            operation,
            resource_type,
            resource_name,
            count=count,
            log_if_denied=False,
            log_if_allowed=False,
        )

    return ask


def authorized_operations(
    authorize: Authorize,
    operations: tuple[Operation, ...],
    resource_type: ResourceType,
    name: str,
) -> int:
    """Return what the asker may do with a resource, one bit per operation's code."""
    return sum(
        1 << OPERATION_CODES[operation]
        for operation in operations
        if authorize(operation, resource_type, name, log_if_denied=False, log_if_allowed=False)
    )
