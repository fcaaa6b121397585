"""Statements that no property judges, each with the reason; docs/properties.md lists them."""

from __future__ import annotations

from typing import Final

UNJUDGED: Final[tuple[tuple[str, str], ...]] = (
    (
        "a lost controller is replaced within a time limit",
        "no limit below 30 s holds on a busy machine. After each fault, a scenario waits at most "
        "30 s for a controller. The scenario `polite_stop` also limits the time without a "
        "successful operation (`gap_max_s`). The pipeline's table `controller_terms` has the times "
        "of each failover",
    ),
    (
        "the controller's queue becomes empty after the load",
        "only metrics_snapshot events have the length of the queue, and no such event is written "
        "at the end of a load",
    ),
    (
        "the images of all brokers become equal",
        "an image_advanced event has no digest of the image. At the end of a scenario, most "
        "workloads compare the metadata that the brokers describe",
    ),
    (
        "the node in /controller answers as controller",
        "no event shows whether the node answers. `bridgehead status` and the scenarios check it. "
        "The scenario `blocked_event_loop` fails if a controller that does not work stays in "
        "/controller",
    ),
    (
        "clients progress during faults that do not stop writes",
        "most scenarios with such a fault wait for acknowledgements during the fault. If no "
        "acknowledgement arrives, the run counts as hung",
    ),
    (
        "there are few unknown outcomes",
        "some scenarios limit the number of unknown outcomes (`open_max`)",
    ),
    ("connections, tasks and sessions are released", "tests in tests/integration count them"),
    (
        "no update of a znode is lost",
        "a commit line has no digest of the content before the write. Transactions check the "
        "versions of znodes to prevent lost updates; tests/integration/test_damaged_znodes.py "
        "covers these checks",
    ),
    (
        "a request has no effect after its time limit",
        "transactions have only wall-clock times, and a wall clock may jump",
    ),
    (
        "the sender of an Envelope has the right ClusterAction and the current broker epoch",
        "the events about Envelopes show neither the right nor the broker epoch. "
        "tests/integration/test_inter_broker_channel.py covers the refusals",
    ),
    (
        "a broker never forwards to an earlier controller",
        "a forward_sent event has the controller's id, but not its epoch. W3 judges the epochs of "
        "images",
    ),
    (
        "a controller refuses brokers of another cluster",
        "Envelopes carry no cluster id",
    ),
    (
        "every denial agrees with the ACLs",
        "an error code does not show which right was missing. A1 judges only what was allowed",
    ),
    (
        "a revoked right is denied at every broker at once",
        "brokers learn ACLs with a delay. As in Kafka, the delay has no limit",
    ),
    (
        "there is one authorization decision for each resource, and policies are not bypassed",
        "no event records the single decisions of authorizers and policies. "
        "tests/integration/test_policies.py covers the policies",
    ),
    (
        "the flag for bypassing policies has no effect if a client sets it",
        "no event has the flag. tests/integration/test_policies.py covers the statement",
    ),
    (
        "a policy decides equal requests in the same way on every controller",
        "no event records the single decisions of policies. Besides, a user's policy may read the "
        "time or other state",
    ),
    (
        "secrets never occur in evidence, and denials reveal nothing",
        "the judge does not know the secrets. Tests in tests/integration plant secrets and search "
        "for them, and compare responses",
    ),
    (
        "a read at any broker shows every acknowledged write",
        "the statement holds only with bridgehead.metadata.blocking=cluster or "
        "bridgehead.metadata.reads=controller. The workload `read_after_write` compares responses",
    ),
    (
        "images with equal zxids are equal, and equal to a replay of the log",
        "an image_advanced event has no digest of the image",
    ),
    (
        "verdicts do not depend on the wall clock",
        "the statement is about the judge, not about a run. tests/unit/judge/test_wall_clock.py "
        "covers it",
    ),
)
