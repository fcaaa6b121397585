"""Every property that the judges check, and the statements that no property covers.

There are two judges: `judge/properties` (Python) and `pipeline/properties` (SQL). Both read the
registry `event_log/properties.py`, and both have one module for each property, with the property's
name. The judges must agree on the verdict, on the number of rows, and on the key and the text of
every violation.

The columns of the table of properties:

- *statement*: what must hold.
- *witnesses*: the kinds of evidence that the property needs. `commits` are ZooKeeper's
  transactions. `events` are the events of nodes and of the harness. `clients` are the histories
  that workloads record of their clients' operations.
- *rows*: the things that are judged, such as transactions.
- *key of a violation*: the text that identifies the row of a violation. `<node>/<boot>/<seq>`
  identifies an event, and `<broker>/<incarnation>/<sequence>` a request with all its resends.
- *a gap blocks*: a gap is evidence that is known to be missing. The column has the verdicts (PASS,
  FAIL) that a gap in one of the property's witnesses prevents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# What an error code tells a client: the write is done (OK), or its outcome is unknown (INFO). After
# any other code, nothing was done.
OK_CODES: Final = frozenset({0})
# -1 UNKNOWN_SERVER_ERROR, 7 REQUEST_TIMED_OUT (KIP-4: it may finish later), 13 NETWORK_EXCEPTION,
# 41 NOT_CONTROLLER (an earlier attempt of the same Envelope may have been executed).
INFO_CODES: Final = frozenset({-1, 7, 13, 41})
# A client that retries may get these because of its own earlier success:
# 3 UNKNOWN_TOPIC_OR_PARTITION, 36 TOPIC_ALREADY_EXISTS, 37 INVALID_PARTITIONS. D2 does not judge
# them in a client's history.
RETRY_CODES: Final = frozenset({3, 36, 37})
# D6: the `crc` of a records_acknowledged event for a retry. An earlier attempt appended the batch,
# so its CRC is not recorded.
UNKNOWN_CRC: Final = -1
# A10: a broker checks the credential and then records the request. The record of a request that was
# checked just before the expiry may be this much later than the expiry.
RECORDED_LATER_MS_MAX: Final = 100

# On a busy machine, a response (L1) and the last attempt to forward (F8) may be this much after the
# time limit.
ANSWERED_LATER_MS_MAX: Final = 5_000
# F4: the suffix of the id of a request that a client sent in an Envelope.
INNER: Final = ".inner"
# L7: see judge/properties/elections_have_causes.py.
ELECTIONS_PER_FAULT_MAX: Final = 2
STOP_SIGNALS: Final = ("SIGINT", "SIGTERM")  # reasons of `resigned`
# F6: the client's error for each error of an Envelope: 7 REQUEST_TIMED_OUT, 35 UNSUPPORTED_VERSION
# (then the connection is closed), 41 NOT_CONTROLLER. All others become -1 UNKNOWN_SERVER_ERROR.
ENVELOPE_ERRORS: Final = {7: 7, 35: 35, 41: 7}
UNMAPPED_ENVELOPE_ERROR: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertySpec:
    """One property. Both judges identify a violation by the same key."""

    id: str
    name: str
    statement: str
    witnesses: tuple[str, ...]  # the evidence that it needs: commits, events, clients
    row: str  # what counts as one row
    key: str  # how a violation's key is spelled
    gap_blocks_pass: bool = True  # a gap in a witness could hide a violation
    gap_blocks_fail: bool = False  # a gap in a witness could explain a violation
    violated: str = "FAIL"  # the verdict after a violation


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One counter-example. `rows` are the evidence for it, in order.

    Each row is `zxid/<zxid>`, `event/<node>/<boot>/<seq>`, `file/<path>` or `znode<path>`.
    """

    property: str
    key: str
    rows: tuple[str, ...]
    sentence: str


def violation_order(violation: Violation) -> tuple[int, str, str]:
    """Sort key of violations of one property; the first one's sentence explains the verdict."""
    return len(violation.key), violation.key, violation.sentence


