"""A pause shorter than the session timeout causes no election and no unknown outcome."""

from __future__ import annotations

from chaos.faults.pause_controller import PAUSE_CONTROLLER
from chaos.scenario import Catch, Expectation, Scenario, Sessions, Step
from chaos.workloads.topics import TOPICS

CONTROLLER_PAUSE_WITHIN_SESSION = Scenario(
    name="controller_pause_within_session",
    aim="A pause shorter than the session timeout causes no election and no unknown outcome.",
    bug="false failovers: a controller resigns although its session is alive",
    catches=Catch(bugs=("resigns_when_late",), found_by=("elections; expected 0 to 0",)),
    workload=TOPICS,
    steps=(Step(fault=PAUSE_CONTROLLER, hold=Sessions(0.4)),),
    expects=Expectation(elections=(0, 0), open_max=0),
)
