"""IncrementalAlterConfigs, key 44: sets, deletes, appends to and subtracts from single configs.

docs/kafka/configs.md#altering-configs, KIP-339. Configs not named in the request keep their values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from cluster_model.configs.broker_configs.table import BROKER_CONFIGS
from cluster_model.configs.operations import (
    Operation,
    apply_operations,
    check_operation_types,
)
from cluster_model.configs.topic_configs import TOPIC_CONFIGS
from cluster_model.configs.types import ConfigKey
from controller.apis.config_changes import BROKER, Change, ConfigApi


class IncrementalAlterConfigs(ConfigApi):
    """Decides IncrementalAlterConfigs requests."""

    api_key: ClassVar[ApiKey] = ApiKey.INCREMENTAL_ALTER_CONFIGS
    message: ClassVar[type] = IncrementalAlterConfigsResponse
    row: ClassVar[type] = AlterConfigsResourceResponse

    def operations(self, resource: Any) -> Sequence[Operation]:
        return [
            Operation(config.name, config.config_operation, config.value)
            for config in resource.configs
        ]

    def change(self, resource: Any) -> Change:
        operations = self.operations(resource)
        of_broker = resource.resource_type == BROKER
        keys: Mapping[str, ConfigKey] = BROKER_CONFIGS if of_broker else TOPIC_CONFIGS

        def apply(stored: Mapping[str, str]) -> Mapping[str, str]:
            if of_broker:
                check_operation_types(operations)
            return apply_operations(stored, operations, keys.get)

        requested = {operation.name: operation.value for operation in operations}
        return Change(requested, apply, reads_first=True)
