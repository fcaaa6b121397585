"""AlterConfigs, key 33: replaces all configs of a resource; unlisted configs are removed.

docs/kafka/configs.md#altering-configs. A BROKER resource has already been validated by the
receiving broker, except in the drafted dialect. Kafka's controller validates a forwarded resource
again, and rejects it unless it names the controller's own broker (docs/kafka/misbehaviour.md). This
controller repeats only the checks of names and types: with Kafka's check, `kafka-configs.sh`, which
uses this API, could alter only the configs of the controller's own broker.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.config_codes import AlterConfigOpType
from bridgehead.kafka_wire.messages.alter_configs import (
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from cluster_model.configs.operations import Operation
from controller.apis.config_changes import Change, ConfigApi


class AlterConfigs(ConfigApi):
    """Decides AlterConfigs requests."""

    api_key: ClassVar[ApiKey] = ApiKey.ALTER_CONFIGS
    message: ClassVar[type] = AlterConfigsResponse
    row: ClassVar[type] = AlterConfigsResourceResponse

    def operations(self, resource: Any) -> Sequence[Operation]:
        return [
            Operation(config.name, AlterConfigOpType.SET, config.value)
            for config in resource.configs
        ]

    def change(self, resource: Any) -> Change:
        configs = {config.name: config.value or "" for config in resource.configs}
        return Change(configs, lambda _stored: configs)
