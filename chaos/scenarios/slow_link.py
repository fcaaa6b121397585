"""Slow links between brokers and the controller cause no error."""

from __future__ import annotations

from chaos.faults.slow_peers_of_controller import SLOW_PEERS_OF_CONTROLLER
from chaos.scenario import Acknowledged, Catch, Expectation, Scenario, Step
from chaos.workloads.topics import TOPICS

SLOW_LINK = Scenario(
    name="slow_link",
    aim="Links that deliver each Envelope 300 ms late cause no error and no election.",
    bug="time limits and heartbeats that treat a slow peer as a dead one",
    catches=Catch(bugs=("gives_up_early",), found_by=("without a definite result",)),
    workload=TOPICS,
    steps=(Step(fault=SLOW_PEERS_OF_CONTROLLER, hold=Acknowledged(60)),),
    expects=Expectation(elections=(0, 0), open_max=0),
)
