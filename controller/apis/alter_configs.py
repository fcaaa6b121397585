"""AlterConfigs, key 33: replaces all configs of a resource; names not listed are removed.

docs/kafka/configs.md#altering-configs. The broker that a BROKER resource names has already
validated it. A live Kafka that forwards validates it again at the controller, and so rejects every
broker but the controller (docs/kafka/misbehaviour.md): `kafka-configs.sh`, which uses this API,
could alter no other broker.
"""

from __future__ import annotations

from typing import Any, ClassVar

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.messages.alter_configs import (
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from controller.apis.config_changes import Change, ConfigApi


class AlterConfigs(ConfigApi):
    """Decides AlterConfigs requests."""

    api_key: ClassVar[ApiKey] = ApiKey.ALTER_CONFIGS
    message: ClassVar[type] = AlterConfigsResponse
    row: ClassVar[type] = AlterConfigsResourceResponse

    def change(self, resource: Any) -> Change:
        """See ConfigApi.change."""
        configs = {config.name: config.value or "" for config in resource.configs}
        return Change(configs, lambda _stored: configs)
