"""A request for 250 topics creates each topic once, although the controller is killed."""

from __future__ import annotations

from chaos.faults.kill_controller import KILL_CONTROLLER
from chaos.scenario import AnotherController, Catch, Expectation, Scenario, Step
from chaos.workloads.large_requests import LARGE_REQUESTS

KILL_IN_LARGE_REQUEST = Scenario(
    name="kill_in_large_request",
    aim="A request for 250 topics creates each topic once, although the controller is killed.",
    bug="a topic is created without its configs; a client gets TOPIC_ALREADY_EXISTS for its own "
    "topic",
    catches=Catch(bugs=("omits_last_result",), found_by=("D7",)),
    workload=LARGE_REQUESTS,
    steps=(Step(fault=KILL_CONTROLLER, after=4, hold=AnotherController()),),
    after=4,
    expects=Expectation(elections=(1, 1)),
)
