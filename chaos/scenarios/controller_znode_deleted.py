"""The judge names the session that deletes /controller, and the controller resigns."""

from __future__ import annotations

from chaos.faults.delete_controller_znode import DELETE_CONTROLLER_ZNODE
from chaos.scenario import Acknowledged, Expectation, Scenario, Step
from chaos.workloads.topics import TOPICS

CONTROLLER_ZNODE_DELETED = Scenario(
    name="controller_znode_deleted",
    aim="The judge names the session that deletes /controller, and the controller resigns.",
    bug="KAFKA-2729: a write behind the controller's back",
    workload=TOPICS,
    steps=(Step(fault=DELETE_CONTROLLER_ZNODE, hold=Acknowledged(8)),),
    expects=Expectation(elections=(1, 2), violates=("W5",)),
)
