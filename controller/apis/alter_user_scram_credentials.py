"""AlterUserScramCredentials, key 51: credentials of users are set and deleted (KIP-554).

One wrong entry fails everything that is asked for its user; users are independent of each other
(kafka-semantics 3.10), with Kafka's one exception: a salted password that cannot be used fails
every user of the request. Salted passwords and the keys derived from them appear in nothing but
the records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from bridgehead.kafka_wire.error_responses import error_response
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialUpsertion,
)
from cluster_model.client_quotas import USER_KEYS
from cluster_model.entity_names import sanitize
from cluster_model.image import MetadataImage
from cluster_model.records import ConfigRecord, ConfigResource
from cluster_model.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    MECHANISM_NAMES,
    credential_text,
)
from controller.apis.base import DONE, Decided, Decision, Outcome, RequestContext

_CLUSTER_NAME: Final = "kafka-cluster"
_WITHOUT_A_PATH: Final = (".", "..")
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
# The code's own sentence is said here, unlike anywhere else.
_FAULT: Final = Outcome(ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR.default_text)


@dataclass(frozen=True, slots=True)
class AlterUserScramCredentials:
    """Changes credentials, each user on its own."""

    api_key: ClassVar[int] = 51

    def decide(
        self,
        context: RequestContext,
        request: AlterUserScramCredentialsRequest,
        image: MetadataImage,
        settled: Mapping[str, Outcome],
    ) -> Decision:
        """See AdminApi.decide. Refused users come first, as in Kafka's answers."""
        if not context.authorize("ALTER", "CLUSTER", _CLUSTER_NAME):
            denied = Outcome(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            return Decision([Decided(user, denied) for user in sorted(_users(request))])
        refused = _refused(request, image)
        left = [user for user in _users(request) if user not in refused]
        if any(user in _WITHOUT_A_PATH for user in left):
            # No znode can have such a name: Kafka fails the whole request on reading it.
            fault = Outcome(ErrorCode.UNKNOWN_SERVER_ERROR)
            return Decision([Decided(user, fault) for user in sorted(_users(request))])
        if any(not each.salted_password for each in request.upsertions if each.name in left):
            refused |= dict.fromkeys(left, _FAULT)
            left = []
        records = {user: _record(user, request, image) for user in left if user not in settled}
        for user, record in records.items():
            if any(key not in USER_KEYS for key in record.configs):
                refused[user] = _FAULT  # Somebody else's key: Kafka refuses to write it again.
        decided = [Decided(user, outcome) for user, outcome in refused.items()]
        decided += [Decided(u, DONE, (r,)) for u, r in records.items() if u not in refused]
        return Decision([each for each in decided if each.element not in settled])

    def conflict(self, element: str) -> Outcome:
        """See AdminApi.conflict."""
        return _FAULT

    def answer(
        self,
        context: RequestContext,
        request: AlterUserScramCredentialsRequest,
        outcomes: Mapping[str, Outcome],
        image: MetadataImage,
        unfinished: frozenset[str],
    ) -> Any:
        """See AdminApi.answer: errors first; a success has the empty text."""
        rows = sorted(outcomes.items(), key=lambda row: row[1].succeeded)
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

    def refuse(
        self,
        request: AlterUserScramCredentialsRequest,
        version: int,
        error: ErrorCode,
        message: str | None,
    ) -> Any:
        """See AdminApi.refuse: every user once, sorted."""
        return error_response(self.api_key, request, version, error, message)


def _pairs(request: AlterUserScramCredentialsRequest) -> list[tuple[str, int]]:
    """Return user and mechanism of everything that is asked."""
    return [(change.name, change.mechanism) for change in request.upsertions] + [
        (change.name, change.mechanism) for change in request.deletions
    ]


def _users(request: AlterUserScramCredentialsRequest) -> list[str]:
    """Return the distinct users in the order in which they are named."""
    return list(dict.fromkeys(user for user, _ in _pairs(request)))


def _refused(request: AlterUserScramCredentialsRequest, image: MetadataImage) -> dict[str, Outcome]:
    """Return the users of whom something asked cannot be done, with the check that says so."""
    refused: dict[str, Outcome] = {}
    for deletion in request.deletions:
        if not deletion.name:
            refused[deletion.name] = _EMPTY_NAME
        elif deletion.mechanism not in MECHANISM_NAMES:
            refused[deletion.name] = _UNKNOWN_MECHANISM
    for upsertion in request.upsertions:
        problem = _problem(upsertion)
        if problem is not None:
            refused[upsertion.name] = problem
    for (user, _), count in Counter(_pairs(request)).items():
        if count > 1:
            refused.setdefault(user, _TWICE)
    for deletion in request.deletions:
        if deletion.name not in refused and deletion.name not in _WITHOUT_A_PATH:
            stored = image.config("users", sanitize(deletion.name))
            if MECHANISM_NAMES[deletion.mechanism] not in stored:
                refused[deletion.name] = _NOT_THERE
    return refused


def _problem(upsertion: ScramCredentialUpsertion) -> Outcome | None:
    """Return what is wrong with one credential as such."""
    if not upsertion.name:
        return _EMPTY_NAME
    if upsertion.mechanism not in MECHANISM_NAMES:
        return _UNKNOWN_MECHANISM
    if upsertion.iterations > ITERATIONS_MAX:
        return _TOO_MANY
    return _TOO_FEW if upsertion.iterations < ITERATIONS_MIN else None


def _record(
    user: str, request: AlterUserScramCredentialsRequest, image: MetadataImage
) -> ConfigRecord:
    """Return a user's znode with everything done that is asked for it."""
    resource = ConfigResource("users", sanitize(user))
    configs = dict(image.configs.get(resource, {}))
    for deletion in request.deletions:
        if deletion.name == user:
            configs.pop(MECHANISM_NAMES[deletion.mechanism], None)
    for change in request.upsertions:
        if change.name == user:
            configs[MECHANISM_NAMES[change.mechanism]] = credential_text(
                change.mechanism, change.salt, change.salted_password, change.iterations
            )
    return ConfigRecord(resource, configs)
