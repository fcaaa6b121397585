"""Every scenario. To add one, add it to the tuple `SCENARIOS` of the module with its theme."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from types import MappingProxyType
from typing import Final

from chaos.scenario import Scenario
from chaos.scenarios import clocks_and_disks, kills, links, load, pauses, zookeeper

THEMES: Final[Mapping[str, tuple[Scenario, ...]]] = MappingProxyType(
    {
        "pauses": pauses.SCENARIOS,
        "kills": kills.SCENARIOS,
        "links": links.SCENARIOS,
        "zookeeper": zookeeper.SCENARIOS,
        "clocks-and-disks": clocks_and_disks.SCENARIOS,
        "load": load.SCENARIOS,
    }
)
SCENARIOS: Final[tuple[Scenario, ...]] = tuple(chain.from_iterable(THEMES.values()))
# One for each of the three questions with which a user comes.
TO_START_WITH: Final[Mapping[str, str]] = MappingProxyType(
    {
        "controller_killed": "is anything lost or executed twice when the controller dies?",
        "controller_pause_past_session": "can a controller that was replaced still write?",
        "replies_lost": "what happens to a request whose reply is lost?",
    }
)
