"""SCRAM credentials of users (KIP-554). Passwords are salted here and never sent."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bridgehead.admin.errors import AdminError
from bridgehead.admin.logins import HASH_NAMES
from bridgehead.admin.requests import Batch, BrokerResponse, Plan, Request, one
from bridgehead.admin.results import Try
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.codes import ExtensibleCode

_SALT_BYTES = 24


class ScramMechanism(ExtensibleCode):
    """A mechanism, with Kafka's code."""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2


class ScramCredentialInfo(NamedTuple):
    """A credential without its secrets."""

    mechanism: ScramMechanism
    iterations: int


class ScramUpsertion:
    """Sets a user's password for one mechanism. The repr does not show the password."""

    def __init__(
        self, user: str, mechanism: ScramMechanism, password: str, iterations: int = 4096
    ) -> None:
        self.user, self.mechanism, self.iterations = user, mechanism, iterations
        self.salt = os.urandom(_SALT_BYTES)
        name = HASH_NAMES[mechanism.name.replace("_", "-")]
        self.salted_password = hashlib.pbkdf2_hmac(name, password.encode(), self.salt, iterations)

    def __repr__(self) -> str:
        return f"ScramUpsertion({self.user!r}, {self.mechanism.name}, iterations={self.iterations})"


class ScramDeletion(NamedTuple):
    """Removes a user's credential for one mechanism."""

    user: str
    mechanism: ScramMechanism


def describe_user_scram_credentials(
    users: Collection[str] | None = None,
) -> Plan[dict[str, Try[list[ScramCredentialInfo]]]]:
    """Return the credentials of users; None means all users."""
    from bridgehead.kafka_wire.messages.describe_user_scram_credentials import (
        DescribeUserScramCredentialsRequest,
        UserName,
    )

    # An empty list means all users. Some versions of Kafka never answer a null list.
    message = DescribeUserScramCredentialsRequest([UserName(name) for name in users or ()])
    if users is not None and not users:
        return {}
    response = yield from one(Request(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, lambda _: message))
    response.check(response.message.error_code, response.message.error_message)
    return {result.user: response.result(result, _infos) for result in response.message.results}


def _infos(result: Any) -> list[ScramCredentialInfo]:
    return [
        ScramCredentialInfo(ScramMechanism(info.mechanism), info.iterations)
        for info in result.credential_infos
    ]


def alter_user_scram_credentials(
    alterations: Sequence[ScramUpsertion | ScramDeletion],
) -> Plan[dict[str, AdminError | None]]:
    """Set and remove credentials; return the error of each user."""
    from bridgehead.kafka_wire.messages.alter_user_scram_credentials import (
        AlterUserScramCredentialsRequest,
        ScramCredentialDeletion,
        ScramCredentialUpsertion,
    )

    def request(left: Mapping[str, list[ScramUpsertion | ScramDeletion]]) -> Request:
        message = AlterUserScramCredentialsRequest()
        for requested_change in (change for changes in left.values() for change in changes):
            if isinstance(requested_change, ScramDeletion):
                message.deletions.append(ScramCredentialDeletion(*requested_change))
            else:
                message.upsertions.append(
                    ScramCredentialUpsertion(
                        requested_change.user,
                        requested_change.mechanism,
                        requested_change.iterations,
                        requested_change.salt,
                        requested_change.salted_password,
                    )
                )
        return Request(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, lambda _: message)

    def results(response: BrokerResponse) -> Iterator[tuple[str, Try[None]]]:
        for result in response.message.results:
            yield result.user, response.done(result)

    by_user: dict[str, list[ScramUpsertion | ScramDeletion]] = {}
    for alteration in alterations:
        by_user.setdefault(alteration.user, []).append(alteration)
    return (yield from Batch(by_user, request, results).errors())
