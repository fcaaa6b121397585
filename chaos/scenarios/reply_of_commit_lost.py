"""If ZooKeeper's reply to a write is lost, the client still gets the actual result."""

from __future__ import annotations

from chaos.faults.lose_reply_of_commit import LOSE_REPLY_OF_COMMIT
from chaos.scenario import Acknowledged, Catch, Expectation, Scenario, Step
from chaos.workloads.topics import TOPICS

REPLY_OF_COMMIT_LOST = Scenario(
    name="reply_of_commit_lost",
    aim="If ZooKeeper's reply to a write is lost, the client still gets the actual result.",
    bug="TOPIC_ALREADY_EXISTS for a client's own topic, similar to CURATOR-268 and "
    "BookKeeper issue 1967",
    catches=Catch(bugs=("naive_retry",), found_by=("D5",)),
    workload=TOPICS,
    # Eight clients: the ninth success is of a request sent after the loss (see random_faults).
    steps=(Step(fault=LOSE_REPLY_OF_COMMIT, after=8, hold=Acknowledged(9), times=10),),
    expects=Expectation(elections=(0, 0), open_max=0),
)
