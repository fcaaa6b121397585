"""IncrementalAlterConfigs, key 44: single names of a resource are set, deleted, appended to.

What is not named stays (kafka-semantics 3.6, KIP-339).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from cluster_model.broker_configs.table import BROKER_CONFIGS
from cluster_model.config_operations import (
    Operation,
    apply_operations,
    refuse_unknown_operations,
)
from cluster_model.config_types import ConfigKey
from cluster_model.image import MetadataImage
from cluster_model.topic_configs import TOPIC_CONFIGS
from controller.apis.base import Decision, Outcome, RequestContext
from controller.apis.config_changes import (
    BROKER,
    Change,
    ConfigChanges,
    conflict_of,
    rows_of,
)


@dataclass(frozen=True, slots=True)
class IncrementalAlterConfigs:
    """Changes the configs of topics and brokers, each resource on its own."""

    changes: ConfigChanges
    api_key: ClassVar[int] = 44

    def decide(
        self,
        context: RequestContext,
        request: IncrementalAlterConfigsRequest,
        image: MetadataImage,
        settled: Mapping[str, Outcome],
    ) -> Decision:
        """See AdminApi.decide."""
        return self.changes.decide(context, request, image, settled, self._change)

    def _change(self, resource: Any) -> Change:
        operations = [
            Operation(config.name, config.config_operation, config.value)
            for config in resource.configs
        ]
        of_broker = resource.resource_type == BROKER
        keys: Mapping[str, ConfigKey] = BROKER_CONFIGS if of_broker else TOPIC_CONFIGS

        def apply(stored: Mapping[str, str]) -> Mapping[str, str]:
            if of_broker:
                refuse_unknown_operations(operations)
            return apply_operations(stored, operations, keys.get)

        asked = {each.name: each.value for each in operations}
        return Change(asked, apply, reads_first=True)

    def conflict(self, element: str) -> Outcome:
        """See AdminApi.conflict."""
        return conflict_of(element)

    def answer(
        self,
        context: RequestContext,
        request: IncrementalAlterConfigsRequest,
        outcomes: Mapping[str, Outcome],
        image: MetadataImage,
        unfinished: frozenset[str],
    ) -> Any:
        """See AdminApi.answer. No resource waits for anything."""
        return IncrementalAlterConfigsResponse(
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
        self,
        request: IncrementalAlterConfigsRequest,
        version: int,
        error: ErrorCode,
        message: str | None,
    ) -> Any:
        """See AdminApi.refuse: every resource with the same code and message."""
        return IncrementalAlterConfigsResponse(
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
