"""Requests of every write API are executed once, although controllers are killed."""

from __future__ import annotations

from chaos.faults.kill_controller import KILL_CONTROLLER
from chaos.scenario import Expectation, Scenario, Step, Topology
from chaos.workloads.every_write_api import EVERY_WRITE_API

CONTROLLER_KILLED = Scenario(
    name="controller_killed",
    aim="Requests of every write API are executed once, although controllers are killed.",
    bug="a response before the commit; a resend that is executed twice",
    workload=EVERY_WRITE_API,
    # A killed broker is back before its session ends, so it can get replicas all the time.
    topology=Topology(session_timeout_ms=6000),
    steps=(Step(fault=KILL_CONTROLLER, after=60, times=3),),
    expects=Expectation(elections=(3, 3)),
)
