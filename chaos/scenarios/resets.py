"""No request is lost or repeated when connections to the controller are reset."""

from __future__ import annotations

from chaos.faults.reset_peers_of_controller import RESET_PEERS_OF_CONTROLLER
from chaos.scenario import Acknowledged, Catch, Expectation, Scenario, Step
from chaos.workloads.topics import TOPICS

RESETS = Scenario(
    name="resets",
    aim="No request is lost or repeated when connections to the controller are reset.",
    bug="a resent request that is executed again",
    catches=Catch(bugs=("forgets_outcomes",), found_by=("D5", "F7")),
    workload=TOPICS,
    steps=(Step(fault=RESET_PEERS_OF_CONTROLLER, after=8, hold=Acknowledged(8), times=10),),
    expects=Expectation(elections=(0, 0), open_max=0),
)
