"""The controller's session ends during a large request."""

from __future__ import annotations

from chaos.faults.expire_controller import EXPIRE_CONTROLLER
from chaos.scenario import Catch, Expectation, Scenario, Step
from chaos.workloads.large_requests import LARGE_REQUESTS

SESSION_STOLEN_IN_LARGE_REQUEST = Scenario(
    name="session_stolen_in_large_request",
    aim="If the controller's session ends during a large request, the next controller completes "
    "the request.",
    bug="KAFKA-4447, KAFKA-10193, KAFKA-6517: a former controller executes or forgets its "
    "queue, or hangs",
    catches=Catch(bugs=("deletes_successors_znode",), found_by=("W5", "L7")),
    workload=LARGE_REQUESTS,
    steps=(Step(fault=EXPIRE_CONTROLLER, after=4),),
    after=4,
    expects=Expectation(elections=(1, 2)),
)
