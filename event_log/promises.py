"""Every property that a run is judged by: its name, what it promises, and what its rows are.

Both judges (chaos/properties in plain Python, the Spark pipeline) read this registry and must come
to the same verdict, the same number of rows judged and the same keys of violations. Data alone.

Verdict of one property, in this order:
1. NODATA   a witness in `needs` is out of reach (its files were never part of the run)
2. NODATA   it does not apply: A1 without an authorizer, T1 outside of scenarios
3. FAIL     a violation was found (T1: NODATA); UNKNOWN instead where `absence_accuses` and a
            needed witness has a hole: what seems to be missing may be in the hole
4. UNKNOWN  a needed witness has a hole and `absence_clears`: a violation may be in the hole
5. NODATA   nothing was judged: no row of that kind was there
6. PASS
CRASHED is a judge that broke. A run's verdict is the worst of the properties that decide (order of
VERDICTS): those that the run's manifest expects; where it expects none in particular, all but
those that are NODATA by rule 2 or 5, and NODATA when none is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

VERDICTS: Final = ("FAIL", "UNKNOWN", "HANG", "NODATA", "CRASHED", "PASS")  # worst first
EXIT_CODES: Final = {"PASS": 0, "FAIL": 1, "HANG": 1, "UNKNOWN": 2, "NODATA": 2, "CRASHED": 2}

# What a client may make of a code. Everything that is neither is a definite no.
OK_CODES: Final = frozenset({0})
# -1 UNKNOWN_SERVER_ERROR, 7 REQUEST_TIMED_OUT (KIP-4: it may finish later), 13 NETWORK_EXCEPTION,
# 41 NOT_CONTROLLER (an Envelope that was answered so may have been executed before).
INFO_CODES: Final = frozenset({-1, 7, 13, 41})
# A client that asks again by itself may be told so about its own earlier success: 3 UNKNOWN_TOPIC,
# 36 TOPIC_ALREADY_EXISTS, 37 INVALID_PARTITIONS. D2 does not judge them in a client's history.
AGAIN_CODES: Final = frozenset({3, 36, 37})


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """One property. Two judges found the same violations when their keys are equal."""

    id: str
    name: str
    promise: str
    needs: tuple[str, ...]  # commits, events, clients
    judged: str  # what is counted as a row
    key: str  # form of a violation's key
    absence_clears: bool  # a PASS rests on something that is not there
    absence_accuses: bool  # a violation rests on something that is not there
    breach: str = "FAIL"  # what a violation makes of the verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One counter-example. `rows` are what it is made of, in order.

    Each is `zxid/<zxid>`, `event/<node>/<boot>/<seq>`, `file/<path>` or `znode<path>`.
    """

    property: str
    key: str
    rows: tuple[str, ...]
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRow:
    """One line of a result. `decides`: it counts for the verdict of the run."""

    property: str
    name: str
    verdict: str
    judged: int
    violations: int
    decides: bool
    why: str  # the first violation's sentence, the hole, or what is missing; "" for PASS


