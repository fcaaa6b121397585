"""Without a fault there is no election, no unknown outcome and no violation."""

from __future__ import annotations

from chaos.scenario import Catch, Expectation, Scenario
from chaos.workloads.topics import TOPICS

QUIET_SEA = Scenario(
    name="quiet_sea",
    aim="Without a fault there is no election, no unknown outcome and no violation.",
    bug="false alarms of the judge; unnecessary elections",
    catches=Catch(bugs=("resigns_early",), found_by=("elections; expected 0 to 0",)),
    workload=TOPICS,
    steps=(),
    after=1000,
    expects=Expectation(elections=(0, 0), open_max=0),
)
