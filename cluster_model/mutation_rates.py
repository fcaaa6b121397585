"""Controller mutation quotas: limits on the creation and deletion of partitions (KIP-599)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cluster_model.records import ConfigResource

MUTATION_RATE: Final = "controller_mutation_rate"


def mutation_rate(resource: ConfigResource, configs: Mapping[str, str]) -> float | None:
    """Return an entity's rate in partitions per second; None if it has none."""
    text = configs.get(MUTATION_RATE)
    if text is None or resource.entity_type not in ("users", "clients"):
        return None
    try:
        return float(text)
    except ValueError:
        return None  # Not a number, so written by hand. Kafka ignores it too.
