"""With the fence switched off, the judge finds the writes that no epoch check protects.

W2 (every_write_is_fenced) fails for every such write. W1 (single_writer) fails as well if the
paused controller writes after its successor's election. Whether it does depends on the requests
that it holds when it is paused; tests/integration/test_zombie_controller.py provokes such a write.
"""

from __future__ import annotations

from chaos.faults.pause_controller import PAUSE_CONTROLLER
from chaos.scenario import AnotherController, Expectation, Scenario, Step, Topology
from chaos.workloads.many_topics import MANY_TOPICS

CANARY = Scenario(
    name="canary",
    aim="With the fence switched off, the judge finds the unprotected writes (W2).",
    bug="the seeded bugs fence_off and retry_across_sessions",
    workload=MANY_TOPICS,
    topology=Topology(seeded_bugs=("fence_off", "retry_across_sessions")),
    steps=(Step(fault=PAUSE_CONTROLLER, after=100, hold=AnotherController()),),
    after=200,
    expects=Expectation(elections=(1, None), violates=("W2",)),
)
