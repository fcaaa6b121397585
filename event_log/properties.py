"""Every property that the judges check: its statement, its rows, and the key of a violation.

A row is one thing that is judged, such as a transaction; the key names the row of a violation.
Both judges (`judge/properties` in Python, `pipeline/properties` in SQL) read the registry
`event_log/properties.py`. They must agree on the verdict, the number of rows, and the key and text
of every violation. Each judge has one module for each property, with the property's name. A
witness is a kind of evidence: commits (ZooKeeper's transactions), events (of nodes and of the
harness) or clients (their histories). A gap is evidence that is known to be missing; for each
property the registry says whether a gap in one of its witnesses prevents the verdict PASS, FAIL,
both or neither.
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
        row="applied transactions that write metadata, except those that W6 allows brokers to make",
        key="<zxid>",
        gap_blocks_fail=True,  # the gap may hide the election
    ),
    PropertySpec(
        id="W2",
        name="every_write_is_fenced",
        statement="every metadata write is in a transaction that checks the controller epoch",
        witnesses=("commits",),
        row="applied transactions that write metadata, except those that W6 allows brokers to make",
        key="<zxid>",
    ),
    PropertySpec(
        id="W3",
        name="no_zombie_effect",
        statement="a process that is no longer the controller has no effect",
        witnesses=("commits", "events"),
        row="metadata writes of known processes, acknowledged decisions, images of brokers",
        key="zxid/<zxid> or <node>/<boot>/<seq>",
    ),
    PropertySpec(
        id="W4",
        name="epochs_step_by_one",
        statement="each election raises the epoch by one, in the transaction that creates "
        "/controller",
        witnesses=("commits",),
        row="applied transactions that create /controller or set /controller_epoch",
        key="<zxid>",
        gap_blocks_fail=True,
    ),
    PropertySpec(
        id="W5",
        name="controller_znode_belongs_to_owner",
        statement="/controller is deleted only by its owner: when the owner's session ends, or "
        "with a check of the epoch",
        witnesses=("commits",),
        row="applied operations that create or delete /controller",
        key="<zxid>",
    ),
    PropertySpec(
        id="W6",
        name="only_controllers_write",
        statement="controllers write metadata; brokers write their registration and, below the "
        "bridge release, configs, quotas, ACLs and tokens; every node may create the paths that a "
        "cluster needs at its start; other sessions write nothing",
        witnesses=("commits", "events"),
        row="applied transactions with a write below the chroot, except those that end a session",
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
        row="acknowledged elements in responses of brokers and in operations of clients, znodes of "
        "the final dump",
        key="<request id>/<element>, <op id>/<element> or znode<path>",
        gap_blocks_fail=True,
    ),
    PropertySpec(
        id="D2",
        name="rejected_write_has_no_effect",
        statement="a rejected write has no effect",
        witnesses=("commits", "events", "clients"),
        row="rejected elements in responses of brokers and in operations of clients",
        key="<request id>/<element> or <op id>/<element>",
    ),
    PropertySpec(
        id="D3",
        name="at_most_once",
        statement="no element of a request is committed twice, and no request creates two tokens",
        witnesses=("commits",),
        row="elements with a committed outcome",
        key="<broker>/<incarnation>/<sequence>/<element or token>",
    ),
    PropertySpec(
        id="D4",
        name="unknown_outcome_is_resolved",
        statement="a write without a definite response took effect once or not at all",
        witnesses=("commits", "events", "clients"),
        row="forwarded requests and operations of clients without a definite response",
        key="<request id> or <op id>",
    ),
    PropertySpec(
        id="D5",
        name="error_code_matches_state",
        statement="an error code matches a state that the topic had between the decision and the "
        "response",
        witnesses=("commits", "events"),
        row="elements of CreateTopics, DeleteTopics and CreatePartitions, without dry runs, whose "
        "error code depends on whether the topic exists",
        key="<request id>/<element>",
        gap_blocks_fail=True,
    ),
    PropertySpec(
        id="D6",
        name="acknowledged_record_is_kept",
        statement="a record that was acknowledged with acks=all is kept at its offset",
        witnesses=("events",),
        row="partitions of acknowledged produce requests, if the partition's log was reported: by "
        "a leader that stopped cleanly, in the leader epoch of the acknowledgement or a later one",
        key="<node>/<boot>/<seq>",
        gap_blocks_fail=True,  # the gap may hide batches of the log
    ),
    PropertySpec(
        id="D7",
        name="every_element_gets_a_result",
        statement="a response has exactly one result for each element of its request",
        witnesses=("clients",),
        row="operations of clients with a definite result",
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
        statement="a created topic has an id that no earlier topic had",
        witnesses=("commits",),
        row="creations of topics that have an id",
        key="<zxid>/<topic>",
    ),
    PropertySpec(
        id="D11",
        name="committed_offset_is_kept",
        statement="for each offset, a coordinator reports the last acknowledged commit or a later "
        "commit",
        witnesses=("events",),
        row="committed offsets of a group at each report of its coordinator, except offsets whose "
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
        row="executions, and responses that brokers got, if both the broker and the controller "
        "recorded a digest",
        key="<node>/<boot>/<seq> of the execution or of the forward_answered event",
        gap_blocks_fail=True,  # the gap may hide the decision that made the response
    ),
    PropertySpec(
        id="F4",
        name="answers_keep_their_order",
        statement="on each connection, responses have the order of the requests",
        witnesses=("events",),
        row="responses to requests that have a request_received event, except requests inside "
        "Envelopes of clients",
        key="<request id>",
    ),
    PropertySpec(
        id="F5",
        name="not_controller_is_not_relayed",
        statement="no client gets NOT_CONTROLLER for a forwarded request",
        witnesses=("events",),
        row="responses to requests of route FORWARD",
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
        row="requests (broker, incarnation and sequence) whose Envelope arrived more than once",
        key="<broker>/<incarnation>/<sequence>/<element>",
    ),
    PropertySpec(
        id="F8",
        name="resends_end_at_deadline",
        statement="a broker resends no request that is answered or whose time limit has passed",
        witnesses=("events",),
        row="attempts to forward requests of clients, except attempts of frozen brokers",
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
        statement="on each connection, a read never returns older metadata than the read before",
        witnesses=("events",),
        row="responses of brokers from their own image",
        key="<request id>",
    ),
    PropertySpec(
        id="R6",
        name="image_is_committed",
        statement="an image has no metadata that ZooKeeper did not commit",
        witnesses=("commits", "events"),
        row="image_advanced events with a zxid of this run, except the first zxid of a ZooKeeper "
        "epoch",
        key="<node>/<boot>/<seq>",
        gap_blocks_fail=True,
    ),
    PropertySpec(
        id="K1",
        name="metrics_equal_events",
        statement="each of four counters of requests equals the number of events that it counts",
        witnesses=("events",),
        row="these counters in metrics_snapshot events",
        key="<node>/<boot>/<seq>/<counter>",
        gap_blocks_fail=True,
    ),
    PropertySpec(
        id="K2",
        name="flows_are_conserved",
        statement="every request gets one response, or its connection was lost",
        witnesses=("events",),
        row="requests received, and forwarding attempts",
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
        statement="a forwarded request is answered, or its connection ends, within the time limit "
        "of the request",
        witnesses=("events",),
        row="forwarded requests, except those that frozen brokers received",
        key="<request id>",
        gap_blocks_fail=True,  # the gap may hide the response
        violated="HANG",
    ),
    PropertySpec(
        id="L7",
        name="elections_have_causes",
        statement="there are at most as many elections as faults and stopped controllers explain",
        witnesses=("commits", "events"),
        row="elections",
        key="<zxid>",
        gap_blocks_fail=True,  # the gap may hide a fault
    ),
    PropertySpec(
        id="T1",
        name="faults_take_effect",
        statement="each fault had an effect and was healed, except that kill, stop and expire need "
        "no healing; clients were active before, during and after the faults",
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
        "after each fault a scenario waits at most 30 s for a controller; no shorter limit holds "
        "on a busy machine. `polite_stop` also limits the time without a success (`gap_max_s`); "
        "the pipeline's table `controller_terms` has the times of each failover",
    ),
    (
        "the controller's queue becomes empty after the load",
        "only metrics_snapshot events have the queue's length, and none is written at the end of a "
        "load",
    ),
    (
        "the images of all brokers become equal",
        "an image_advanced event has no digest of the image; at the end of a scenario, most "
        "workloads compare what brokers describe",
    ),
    (
        "the node in /controller answers as controller",
        "no event shows whether the node answers; `bridgehead status` and the scenarios check it. "
        "`blocked_event_loop` fails if a controller that does not work stays in /controller",
    ),
    (
        "clients progress during faults that do not stop writes",
        "most scenarios with such a fault wait for acknowledgements during the fault; if there are "
        "none, the run is HANG",
    ),
    (
        "there are few unknown outcomes",
        "some scenarios have a limit of their own (`open_max`)",
    ),
    ("connections, tasks and sessions are released", "tests in tests/integration count them"),
    (
        "no update of a znode is lost",
        "a commit line has no digest of the content before the write; multis check versions to "
        "prevent lost updates, and tests/integration/test_damaged_znodes.py covers these checks",
    ),
    (
        "a request has no effect after its time limit",
        "transactions have wall-clock times only, which may jump",
    ),
    (
        "the sender of an Envelope is allowed ClusterAction, and has the current broker epoch",
        "the events of Envelopes show neither; tests/integration/test_inter_broker_channel.py "
        "covers the refusals",
    ),
    (
        "a broker never forwards to an earlier controller",
        "forward_sent has the controller's id, but not its epoch; W3 judges the epochs of images",
    ),
    (
        "a controller refuses brokers of another cluster",
        "Envelopes carry no cluster id",
    ),
    (
        "every denial agrees with the ACLs (A1 judges what was allowed)",
        "an error code does not show which right was missing",
    ),
    (
        "a revoked right is denied at every broker at once",
        "brokers learn ACLs with a delay; as in Kafka, the delay has no limit",
    ),
    (
        "there is one authorization decision for each resource, and policies are not bypassed",
        "no event records single decisions of authorizers and policies; "
        "tests/integration/test_policies.py covers them",
    ),
    (
        "the flag for bypassing policies is rejected if a client sets it",
        "no event has the flag; tests/integration/test_policies.py covers it",
    ),
    (
        "a policy decides equal requests equally, on each controller",
        "no event records single decisions of policies, and a user's policy may read the time or "
        "other state",
    ),
    (
        "secrets never occur in evidence, and denials reveal nothing",
        "the judge does not know the secrets; tests in tests/integration search for planted ones, "
        "and compare responses",
    ),
    (
        "a read at any broker shows every acknowledged write",
        "this holds only with bridgehead.metadata.blocking=cluster or bridgehead.metadata.reads="
        "controller; the workload `read_after_write` compares responses",
    ),
    (
        "images with equal zxids are equal, and the same as a replay of the log",
        "an image_advanced event has no digest of the image",
    ),
    (
        "verdicts do not depend on the wall clock",
        "a statement about the judge: tests/unit/judge/test_wall_clock.py",
    ),
)
