"""Every fault. To add one, add it to the tuple `FAULTS` of the module with its theme."""

from __future__ import annotations

from typing import Final

from chaos.fault import Fault
from chaos.faults import clocks_and_disks, kills, links, pauses, zookeeper

FAULTS: Final[tuple[Fault, ...]] = (
    *pauses.FAULTS,
    *kills.FAULTS,
    *links.FAULTS,
    *zookeeper.FAULTS,
    *clocks_and_disks.FAULTS,
)
