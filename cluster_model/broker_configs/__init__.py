"""Every broker config of Kafka 3.9.1, and the values that a broker makes of its properties.

`table` joins the literal rows of the files beside it; `static` holds what was said at start,
`effective` lays the dynamic configs over it, `dynamic` judges a change before it is stored.
"""

from __future__ import annotations

from cluster_model.broker_configs.effective import EffectiveBrokerConfig
from cluster_model.broker_configs.static import BrokerConfig, InvalidBrokerConfigError

__all__ = ["BrokerConfig", "EffectiveBrokerConfig", "InvalidBrokerConfigError"]