PROPERTY_SPECS: Final[tuple[PropertySpec, ...]] = (
    PropertySpec(
        id="W1",
        name="single_writer",
        statement="every metadata write is made by the session that holds the controller epoch",
        witnesses=("commits",),
        row="transactions that wrote metadata, except transactions that W6 allows brokers to make",
        key="<zxid>",
        gap_blocks_fail=True,  # the gap may hide the election
    ),
    PropertySpec(
        id="W2",
        name="every_write_is_fenced",
        statement="every metadata write is in a transaction that checks the controller epoch",
        witnesses=("commits",),
        row="transactions that wrote metadata, except transactions that W6 allows brokers to make",
        key="<zxid>",
    ),
    PropertySpec(
        id="W3",
        name="no_zombie_effect",
        statement="a process that is no longer the controller has no effect",
        witnesses=("commits", "events"),
        row="transactions in which known processes wrote metadata; decisions that acknowledge a "
        "write; images of brokers",
        key="zxid/<zxid> or <node>/<boot>/<seq>",
    ),
    PropertySpec(
        id="W4",
        name="epochs_step_by_one",
        statement="each election raises the epoch by one, in the transaction that creates "
        "/controller",
        witnesses=("commits",),
        row="transactions that created /controller or set /controller_epoch",
        key="<zxid>",
        gap_blocks_fail=True,
    ),
    PropertySpec(
        id="W5",
        name="controller_znode_belongs_to_owner",
        statement="only the session that owns /controller deletes it: at the end of the session, "
        "or in a transaction that checks the epoch",
        witnesses=("commits",),
        row="operations that created or deleted /controller",
        key="<zxid>",
    ),
    PropertySpec(
        id="W6",
        name="only_controllers_write",
        statement="a controller may write metadata; a broker may write its registration; a broker "
        "below the bridge release may also write configs, quotas, ACLs and tokens; every node may "
        "create the paths that a cluster needs at its start; no other session writes anything",
        witnesses=("commits", "events"),
        row="transactions that wrote below the chroot, except transactions that end a session",
        key="<zxid>",
        gap_blocks_fail=True,  # the gap may hide the session's owner
    ),
    PropertySpec(
        id="W7",
        name="controller_acts_in_its_term",
        statement="a node acts as controller only between its election and its resignation",
        witnesses=("events",),
        row="executions, decisions and sent commits of controllers",
        key="<node>/<boot>/<seq>",
        gap_blocks_fail=True,  # the gap may hide the election
    ),
    PropertySpec(
        id="D1",
        name="acknowledged_write_is_kept",
        statement="an acknowledged write is committed before its response, and is kept",
        witnesses=("commits", "events", "clients"),
        row="acknowledged elements in brokers' responses; acknowledged elements in clients' "
        "operations; znodes of the final dump",
        key="<request id>/<element>, <op id>/<element> or znode<path>",
        gap_blocks_fail=True,
    ),
    PropertySpec(
        id="D2",
        name="rejected_write_has_no_effect",
        statement="a rejected write has no effect",
        witnesses=("commits", "events", "clients"),
        row="rejected elements in brokers' responses and in clients' operations",
        key="<request id>/<element> or <op id>/<element>",
    ),
    PropertySpec(
        id="D3",
        name="at_most_once",
        statement="no element of a request is committed twice; no request creates two tokens",
        witnesses=("commits",),
        row="elements with a committed outcome",
        key="<broker>/<incarnation>/<sequence>/<element or token>",
    ),
    PropertySpec(
        id="D4",
        name="unknown_outcome_is_resolved",
        statement="a write without a definite response took effect once or not at all",
        witnesses=("commits", "events", "clients"),
        row="forwarded requests, and clients' operations, without a definite response",
        key="<request id> or <op id>",
    ),
    PropertySpec(
        id="D5",
        name="error_code_matches_state",
        statement="the error code about a topic matches a state that the topic had between the "
        "decision and the response",
        witnesses=("commits", "events"),
        row="elements of CreateTopics, DeleteTopics and CreatePartitions whose error code depends "
        "on whether the topic exists; dry runs do not count",
        key="<request id>/<element>",
        gap_blocks_fail=True,
    ),
    PropertySpec(
        id="D6",
        name="acknowledged_record_is_kept",
        statement="a record that was acknowledged with acks=all is kept at its offset",
        witnesses=("events",),
        row="acknowledgements of records, if a leader that stopped cleanly reported the "
        "partition's log in the same leader epoch or a later one",
        key="<node>/<boot>/<seq>",
        gap_blocks_fail=True,  # the gap may hide batches of the log
    ),
    PropertySpec(
        id="D7",
        name="every_element_gets_a_result",
        statement="a response has exactly one result for each element of its request",
        witnesses=("clients",),
        row="clients' operations with a definite result",
        key="<op id>",
        gap_blocks_fail=True,
    ),
    PropertySpec(
        id="D9",
        name="validate_only_has_no_effect",
        statement="a request with validate_only commits nothing",
        witnesses=("commits", "events"),
        row="decisions with validate_only",
        key="<node>/<boot>/<seq>",
    ),
    PropertySpec(
        id="D10",
        name="topic_id_is_used_once",
        statement="the id of a new topic differs from the ids of all earlier topics",
        witnesses=("commits",),
        row="creations of topics that have an id",
        key="<zxid>/<topic>",
    ),
    PropertySpec(
        id="D11",
        name="committed_offset_is_kept",
        statement="the report of a coordinator has, for each group and partition, the last "
        "acknowledged commit or a later one",
        witnesses=("events",),
        row="committed offsets, once for each report of their coordinator, except offsets whose "
        "last change was a deletion or expiry",
        key="<node>/<boot>/<seq>/<group>/<topic>-<partition>",
        gap_blocks_fail=True,  # the gap may hide a deletion
    ),
    PropertySpec(
        id="F1",
        name="principal_is_preserved",
        statement="the controller decides for the principal, host and listener that the broker saw",
        witnesses=("events",),
        row="executions of requests that have a request_received event",
        key="<node>/<boot>/<seq> of the execution",
    ),
    PropertySpec(
        id="F2",
        name="bytes_are_preserved",
        statement="the controller executes the bytes that the client sent, and the broker gets the "
        "response bytes that the controller sent",
        witnesses=("events",),
        row="executions, and responses to Envelopes, for which both the broker and the controller "
        "recorded a digest",
        key="<node>/<boot>/<seq> of the execution or of the forward_answered event",
        gap_blocks_fail=True,  # the gap may hide the decision that made the response
    ),
    PropertySpec(
        id="F4",
        name="answers_keep_their_order",
        statement="on each connection, the responses have the same order as the requests",
        witnesses=("events",),
        row="responses to requests that have a request_received event, except requests in "
        "Envelopes that clients sent",
        key="<request id>",
    ),
    PropertySpec(
        id="F5",
        name="not_controller_is_not_relayed",
        statement="no client gets NOT_CONTROLLER for a forwarded request",
        witnesses=("events",),
        row="responses to requests with the route FORWARD",
        key="<request id>",
    ),
    PropertySpec(
        id="F6",
        name="envelope_errors_are_mapped",
        statement="a client gets the error that KIP-590 assigns to the error of an Envelope",
        witnesses=("events",),
        row="responses to requests whose last Envelope failed",
        key="<request id>",
        gap_blocks_fail=True,  # the gap may hide a later attempt
    ),
    PropertySpec(
        id="F7",
        name="replayed_envelope_acts_once",
        statement="an Envelope that arrives more than once has one effect and one outcome",
        witnesses=("commits", "events"),
        row="requests whose Envelope arrived more than once",
        key="<broker>/<incarnation>/<sequence>/<element>",
    ),
    PropertySpec(
        id="F8",
        name="resends_end_at_deadline",
        statement="a broker does not resend a request after the response or after the time limit "
        "of the request",
        witnesses=("events",),
        row="attempts to forward clients' requests, except attempts of brokers that a fault froze",
        key="<node>/<boot>/<seq>",
        gap_blocks_fail=True,  # the gap may hide the record of the freeze
    ),
    PropertySpec(
        id="F10",
        name="executed_envelope_was_sent",
        statement="a controller executes only Envelopes that brokers sent",
        witnesses=("events",),
        row="executions of Envelopes, except Envelopes of killed brokers",
        key="<node>/<boot>/<seq> of the execution",
        gap_blocks_fail=True,  # the gap may hide the attempt
    ),
    PropertySpec(
        id="A1",
        name="no_unauthorized_effect",
        statement="every committed change was authorized by the ACLs at the time of the decision",
        witnesses=("commits", "events"),
        row="committed elements of requests with a known principal, in runs with an authorizer",
        key="<request id>/<element>",
        gap_blocks_fail=True,  # the gap may hide the ACL that allowed it
    ),
    PropertySpec(
        id="A10",
        name="no_request_on_expired_credential",
        statement="no request is executed after the login of its client has expired",
        witnesses=("events",),
        row="requests received from clients whose login expires",
        key="<request id>",
        gap_blocks_fail=True,  # the gap may hide a reauthentication
    ),
    PropertySpec(
        id="R2",
        name="image_is_monotonic",
        statement="the zxid of an image never decreases",
        witnesses=("events",),
        row="image_advanced events",
        key="<node>/<boot>/<seq>",
        gap_blocks_pass=False,
    ),
    PropertySpec(
        id="R3",
        name="reads_are_monotonic",
        statement="on each connection, no read returns older metadata than the read before it",
        witnesses=("events",),
        row="responses that brokers made from their own image",
        key="<request id>",
    ),
    PropertySpec(
        id="R6",
        name="image_is_committed",
        statement="an image has no metadata that ZooKeeper did not commit",
        witnesses=("commits", "events"),
        row="image_advanced events with a zxid of this run, except the first zxid of a ZooKeeper "
        "leader's epoch",
        key="<node>/<boot>/<seq>",
        gap_blocks_fail=True,
    ),
    PropertySpec(
        id="K1",
        name="metrics_equal_events",
        statement="four counters of requests equal the number of events that they count",
        witnesses=("events",),
        row="the values of `num_messages_redirected_count`, "
        "`request_forwarding_to_controller_authorization_fail_count`, "
        "`not_controller_answers_count` and `kafka_network_requestmetrics_requests_count` in "
        "metrics_snapshot events",
        key="<node>/<boot>/<seq>/<counter>",
        gap_blocks_fail=True,
    ),
    PropertySpec(
        id="K2",
        name="flows_are_conserved",
        statement="every request gets exactly one response, unless its connection is lost",
        witnesses=("events",),
        row="received requests, and attempts to forward",
        key="<request id> or <request id>/<attempt>",
        gap_blocks_fail=True,
    ),
    PropertySpec(
        id="K3",
        name="log_is_complete",
        statement="every boot has all its events up to its end, written by one process",
        witnesses=("events", "clients"),
        row="boots",
        key="<node>/<boot>/<seq>",
    ),
    PropertySpec(
        id="K4",
        name="reported_commit_exists",
        statement="every commit that a controller reports is in ZooKeeper's transaction log",
        witnesses=("commits", "events"),
        row="commit_answered events",
        key="<node>/<boot>/<seq>",
        gap_blocks_fail=True,
    ),
    PropertySpec(
        id="K6",
        name="lines_are_conserved",
        statement="every sealed line was read and is accounted for",
        witnesses=(),
        row="files with lines",
        key="<path>",
        gap_blocks_pass=False,
    ),
    PropertySpec(
        id="K7",
        name="superseded_controller_resigns",
        statement="a node resigns as controller before it applies metadata of a later controller",
        witnesses=("events",),
        row="images of brokers",
        key="<node>/<boot>/<seq>",
        gap_blocks_fail=True,  # the gap may hide the resignation
    ),
    PropertySpec(
        id="L1",
        name="request_is_answered_in_time",
        statement="within its time limit, a forwarded request is answered or its connection ends",
        witnesses=("events",),
        row="forwarded requests, except requests to brokers that a fault froze",
        key="<request id>",
        gap_blocks_fail=True,  # the gap may hide the response
        violated="HANG",
    ),
    PropertySpec(
        id="L7",
        name="elections_have_causes",
        statement="there are no more elections than faults and stopped controllers explain",
        witnesses=("commits", "events"),
        row="elections",
        key="<zxid>",
        gap_blocks_fail=True,  # the gap may hide a fault
    ),
    PropertySpec(
        id="T1",
        name="faults_take_effect",
        statement="each fault had an effect; each fault was healed, except kills, stops and "
        "expired sessions, which need no healing; clients were active before, during and after the "
        "faults",
        witnesses=("events", "clients"),
        row="faults of a scenario",
        key="<node>/<boot>/<seq>",
        gap_blocks_fail=True,
        violated="NODATA",  # a fault without effect proves nothing
    ),
)


# Statements that no property judges, each with the reason; docs/properties.md lists them.
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
