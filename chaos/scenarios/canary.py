"""With the fence switched off, the judge finds the writes that no epoch check protects.

W2 (every_write_is_fenced) fails for every such write. The controller is paused just before a
commit, which it sends after its successor's election. W1 (single_writer) also fails if ZooKeeper
accepts this commit. It rejects the commit if brokers have resent one of its requests to the
successor, for example because the topic exists. On the local tier this depends on which requests
share the commit.
"""

from __future__ import annotations

from chaos.faults.pause_controller_before_commit import PAUSE_CONTROLLER_BEFORE_COMMIT
from chaos.scenario import AnotherController, Expectation, Scenario, Step, Topology
from chaos.workloads.many_topics import MANY_TOPICS

CANARY = Scenario(
    name="canary",
    aim="With the fence switched off, the judge finds unprotected writes (W2) and, if ZooKeeper "
    "accepts them, writes of a replaced controller (W1).",
    bug="the seeded bugs fence_off and retry_across_sessions",
    catches="the scenario's own nodes have seeded bugs",
    workload=MANY_TOPICS,
    topology=Topology(seeded_bugs=("fence_off", "retry_across_sessions")),
    steps=(Step(fault=PAUSE_CONTROLLER_BEFORE_COMMIT, after=100, hold=AnotherController()),),
    after=200,
    expects=Expectation(elections=(1, None), violates=("W2",), may_violate_others=True),
)
