"""Bugs of Kafka that seeded bugs reproduce, each with its scenario and what the judge finds.

docs/kafka-bugs.md lists them; `make prove-bugs` reproduces all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from chaos.seeded_bug import SeededBug


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaBug(SeededBug):
    """One bug that Kafka had."""

    issue: str
    happened: str  # in Kafka, in one or two sentences


KAFKA_BUGS: Final[tuple[KafkaBug, ...]] = (
    KafkaBug(
        issue="KAFKA-6082",
        happened="A controller that had lost its session created topics in ZooKeeper. The writes "
        "did not check the controller epoch.",
        bugs=("fence_off", "retry_across_sessions"),
        scenario="controller_pause_past_session",
        found_by=("W1", "W2", "W3"),
    ),
    KafkaBug(
        issue="KAFKA-6082, second part",
        happened="A controller that had been replaced deleted the /controller of its successor. "
        "This caused another election.",
        bugs=("deletes_successors_znode",),
        scenario="session_stolen_in_large_request",
        found_by=("W5", "L7"),
    ),
    KafkaBug(
        issue="KAFKA-16539",
        happened="A write of configs did not check that its writer was still the controller.",
        bugs=("unfenced_configs",),
        scenario="controller_killed",
        found_by=("W2",),
    ),
    KafkaBug(
        issue="KAFKA-4447, KAFKA-2300",
        happened="A controller that had resigned still processed requests.",
        bugs=("acts_after_resigning",),
        scenario="sessions_flap",
        found_by=("W7",),
    ),
    KafkaBug(
        issue="KAFKA-5310",
        happened="A controller that was elected again used the state of its earlier term.",
        bugs=("reuses_image",),
        scenario="sessions_flap",
        found_by=("W7",),
    ),
    KafkaBug(
        issue="KAFKA-12835",
        happened="Brokers had different ids for one topic. The faulty part differs: each new "
        "controller starts with the same sequence of ids, so several topics have the same id.",
        bugs=("repeats_topic_ids",),
        scenario="sessions_flap",
        found_by=("D10",),
    ),
    KafkaBug(
        issue="KAFKA-12677",
        happened="A broker forwarded a request, got NOT_CONTROLLER, and returned this error to the "
        "client.",
        bugs=("relays_not_controller",),
        scenario="sessions_flap",
        found_by=("F5", "F6"),
    ),
    KafkaBug(
        issue="KAFKA-10667",
        happened="A broker resent forwarded requests without end, although their clients had given "
        "up.",
        bugs=("resends_forever",),
        scenario="requests_time_out",
        found_by=("F8", "L1"),
    ),
    KafkaBug(
        issue="lost reply to a creation that ZooKeeper applied",
        happened="The controller's ZooKeeper client sent the creation again and got NODEEXISTS. "
        "The admin client got TOPIC_ALREADY_EXISTS for its own topic.",
        bugs=("naive_retry",),
        scenario="reply_of_commit_lost",
        found_by=("D5",),
    ),
    KafkaBug(
        issue="lost reply to a multi",
        happened="The controller cannot know whether ZooKeeper applied the multi. The faulty part "
        "assumes that ZooKeeper applied it.",
        bugs=("assumes_commit",),
        scenario="request_of_commit_lost",
        found_by=("D1", "K4"),
    ),
    KafkaBug(
        issue="KIP-590, review",
        happened="The controller executed a request for the principal of another request that was "
        "in flight.",
        bugs=("swap_principals",),
        scenario="principals_in_failover",
        found_by=("F1",),
    ),
)
