"""AlterConfigs, key 33: the whole set of a resource's configs is replaced.

Names that are not listed are removed (kafka-semantics 3.6). A BROKER resource has been checked by
the broker that it names, which received the request. A live Kafka that forwards checks it once more
here, and so refuses every broker but the controller (kafka-semantics 9.7): nobody could alter the
others with `kafka-configs.sh`, which asks this API.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from cluster_model.image import MetadataImage
from controller.apis.base import Decision, Outcome, RequestContext
from controller.apis.config_changes import (
    Change,
    ConfigChanges,
    conflict_of,
    rows_of,
)


@dataclass(frozen=True, slots=True)
class AlterConfigs:
    """Replaces the configs of topics and brokers, each resource on its own."""

    changes: ConfigChanges
    api_key: ClassVar[int] = 33

    def decide(
        self,
        context: RequestContext,
        request: AlterConfigsRequest,
        image: MetadataImage,
        settled: Mapping[str, Outcome],
    ) -> Decision:
        """See AdminApi.decide."""
        return self.changes.decide(context, request, image, settled, self._change)

    def _change(self, resource: Any) -> Change:
        asked = {config.name: config.value or "" for config in resource.configs}
        return Change(asked, lambda _stored: asked)

    def conflict(self, element: str) -> Outcome:
        """See AdminApi.conflict."""
        return conflict_of(element)

    def answer(
        self,
        context: RequestContext,
        request: AlterConfigsRequest,
        outcomes: Mapping[str, Outcome],
        image: MetadataImage,
        unfinished: frozenset[str],
    ) -> Any:
        """See AdminApi.answer. No resource waits for anything."""
        return AlterConfigsResponse(
            throttle_time_ms=0,
            responses=[
                AlterConfigsResourceResponse(
                    error_code=outcome.error,
                    error_message=outcome.message,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
                for resource, outcome in rows_of(request, outcomes)
            ],
        )

    def refuse(
        self, request: AlterConfigsRequest, version: int, error: ErrorCode, message: str | None
    ) -> Any:
        """See AdminApi.refuse: every resource with the same code and message."""
        return AlterConfigsResponse(
            throttle_time_ms=0,
            responses=[
                AlterConfigsResourceResponse(
                    error_code=error,
                    error_message=message,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
                for resource in request.resources
            ],
        )
