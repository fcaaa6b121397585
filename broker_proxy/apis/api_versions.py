"""ApiVersions, key 18, versions 0 to 4: what this listener serves (kafka-semantics 3.14).

Behaviour: lists exactly the APIs of the routing table; of the forwarded ones no version that the
controller lacks (KAFKA-10674); while it is not known what the controller has, all of ours.
An unsupported version is answered before it comes here, in version 0.

Version notes:
    3: the client says what software it is; features come as tagged fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, Final

from bridgehead.kafka_wire.dialects import SPECS
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from broker_proxy.apis.base import ClientRequest
from broker_proxy.routing import Route

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?\Z")
_SOFTWARE_FROM: Final = 3
_NOTHING: Final = (0, -1)


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
        self,
        served: Mapping[str, Mapping[int, Route]],
        features_epoch: Callable[[], int],
        controller_ranges: Callable[[], Mapping[int, tuple[int, int]]] = dict,
    ) -> None:
        """`served` is each dialect's routing table.

        `controller_ranges` says what another node's controller can be asked; {}: not known.
        """
        self._served = {dialect: sorted(table.items()) for dialect, table in served.items()}
        self._features_epoch = features_epoch
        self._controller_ranges = controller_ranges

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
            api_keys=list(self._ranges(request.connection.dialect)),
            finalized_features_epoch=self._features_epoch(),
        )

    def _ranges(self, dialect: str) -> Iterator[ApiVersion]:
        controllers = self._controller_ranges()
        for key, way in self._served[dialect]:
            spec = SPECS[dialect][key]
            lowest, highest = spec.min_version, spec.max_version
            if controllers and way is Route.FORWARD:
                its_lowest, its_highest = controllers.get(key, _NOTHING)
                lowest, highest = max(lowest, its_lowest), min(highest, its_highest)
            if lowest <= highest:
                yield ApiVersion(api_key=key, min_version=lowest, max_version=highest)
