"""If another session deletes /controller, the judge reports it and the controller resigns."""

from __future__ import annotations

from chaos.faults.delete_controller_znode import DELETE_CONTROLLER_ZNODE
from chaos.scenario import Acknowledged, Catch, Expectation, Scenario, Step
from chaos.workloads.topics import TOPICS

CONTROLLER_ZNODE_DELETED = Scenario(
    name="controller_znode_deleted",
    aim="If another session deletes /controller, the judge reports it and the controller resigns.",
    bug="a controller that stays active although its /controller is gone",
    catches=Catch(bugs=("fence_off", "never_superseded"), found_by=("W2", "K7")),
    workload=TOPICS,
    steps=(Step(fault=DELETE_CONTROLLER_ZNODE, hold=Acknowledged(8)),),
    expects=Expectation(elections=(1, 2), violates=("W5", "W6")),
)
