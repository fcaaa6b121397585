"""A controller stays active, although it is paused briefly twenty times."""

from __future__ import annotations

from chaos.faults.pause_controller import PAUSE_CONTROLLER
from chaos.scenario import Catch, Expectation, Scenario, Sessions, Step
from chaos.workloads.topics import TOPICS

STARVED_CONTROLLER = Scenario(
    name="starved_controller",
    aim="A controller stays active, although it is paused briefly twenty times.",
    bug="unnecessary elections; a hang",
    catches=Catch(bugs=("resigns_when_late",), found_by=("elections; expected 0 to 0",)),
    workload=TOPICS,
    steps=(Step(fault=PAUSE_CONTROLLER, after=8, hold=Sessions(0.1), times=20),),
    expects=Expectation(elections=(0, 0), open_max=0),
)
