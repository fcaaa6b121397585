"""While ZooKeeper's disk is full, no write is acknowledged; afterwards writes succeed."""

from __future__ import annotations

from chaos.faults.fill_disk_of_zookeeper import FILL_DISK_OF_ZOOKEEPER
from chaos.scenario import Catch, Expectation, Scenario, Sessions, Step
from chaos.workloads.topics import TOPICS

FULL_DISK_OF_ZOOKEEPER = Scenario(
    name="full_disk_of_zookeeper",
    aim="While ZooKeeper's disk is full, no write is acknowledged; afterwards writes succeed.",
    bug="D1: an acknowledgement without a commit",
    catches=Catch(bugs=("assumes_commit",), found_by=("K4",)),
    workload=TOPICS,
    steps=(Step(fault=FILL_DISK_OF_ZOOKEEPER, hold=Sessions(2)),),
    expects=Expectation(elections=(0, 2)),
    not_simulated="simulated disks do not fail",
)
