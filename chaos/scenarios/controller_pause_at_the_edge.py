"""A pause of about the session timeout ends with one controller, the old or a new one."""

from __future__ import annotations

from chaos.faults.pause_controller import PAUSE_CONTROLLER
from chaos.scenario import Expectation, Scenario, Sessions, Step
from chaos.workloads.topics import TOPICS

CONTROLLER_PAUSE_AT_THE_EDGE = Scenario(
    name="controller_pause_at_the_edge",
    aim="A pause of about the session timeout ends with one controller, the old or a new one.",
    bug="two controllers that both answer: W1, W7",
    workload=TOPICS,
    steps=(Step(fault=PAUSE_CONTROLLER, hold=Sessions(1.1), times=3),),
    expects=Expectation(elections=(0, 3)),
)
