"""Every write API survives three kills of the controller; each request acts once."""

from __future__ import annotations

from chaos.faults.kill_controller import KILL_CONTROLLER
from chaos.scenario import Expectation, Scenario, Step
from chaos.workloads.every_write_api import EVERY_WRITE_API

CONTROLLER_KILLED = Scenario(
    name="controller_killed",
    aim="Every write API survives three kills of the controller; each request acts once.",
    bug="answers before the commit; a resend that acts twice",
    workload=EVERY_WRITE_API,
    steps=(Step(fault=KILL_CONTROLLER, after=60, times=3),),
    expects=Expectation(elections=(3, 3)),
)
