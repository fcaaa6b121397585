"""A ZooKeeper with a slow disk causes no error and no election."""

from __future__ import annotations

from chaos.faults.slow_fsync_of_zookeeper import SLOW_FSYNC_OF_ZOOKEEPER
from chaos.scenario import Acknowledged, Catch, Expectation, Scenario, Step
from chaos.workloads.topics import TOPICS

SLOW_FSYNC = Scenario(
    name="slow_fsync",
    aim="If ZooKeeper's fsync takes 300 ms longer, no request fails and no controller is elected.",
    bug="time limits that are too short for a slow disk of ZooKeeper",
    catches=Catch(bugs=("gives_up_early",), found_by=("without a definite result",)),
    workload=TOPICS,
    steps=(Step(fault=SLOW_FSYNC_OF_ZOOKEEPER, hold=Acknowledged(60)),),
    expects=Expectation(elections=(0, 0), open_max=0),
    not_simulated="simulated disks take no time",
)
