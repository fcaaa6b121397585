"""A hundred kills of the controller lose no acknowledged write and repeat none."""

from __future__ import annotations

from chaos.faults.kill_controller import KILL_CONTROLLER
from chaos.scenario import AnotherController, Expectation, Scenario, Step
from chaos.workloads.topics import TOPICS

HUNDRED_KILLS = Scenario(
    name="hundred_kills",
    aim="A hundred kills of the controller lose no acknowledged write and repeat none.",
    bug="errors that occur in one of fifty failovers",
    workload=TOPICS,
    steps=(Step(fault=KILL_CONTROLLER, hold=AnotherController(), times=100),),
    expects=Expectation(elections=(100, None)),
)
