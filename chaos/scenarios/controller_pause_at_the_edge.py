"""After a pause of about the session timeout, exactly one controller is active."""

from __future__ import annotations

from chaos.faults.pause_controller import PAUSE_CONTROLLER
from chaos.scenario import Catch, Expectation, Scenario, Sessions, Step
from chaos.workloads.topics import TOPICS

CONTROLLER_PAUSE_AT_THE_EDGE = Scenario(
    name="controller_pause_at_the_edge",
    aim="After a pause of about the session timeout, exactly one controller is active.",
    bug="W1, K7: two active controllers",
    catches=Catch(bugs=("fence_off", "retry_across_sessions"), found_by=("W1", "K7")),
    workload=TOPICS,
    steps=(Step(fault=PAUSE_CONTROLLER, hold=Sessions(1.1), times=3),),
    expects=Expectation(elections=(0, 3)),
)
