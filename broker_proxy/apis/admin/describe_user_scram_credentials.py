"""DescribeUserScramCredentials, key 50: answered by every broker from ZooKeeper.

Returns mechanisms and iterations, never keys (docs/kafka/scram.md, KIP-554).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from bridgehead.slices import sliced
from broker_proxy.apis.admin.config_ports import ConfigReader, EntityReader
from broker_proxy.client_request import AuthorizeFor, ClientRequest, NeverRespondedError
from cluster_model.quirks import DESCRIBE_SCRAM_DENIED_HANGS, NO_QUIRKS, Quirks
from cluster_model.scram import MECHANISM_NAMES, credential_iterations
from cluster_model.znodes.entity_names import desanitize, sanitize

_NOT_THERE: Final = "Attempt to describe a user credential that does not exist: "
_TWICE: Final = "Cannot describe SCRAM credentials for the same user twice in a single request: "
_USERS: Final = "users"


class CredentialReader(ConfigReader, EntityReader, Protocol):
    """Reads one user's znode, or the znodes of all users."""


@dataclass(frozen=True, slots=True)
class DescribeUserScramCredentials:
    """Answers DescribeUserScramCredentials requests."""

    reader: CredentialReader
    authorize_for: AuthorizeFor
    quirks: Quirks = NO_QUIRKS
    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS

    async def handle(
        self, request: ClientRequest, message: DescribeUserScramCredentialsRequest
    ) -> Any:
        """Describe each named user once. If none is named, describe all users, sorted by name."""
        if not self.authorize_for(request)("DESCRIBE", "CLUSTER", "kafka-cluster"):
            if message.users is None and DESCRIBE_SCRAM_DENIED_HANGS in self.quirks:
                raise NeverRespondedError
            raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        names = [user.name async for user in sliced(message.users or ())]
        results = await self._named(names) if names else await self._all()
        return DescribeUserScramCredentialsResponse(
            throttle_time_ms=0, error_code=ErrorCode.NONE, error_message="", results=results
        )

    async def _all(self) -> list[DescribeUserScramCredentialsResult]:
        entities = await self.reader.read_entities(_USERS)
        users = {
            desanitize(resource.entity_name) or resource.entity_name: configs
            for resource, configs in entities.items()
            if "/" not in resource.entity_name and _has_credential(configs)
        }
        ordered = sorted(users, key=lambda name: name.encode("utf-16-be"))  # as Java compares
        return [_described(name, users[name]) async for name in sliced(ordered)]

    async def _named(self, names: list[str]) -> list[DescribeUserScramCredentialsResult]:
        counts = Counter(names)
        results = []
        async for name, count in sliced(counts.items()):
            if not name:
                error, text = ErrorCode.RESOURCE_NOT_FOUND, "Username must not be empty"
                results.append(_rejected(name, error, text))
            elif count > 1:
                results.append(_rejected(name, ErrorCode.DUPLICATE_RESOURCE, _TWICE + name))
            elif name in (".", ".."):
                # No znode can have such a name; Kafka's ZooKeeper client rejects it.
                error = ErrorCode.UNKNOWN_SERVER_ERROR
                results.append(_rejected(name, error, error.default_text))
            else:
                configs = await self.reader.read_config(_USERS, sanitize(name))
                if _has_credential(configs):
                    results.append(_described(name, configs))
                else:
                    error = ErrorCode.RESOURCE_NOT_FOUND
                    results.append(_rejected(name, error, _NOT_THERE + name))
        return results


def _has_credential(configs: Mapping[str, str]) -> bool:
    return any(name in configs for name in MECHANISM_NAMES.values())


def _described(name: str, configs: Mapping[str, str]) -> DescribeUserScramCredentialsResult:
    try:
        infos = [
            CredentialInfo(mechanism, credential_iterations(configs[key]))
            for mechanism, key in MECHANISM_NAMES.items()
            if key in configs
        ]
    except ValueError:
        error = ErrorCode.UNKNOWN_SERVER_ERROR
        return _rejected(name, error, error.default_text)
    return DescribeUserScramCredentialsResult(
        user=name, error_code=ErrorCode.NONE, error_message="", credential_infos=infos
    )


def _rejected(name: str, error: ErrorCode, text: str) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(user=name, error_code=error, error_message=text)
