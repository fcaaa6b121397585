"""AlterUserScramCredentials, key 51: sets and deletes credentials of users (KIP-554).

One invalid entry fails all entries of its user. Users are independent (docs/kafka/scram.md), with
two exceptions, as in Kafka: an empty salted password, or a user named `.` or `..`, fails every user
of the request. Salted passwords and keys derived from them appear only in the records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialUpsertion,
)
from cluster_model.acls.authorization import CLUSTER_NAME
from cluster_model.client_quotas import USER_KEYS
from cluster_model.image import MetadataImage
from cluster_model.records import ConfigRecord, ConfigResource
from cluster_model.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    MECHANISM_NAMES,
    credential_text,
)
from cluster_model.znodes.entity_names import sanitize
from controller.apis.base import DONE, AdminApi, Decided, Decision, Outcome, RequestContext, Results

_INVALID_ZNODE_NAMES: Final = (".", "..")
_EMPTY_NAME: Final = Outcome(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
_UNKNOWN_MECHANISM: Final = Outcome(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
_TOO_FEW: Final = Outcome(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
_TOO_MANY: Final = Outcome(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
_TWICE: Final = Outcome(
    ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
)
_NOT_THERE: Final = Outcome(
    ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
)
# As in Kafka, this error of one user has its default text.
_FAULT: Final = Outcome.with_default_text(ErrorCode.UNKNOWN_SERVER_ERROR)


@dataclass(frozen=True, slots=True)
class AlterUserScramCredentials(AdminApi):
    """Decides AlterUserScramCredentials requests."""

    api_key: ClassVar[ApiKey] = ApiKey.ALTER_USER_SCRAM_CREDENTIALS

    def decide(
        self,
        context: RequestContext,
        request: AlterUserScramCredentialsRequest,
        image: MetadataImage,
        committed: Mapping[str, Outcome],
    ) -> Decision:
        """See AdminApi.decide. Rejected users come first, as in Kafka's responses."""
        if not context.authorize("ALTER", "CLUSTER", CLUSTER_NAME):
            denied = Outcome(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            return Decision([Decided(user, denied) for user in sorted(_users(request))])
        rejected = _rejected(request, image)
        remaining = [user for user in _users(request) if user not in rejected]
        if any(user in _INVALID_ZNODE_NAMES for user in remaining):
            # No znode can have such a name. When Kafka tries to read the user's znode, an exception
            # fails the whole request.
            fault = Outcome(ErrorCode.UNKNOWN_SERVER_ERROR)
            return Decision([Decided(user, fault) for user in sorted(_users(request))])
        if any(
            not upsertion.salted_password and upsertion.name not in rejected
            for upsertion in request.upsertions
        ):
            rejected |= dict.fromkeys(remaining, _FAULT)
            remaining = []
        records = _records([user for user in remaining if user not in committed], request, image)
        for user, record in records.items():
            if any(key not in USER_KEYS for key in record.configs):
                rejected[user] = _FAULT  # Kafka fails too if the znode has an unknown config.
        decided = [Decided(user, outcome) for user, outcome in rejected.items()]
        decided += [Decided(u, DONE, (r,)) for u, r in records.items() if u not in rejected]
        return Decision([change for change in decided if change.element not in committed])

    def conflict(self, element: str) -> Outcome:
        return _FAULT

    def response(
        self, context: RequestContext, request: AlterUserScramCredentialsRequest, results: Results
    ) -> Any:
        """See AdminApi.response: errors first; the message of a success is empty."""
        rows = sorted(results.outcomes.items(), key=lambda row: row[1].succeeded)
        return AlterUserScramCredentialsResponse(
            throttle_time_ms=0,
            results=[
                AlterUserScramCredentialsResult(
                    user=user,
                    error_code=outcome.error,
                    error_message="" if outcome.succeeded else outcome.message,
                )
                for user, outcome in rows
            ],
        )


def _pairs(request: AlterUserScramCredentialsRequest) -> list[tuple[str, int]]:
    """Return the user and mechanism of each entry."""
    return [(change.name, change.mechanism) for change in request.upsertions] + [
        (change.name, change.mechanism) for change in request.deletions
    ]


def _users(request: AlterUserScramCredentialsRequest) -> list[str]:
    """Return the distinct users in the order of the request."""
    return list(dict.fromkeys(user for user, _ in _pairs(request)))


def _rejected(
    request: AlterUserScramCredentialsRequest, image: MetadataImage
) -> dict[str, Outcome]:
    """Return the outcome of each user that has an invalid entry."""
    rejected: dict[str, Outcome] = {}
    for deletion in request.deletions:
        if not deletion.name:
            rejected[deletion.name] = _EMPTY_NAME
        elif deletion.mechanism not in MECHANISM_NAMES:
            rejected[deletion.name] = _UNKNOWN_MECHANISM
    for upsertion in request.upsertions:
        problem = _problem(upsertion)
        if problem is not None:
            rejected[upsertion.name] = problem
    for (user, _), count in Counter(_pairs(request)).items():
        if count > 1:
            rejected.setdefault(user, _TWICE)
    for deletion in request.deletions:
        if deletion.name not in rejected and deletion.name not in _INVALID_ZNODE_NAMES:
            stored = image.config("users", sanitize(deletion.name))
            if MECHANISM_NAMES[deletion.mechanism] not in stored:
                rejected[deletion.name] = _NOT_THERE
    return rejected


def _problem(upsertion: ScramCredentialUpsertion) -> Outcome | None:
    """Return why a credential is invalid, or None."""
    if not upsertion.name:
        return _EMPTY_NAME
    if upsertion.mechanism not in MECHANISM_NAMES:
        return _UNKNOWN_MECHANISM
    if upsertion.iterations > ITERATIONS_MAX:
        return _TOO_MANY
    return _TOO_FEW if upsertion.iterations < ITERATIONS_MIN else None


def _records(
    users: list[str], request: AlterUserScramCredentialsRequest, image: MetadataImage
) -> dict[str, ConfigRecord]:
    """Return the configs of each user with all its entries applied."""
    configs = {user: dict(image.config("users", sanitize(user))) for user in users}
    for deletion in request.deletions:
        if deletion.name in configs:
            configs[deletion.name].pop(MECHANISM_NAMES[deletion.mechanism], None)
    for change in request.upsertions:
        if change.name in configs:
            configs[change.name][MECHANISM_NAMES[change.mechanism]] = credential_text(
                change.mechanism, change.salt, change.salted_password, change.iterations
            )
    return {
        user: ConfigRecord(ConfigResource("users", sanitize(user)), changed)
        for user, changed in configs.items()
    }
