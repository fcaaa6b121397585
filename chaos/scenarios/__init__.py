"""Every scenario. To add one, add it to the tuple `SCENARIOS` of the module with its theme."""

from __future__ import annotations

from typing import Final

from chaos.scenario import Scenario
from chaos.scenarios import clocks_and_disks, kills, links, load, pauses, zookeeper

SCENARIOS: Final[tuple[Scenario, ...]] = (
    *pauses.SCENARIOS,
    *kills.SCENARIOS,
    *links.SCENARIOS,
    *zookeeper.SCENARIOS,
    *clocks_and_disks.SCENARIOS,
    *load.SCENARIOS,
)
