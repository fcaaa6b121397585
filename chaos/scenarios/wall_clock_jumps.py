"""A wall clock that jumps by an hour changes nothing."""

from __future__ import annotations

from chaos.faults.move_clock_of_controller import MOVE_CLOCK_OF_CONTROLLER
from chaos.scenario import Catch, Expectation, Scenario, Sessions, Step
from chaos.workloads.topics import TOPICS

WALL_CLOCK_JUMPS = Scenario(
    name="wall_clock_jumps",
    aim="A controller whose wall clock jumps by an hour stays the controller; nothing times out.",
    bug="time limits that are measured with the wall clock",
    catches=Catch(bugs=("wall_clock_deadlines",), found_by=("without a definite result",)),
    workload=TOPICS,
    steps=(Step(fault=MOVE_CLOCK_OF_CONTROLLER, hold=Sessions(2)),),
    expects=Expectation(elections=(0, 0), open_max=0),
)
