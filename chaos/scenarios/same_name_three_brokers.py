"""Of three clients that create one topic at three brokers one succeeds, also in a failover."""

from __future__ import annotations

from chaos.faults.kill_controller import KILL_CONTROLLER
from chaos.scenario import AnotherController, Expectation, Scenario, Step
from chaos.workloads.one_topic import ONE_TOPIC

SAME_NAME_THREE_BROKERS = Scenario(
    name="same_name_three_brokers",
    aim="Of three clients that create one topic at three brokers one succeeds, also in a failover.",
    bug="KAFKA-7082: configs of the client that was rejected",
    workload=ONE_TOPIC,
    steps=(Step(fault=KILL_CONTROLLER, hold=AnotherController()),),
    expects=Expectation(elections=(1, 1)),
)
