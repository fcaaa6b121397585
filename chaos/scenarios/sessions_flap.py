"""Five sessions that end one after another leave one controller and all writes."""

from __future__ import annotations

from chaos.faults.expire_controller import EXPIRE_CONTROLLER
from chaos.scenario import Expectation, Scenario, Step
from chaos.workloads.topics import TOPICS

SESSIONS_FLAP = Scenario(
    name="sessions_flap",
    aim="Five sessions that end one after another leave one controller and all writes.",
    bug="KAFKA-4229: a node that does not stand for election again",
    workload=TOPICS,
    steps=(Step(fault=EXPIRE_CONTROLLER, after=8, times=5),),
    expects=Expectation(elections=(5, 10)),
)
