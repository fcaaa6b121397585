"""A write that is lost on its way to ZooKeeper is sent again and executed once."""

from __future__ import annotations

from chaos.faults.lose_request_of_commit import LOSE_REQUEST_OF_COMMIT
from chaos.scenario import Acknowledged, Catch, Expectation, Scenario, Step
from chaos.workloads.topics import TOPICS

REQUEST_OF_COMMIT_LOST = Scenario(
    name="request_of_commit_lost",
    aim="A write that is lost on its way to ZooKeeper is sent again and executed once.",
    bug="a definite error for a write that is resent; a write that takes effect twice",
    catches=Catch(bugs=("assumes_commit",), found_by=("D1", "K4")),
    workload=TOPICS,
    # Eight clients: the ninth success is of a request sent after the loss (see random_faults).
    steps=(Step(fault=LOSE_REQUEST_OF_COMMIT, after=8, hold=Acknowledged(9), times=10),),
    expects=Expectation(elections=(0, 0), open_max=0),
)
