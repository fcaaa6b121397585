"""Each topic of a request gets its own result, even if the request is resent after a failover."""

from __future__ import annotations

from chaos.faults.kill_controller import KILL_CONTROLLER
from chaos.scenario import AnotherController, Catch, Expectation, Scenario, Step
from chaos.workloads.mixed_requests import MIXED_REQUESTS

MIXED_REQUESTS_IN_FAILOVER = Scenario(
    name="mixed_requests_in_failover",
    aim="Each topic of a request gets its own result, even if the request is resent.",
    bug="an invalid topic that changes the results of the other topics of the request",
    catches=Catch(bugs=("rejects_the_rest",), found_by=("instead of 0",)),
    workload=MIXED_REQUESTS,
    steps=(Step(fault=KILL_CONTROLLER, hold=AnotherController(), times=3),),
    expects=Expectation(elections=(3, 4)),
)
