"""After five expired sessions, one controller is active and no write is lost."""

from __future__ import annotations

from chaos.faults.expire_controller import EXPIRE_CONTROLLER
from chaos.scenario import Catch, Expectation, Scenario, Step
from chaos.workloads.topics import TOPICS

SESSIONS_FLAP = Scenario(
    name="sessions_flap",
    aim="After five expired sessions, one controller is active and no write is lost.",
    bug="KAFKA-4229: a node whose session expired takes part in no further election",
    catches=Catch(bugs=("acts_after_resigning",), found_by=("W7",)),
    workload=TOPICS,
    steps=(Step(fault=EXPIRE_CONTROLLER, after=8, times=5),),
    expects=Expectation(elections=(5, 10)),
)
