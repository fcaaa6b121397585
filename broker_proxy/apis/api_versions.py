"""ApiVersions, key 18, versions 0 to 4: what this listener serves (kafka-semantics 3.14).

Behaviour: lists exactly the APIs of the routing table. An unsupported version is answered before
it comes here, in version 0.

Version notes:
    3: the client says what software it is; features come as tagged fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, Final

from bridgehead.kafka_wire.apis import API_SPECS
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from broker_proxy.apis.base import ClientRequest

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?\Z")
_SOFTWARE_FROM: Final = 3


def names_software(version: int, message: ApiVersionsRequest) -> bool:
    """Tell whether the client's software is named as Kafka wants it, or needs no name yet."""
    return version < _SOFTWARE_FROM or (
        _SOFTWARE.match(message.client_software_name) is not None
        and _SOFTWARE.match(message.client_software_version) is not None
    )


class ApiVersions:
    """See the module."""

    api_key: ClassVar[int] = 18

    def __init__(
        self, served: Mapping[str, Iterable[int]], features_epoch: Callable[[], int]
    ) -> None:
        """`served` names the API keys of each dialect."""
        self._served = {dialect: sorted(keys) for dialect, keys in served.items()}
        self._features_epoch = features_epoch

    async def answer(
        self, request: ClientRequest, message: ApiVersionsRequest
    ) -> ApiVersionsResponse:
        """Return the ranges; remember what software the client says it is."""
        if not names_software(request.header.api_version, message):
            raise ApiError(ErrorCode.INVALID_REQUEST)
        if request.header.api_version >= _SOFTWARE_FROM:
            request.connection.software_name = message.client_software_name
            request.connection.software_version = message.client_software_version
        return ApiVersionsResponse(
            error_code=ErrorCode.NONE,
            api_keys=[
                ApiVersion(
                    api_key=key,
                    min_version=API_SPECS[key].min_version,
                    max_version=API_SPECS[key].max_version,
                )
                for key in self._served[request.connection.dialect]
            ],
            finalized_features_epoch=self._features_epoch(),
        )
