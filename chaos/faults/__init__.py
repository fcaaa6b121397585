"""Every fault, by theme. To add one: a value in a module of its theme."""

from __future__ import annotations

from typing import Final

from chaos.fault import Fault
from chaos.faults import clocks_and_disks, kills, links, pauses, zookeeper

FAULTS: Final[tuple[Fault, ...]] = (
    *kills.FAULTS,
    *pauses.FAULTS,
    *links.FAULTS,
    *zookeeper.FAULTS,
    *clocks_and_disks.FAULTS,
)
