"""ApiVersions, key 18, versions 0 to 4: the APIs of this listener (docs/kafka/metadata.md).

The response lists the APIs of the routing table. For a forwarded API it lists the versions that
both this broker and the controller support (KAFKA-10674), and omits the API if there are none.
While the controller's versions are unknown, it lists all versions that this broker supports. The
dispatcher answers unsupported versions of ApiVersions.

Version notes:
    3: the client names its software; features are tagged fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import ClassVar, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import SPECS, Route
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from broker_proxy.client_request import ClientRequest

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?\Z")
_SOFTWARE_FROM: Final = 3
_NOTHING: Final = (0, -1)


def names_software(version: int, message: ApiVersionsRequest) -> bool:
    """Return whether the client's software name and version are valid; True below version 3."""
    return version < _SOFTWARE_FROM or (
        _SOFTWARE.match(message.client_software_name) is not None
        and _SOFTWARE.match(message.client_software_version) is not None
    )


class ApiVersions:
    """Answers ApiVersions requests."""

    api_key: ClassVar[ApiKey] = ApiKey.API_VERSIONS

    def __init__(
        self,
        served: Mapping[str, Mapping[int, Route]],
        features_epoch: Callable[[], int],
        controller_ranges: Callable[[], Mapping[int, tuple[int, int]]] = dict,
    ) -> None:
        """`served` maps each dialect (shipped, drafted) to its routing table.

        `controller_ranges` returns the API versions of a controller on another node. It returns {}
        if the controller is on this node or its versions are unknown.
        """
        self._served = {dialect: sorted(table.items()) for dialect, table in served.items()}
        self._features_epoch = features_epoch
        self._controller_ranges = controller_ranges

    async def handle(
        self, request: ClientRequest, message: ApiVersionsRequest
    ) -> ApiVersionsResponse:
        """Return the version ranges; store the client's software name with its connection."""
        if not names_software(request.header.api_version, message):
            raise ApiError(ErrorCode.INVALID_REQUEST)
        if request.header.api_version >= _SOFTWARE_FROM:
            request.connection.client = replace(
                request.connection.client,
                software_name=message.client_software_name,
                software_version=message.client_software_version,
            )
        return ApiVersionsResponse(
            error_code=ErrorCode.NONE,
            api_keys=list(self._ranges(request.client.dialect)),
            finalized_features_epoch=self._features_epoch(),
        )

    def _ranges(self, dialect: str) -> Iterator[ApiVersion]:
        controllers = self._controller_ranges()
        for key, route in self._served[dialect]:
            spec = SPECS[dialect][key]
            lowest, highest = max(spec.min_version, spec.served_from), spec.max_version
            if controllers and route is Route.FORWARD:
                its_lowest, its_highest = controllers.get(key, _NOTHING)
                lowest, highest = max(lowest, its_lowest), min(highest, its_highest)
            if lowest <= highest:
                yield ApiVersion(api_key=key, min_version=lowest, max_version=highest)