PROMISES: Final[tuple[Promise, ...]] = (
    Promise(
        id="W1",
        name="single_writer",
        promise="every metadata write is made by the session that holds the epoch then in force",
        needs=("commits",),
        judged="applied transactions with a write of role admin that W6 does not let a broker make",
        key="<zxid>",
        absence_clears=True,
        absence_accuses=True,  # the election that entitled it may be in the hole
    ),
    Promise(
        id="W2",
        name="every_write_is_fenced",
        promise="every metadata write stands in a transaction that checks the controller's epoch",
        needs=("commits",),
        judged="applied transactions with a write of role admin that W6 does not let a broker make",
        key="<zxid>",
        absence_clears=True,
        absence_accuses=False,
    ),
    Promise(
        id="W3",
        name="no_zombie_effect",
        promise="a process that was superseded as controller has no effect any more",
        needs=("commits", "events"),
        judged="admin transactions of known processes, acknowledged decisions, brokers' images",
        key="zxid/<zxid> or <node>/<boot>/<seq>",
        absence_clears=True,
        absence_accuses=False,
    ),
    Promise(
        id="W4",
        name="epochs_step_by_one",
        promise="each election raises the epoch by one, in the transaction that makes /controller",
        needs=("commits",),
        judged="applied transactions that create /controller or set /controller_epoch",
        key="<zxid>",
        absence_clears=True,
        absence_accuses=True,
    ),
    Promise(
        id="W5",
        name="controller_node_belongs_to_its_owner",
        promise="/controller goes with its owner's session, or by its owner's own checked delete",
        needs=("commits",),
        judged="applied operations that create or delete /controller",
        key="<zxid>",
        absence_clears=True,
        absence_accuses=False,
    ),
    Promise(
        id="W6",
        name="only_controllers_write",
        promise="brokers write their own registration and, below the bridge release, what brokers "
        "wrote then; controllers the metadata, strangers nothing",
        needs=("commits", "events"),
        judged="applied transactions with a write below the chroot, ends of sessions left out",
        key="<zxid>",
        absence_clears=True,
        absence_accuses=True,  # the event that names the session's owner may be in the hole
    ),
    Promise(
        id="D1",
        name="acknowledged_is_kept",
        promise="what was acknowledged is committed, was so before the answer, and is still there",
        needs=("commits", "events", "clients"),
        judged="acknowledged elements of brokers' answers and of clients, znodes of the final dump",
        key="<request id>/<element>, <op id>/<element> or znode<path>",
        absence_clears=True,
        absence_accuses=True,
    ),
    Promise(
        id="D2",
        name="refused_leaves_no_trace",
        promise="what was refused was not done",
        needs=("commits", "events", "clients"),
        judged="refused elements of brokers' answers and of clients",
        key="<request id>/<element> or <op id>/<element>",
        absence_clears=True,
        absence_accuses=False,
    ),
    Promise(
        id="D3",
        name="at_most_once",
        promise="a request that was sent twice took effect once",
        needs=("commits",),
        judged="elements with a committed outcome",
        key="<broker>/<incarnation>/<sequence>/<element>",
        absence_clears=True,
        absence_accuses=False,
    ),
    Promise(
        id="D4",
        name="unknown_is_resolved",
        promise="what nobody was told the end of took effect once or not at all, and it is known",
        needs=("commits", "events", "clients"),
        judged="write requests and clients' operations whose end nobody was told",
        key="<request id> or <op id>",
        absence_clears=True,
        absence_accuses=False,
    ),
    Promise(
        id="D5",
        name="answer_tells_the_truth",
        promise="nobody was told of a state that was not so, or that its own request had made",
        needs=("commits", "events"),
        judged="answered elements of CreateTopics, DeleteTopics and CreatePartitions whose code "
        "says something of the state",
        key="<request id>/<element>",
        absence_clears=True,
        absence_accuses=True,
    ),
    Promise(
        id="F1",
        name="principal_is_preserved",
        promise="the controller decides for the principal, host and listener that the broker saw",
        needs=("events",),
        judged="executions whose request_received is there",
        key="<node>/<boot>/<seq> of the execution",
        absence_clears=True,
        absence_accuses=False,
    ),
    Promise(
        id="F2",
        name="bytes_are_preserved",
        promise="the controller decides the very bytes that the client wrote, and the broker "
        "relays the very bytes that it answered",
        needs=("events",),
        judged="executions of requests with a digest, and answers that came back with one",
        key="<node>/<boot>/<seq> of the execution or of the forward_answered",
        absence_clears=True,
        absence_accuses=True,  # the decision whose answer was relayed may be in the hole
    ),
    Promise(
        id="F5",
        name="not_controller_does_not_leak",
        promise="no client of a forwarded request is told NOT_CONTROLLER",
        needs=("events",),
        judged="answers to requests of route FORWARD",
        key="<request id>",
        absence_clears=True,
        absence_accuses=False,
    ),
    Promise(
        id="F7",
        name="a_replayed_envelope_acts_once",
        promise="an Envelope that arrives again has one effect in all, and one answer",
        needs=("commits", "events"),
        judged="identities whose Envelope was received more than once",
        key="<broker>/<incarnation>/<sequence>/<element>",
        absence_clears=True,
        absence_accuses=False,
    ),
    Promise(
        id="A1",
        name="no_unauthorised_effect",
        promise="whoever changed something was allowed to, by the ACLs as they stood then",
        needs=("commits", "events"),
        judged="committed elements of requests of known principals, where there is an authorizer",
        key="<request id>/<element>",
        absence_clears=True,
        absence_accuses=True,  # the ACL that allowed it may be in the hole
    ),
    Promise(
        id="R2",
        name="image_is_monotonic",
        promise="no image of the metadata goes back in time",
        needs=("events",),
        judged="image_advanced events",
        key="<node>/<boot>/<seq>",
        absence_clears=False,
        absence_accuses=False,
    ),
    Promise(
        id="K1",
        name="metrics_equal_events",
        promise="every counter that a node shows equals the number of its events",
        needs=("events",),
        judged="counters in metrics_snapshot events",
        key="<node>/<boot>/<seq>/<counter>",
        absence_clears=True,
        absence_accuses=True,
    ),
    Promise(
        id="K2",
        name="flows_are_conserved",
        promise="what came in went out, or its connection was lost",
        needs=("events",),
        judged="requests received, and attempts to forward",
        key="<request id> or <request id>/<attempt>",
        absence_clears=True,
        absence_accuses=True,
    ),
    Promise(
        id="K3",
        name="log_is_complete",
        promise="every boot's events are there without a hole, up to its end, and written by one",
        needs=("events", "clients"),
        judged="boots",
        key="<node>/<boot>/<seq>",
        absence_clears=True,
        absence_accuses=False,
    ),
    Promise(
        id="K6",
        name="lines_are_conserved",
        promise="every line that was sealed was read, and is accounted for",
        needs=(),
        judged="files with lines",
        key="<path>",
        absence_clears=False,
        absence_accuses=False,
    ),
    Promise(
        id="T1",
        name="the_scenario_has_teeth",
        promise="the fault bit, was healed, and work was done before, during and after it",
        needs=("events", "clients"),
        judged="faults of a scenario; none outside of scenarios",
        key="<node>/<boot>/<seq>",
        absence_clears=True,
        absence_accuses=True,
        breach="NODATA",  # a scenario that did not bite proves nothing
    ),
)
