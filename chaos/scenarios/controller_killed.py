"""Requests of every write API are executed once, although controllers are killed."""

from __future__ import annotations

from chaos.faults.kill_controller import KILL_CONTROLLER
from chaos.scenario import Catch, Expectation, Scenario, Step, Topology
from chaos.workloads.every_write_api import EVERY_WRITE_API

CONTROLLER_KILLED = Scenario(
    name="controller_killed",
    aim="Requests of every write API are executed once, although controllers are killed.",
    bug="a response before the commit; a resent request that is executed again",
    catches=Catch(bugs=("forgets_outcomes",), found_by=("D3",)),
    workload=EVERY_WRITE_API,
    # A killed broker restarts before its old session expires, and registers again as soon as that
    # session has expired. It is hardly ever unregistered, so partitions can be moved to it.
    topology=Topology(session_timeout_ms=6000),
    steps=(Step(fault=KILL_CONTROLLER, after=60, times=3),),
    expects=Expectation(elections=(3, 3)),
)
