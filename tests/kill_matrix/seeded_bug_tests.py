"""For each bug seeded into a node: the test that must find it, and how the test finds it.

A unit test fails if a bug of `node/seeded_bugs.py` is not listed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

# Properties that no seeded bug of a node violates, each with the reason.
WITHOUT_SEEDED_BUG: Final[Mapping[str, str]] = {
    "D4": "D3 already finds a request that a node commits twice. D4 checks the same, but only for "
    "requests and client operations without a definite response",
    "K2": "the function in broker_proxy/requests/dispatch.py that returns a response also records it. "
    "Seeded bugs replace only the parts that node/collaborators.py lists, so no seeded bug can "
    "omit the event",
    "K3": "K3 judges the event logs, not nodes. Golden histories violate it",
    "K6": "K6 judges the reading of evidence, not nodes",
    "T1": "T1 judges the faults of the harness, not nodes",
}


class SeededBugTest(NamedTuple):
    """One seeded bug and its test."""

    bug: str
    found_by: str  # ids of properties, or what else the test compares
    test: str  # file::function below tests/


SEEDED_BUG_TESTS: Final[tuple[SeededBugTest, ...]] = (
    SeededBugTest(
        "acknowledge_before_replication",
        "D6",
        "integration/test_replication.py::test_judge_finds_records_acknowledged_before_replication",
    ),
    SeededBugTest(
        "acts_after_resigning",
        "W7",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
    SeededBugTest(
        "allow_before_deny",
        "A1",
        "integration/test_direct_writes_are_judged.py"
        "::test_direct_write_is_judged_by_the_acls_of_its_broker",
    ),
    SeededBugTest(
        "answer_before_applied",
        "stale reads of clients",
        "integration/test_read_after_write.py::test_controller_that_answers_too_early_is_detected",
    ),
    SeededBugTest(
        "answers_overtake",
        "F4",
        "integration/test_bugs_of_connections.py::test_a_response_that_overtakes_another_fails_f4",
    ),
    SeededBugTest(
        "assumes_commit",
        "D1, K4",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
    SeededBugTest(
        "broker_host",
        "F1",
        "integration/test_forwarded_principals.py::test_decision_for_another_principal_is_detected",
    ),
    SeededBugTest(
        "counts_attempts",
        "K1",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
    SeededBugTest(
        "counts_operations",
        "R6",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
    SeededBugTest(
        "deletes_successors_znode",
        "W5, L7",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
    SeededBugTest(
        "decides_on_old_images",
        "the clients' comparison of configs and ACLs",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
    SeededBugTest(
        "drop_principal",
        "F1",
        "integration/test_forwarded_principals.py::test_decision_for_another_principal_is_detected",
    ),
    SeededBugTest(
        "fence_off", "W2", "integration/test_evidence_of_runs.py::test_missing_fence_fails_w2"
    ),
    SeededBugTest(
        "fill_in_default",
        "F2",
        "integration/test_forwarded_principals.py::test_reencoded_request_is_detected",
    ),
    SeededBugTest(
        "forgets_outcomes",
        "D2, D3, D5, F7",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
    SeededBugTest(
        "forgets_restarted_brokers",
        "no controller that every broker knows",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
    SeededBugTest(
        "gives_up_early",
        "unknown outcomes",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
    SeededBugTest(
        "honour_client_bypass",
        "the client's result",
        "integration/test_policies.py"
        "::test_a_clients_bypass_flag_has_an_effect_only_with_the_seeded_bug",
    ),
    SeededBugTest(
        "ignores_validate_only",
        "D9",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
    SeededBugTest(
        "leaves_sessions_open",
        "a long time without a success",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
    SeededBugTest(
        "loads_first_commits",
        "D11",
        "integration/test_group_coordinator_moves.py::test_judge_finds_wrong_committed_offsets",
    ),
    SeededBugTest(
        "loads_offsets_ahead",
        "D11",
        "integration/test_group_coordinator_moves.py::test_judge_finds_wrong_committed_offsets",
    ),
    SeededBugTest(
        "naive_retry",
        "D5",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
    SeededBugTest(
        "never_resends",
        "unknown outcomes",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
    SeededBugTest(
        "never_superseded",
        "K7",
        "integration/test_controller_znode_deleted.py::test_controller_that_stays_active_fails_k7",
    ),
    SeededBugTest(
        "omits_last_result",
        "D7",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
    SeededBugTest(
        "pings_while_blocked",
        "no controller replaces the blocked controller",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
    SeededBugTest(
        "registers_once",
        "unknown outcomes",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
    SeededBugTest(
        "rejects_the_rest",
        "the clients' results",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
    SeededBugTest(
        "relays_not_controller",
        "F5, F6",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
    SeededBugTest(
        "repeats_topic_ids",
        "D10",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
    SeededBugTest(
        "repeats_updates",
        "R2, R3",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
    SeededBugTest(
        "resends_forever",
        "F8, L1",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
    SeededBugTest(
        "resigns_early",
        "the number of elections",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
    SeededBugTest(
        "resigns_when_late",
        "the number of elections",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
    SeededBugTest(
        "retry_across_sessions",
        "W1, W2, W3 (together with the bug `fence_off`)",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
    SeededBugTest(
        "reuses_image",
        "W7",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
    SeededBugTest(
        "serves_expired_sessions",
        "A10",
        "integration/test_expired_credentials.py::test_served_expired_sessions_fail_a10",
    ),
    SeededBugTest(
        "skip_policy_on_retry",
        "the client's result",
        "unit/controller/test_policy_evaluation.py::test_a_resend_is_checked_again",
    ),
    SeededBugTest(
        "splits_the_election",
        "W4",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
    SeededBugTest(
        "stale_acl_cache",
        "the clients' results",
        "integration/test_forwarded_principals.py::test_broker_with_stale_acls_is_detected",
    ),
    SeededBugTest(
        "stays_at_one_member",
        "no further acknowledgements",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
    SeededBugTest(
        "swap_principals",
        "F1",
        "integration/test_forwarded_principals.py::test_decision_for_another_principal_is_detected",
    ),
    SeededBugTest(
        "trusts_identities",
        "F10",
        "integration/test_bugs_of_connections.py::test_an_envelope_that_no_broker_sent_fails_f10",
    ),
    SeededBugTest(
        "unfenced_configs",
        "W2",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
    SeededBugTest(
        "wall_clock_deadlines",
        "unknown outcomes",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
    SeededBugTest(
        "writes_past_the_bridge",
        "W6",
        "integration/test_upgrade.py"
        "::test_direct_writes_of_a_broker_that_claims_to_forward_are_detected",
    ),
    SeededBugTest(
        "writes_rejected_configs",
        "the clients' comparison of configs",
        "kill_matrix/kafka_bugs.py::test_the_judge_finds_the_bug",
    ),
)
