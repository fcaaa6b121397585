"""The broker configs of Kafka 3.9.1.

`table` reads their definitions, `static` validates the properties file, `effective` applies the
dynamic configs on top, and `dynamic` validates a change before it is stored.
"""

from __future__ import annotations

from cluster_model.configs.broker_configs.effective import EffectiveBrokerConfig
from cluster_model.configs.broker_configs.static import BrokerConfig, InvalidBrokerConfigError

__all__ = ["BrokerConfig", "EffectiveBrokerConfig", "InvalidBrokerConfigError"]
