"""The bounded models of Forwarding.tla that `make spec` checks, and their negative controls.

A model gives every constant a value. TLC visits all of its reachable states. A control is a model
without one protective part; TLC must find a behaviour that violates the named invariant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from judge.spec.tlc import Expression

SAFETY: Final = (
    "AtMostOnce",
    "OneWriter",
    "AcknowledgedIsDurable",
    "ErrorMeansNoEffect",
    "ErrorWasTrue",
    "FloorsRejectNothingOpen",
    "ConnectionsAreInOrder",
    "SuccessIsVisible",
)
PARTS: Final = (
    "FENCE",
    "COUNTER",
    "OUTCOMES",
    "ATTEMPTS",
    "JOINS",
    "RESENDS",
    "ONE_ROUND",
    "LIVES",
    "LOWEST",
    "STORES_FLOORS",
    "FLOOR_CHECKED",
    "GRACE",
    "LEASE",
    "WAITS",
    "APPLIED",
)
FAULTS: Final = ("losses", "breaks", "delays", "deletions", "restarts", "unregistered", "direct")


def request(
    node: int, seq: int, kind: str, *topics: str, life: int = 1, after: int = 0
) -> dict[str, Any]:
    """Return a request. `after`: the number of the request before it on its connection."""
    return {
        "node": node,
        "life": life,
        "seq": seq,
        "after": after,
        "kind": kind,
        "topics": list(topics),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Bounds. `is_long`: only `make spec-long` checks it."""

    name: str
    about: str
    requests: tuple[dict[str, Any], ...]
    epochs: int = 2
    budget: Mapping[str, int] = field(default_factory=dict)
    reports: bool = False
    blocks: bool = False
    deadlines: bool = False
    not_claimed: tuple[str, ...] = ()
    liveness: bool = False
    is_long: bool = False

    def constants(self, without: str = "") -> dict[str, object]:
        """Return the value of every constant, with one part left out."""
        topics = {topic for request in self.requests for topic in request["topics"]}
        return {
            "Nodes": {1, 2},
            "Topics": topics,
            "Requests": Expression(f"1..{len(self.requests)}"),
            "Request": list(self.requests),
            "EpochMax": self.epochs,
            "Budget": {fault: self.budget.get(fault, 0) for fault in FAULTS},
            "Reports": self.reports,
            "Blocks": self.blocks,
            "Observed": False,
            "Deadlines": self.deadlines,
            **{part: part != without for part in PARTS},
        }


@dataclass(frozen=True, slots=True)
class Control:
    """A model without `part` violates `invariant`."""

    part: str
    model: str
    invariant: str


@dataclass(frozen=True, slots=True)
class Limit:
    """A model of the full design violates `invariant`."""

    model: str
    invariant: str


MODELS: Final = (
    Model(
        name="lost_reply",
        about="the reply or the request of a multi is lost",
        requests=(request(1, 1, "alter", "t"),),
        budget={"losses": 2},
    ),
    Model(
        name="failover",
        about="two brokers create the same topic; ZooKeeper's reply or a request to it is lost",
        requests=(request(1, 1, "create", "t"), request(2, 1, "create", "t")),
        budget={"losses": 1, "breaks": 1},
    ),
    Model(
        name="elements",
        about="a request of two elements, in one multi or two; another one creates one of them",
        requests=(request(1, 1, "create", "t", "u"), request(2, 1, "create", "t")),
    ),
    Model(
        name="deletion",
        about="a creation and a deletion of one topic; a channel breaks",
        requests=(request(1, 1, "create", "t"), request(2, 1, "delete", "t")),
        budget={"breaks": 1},
    ),
    Model(
        name="znode_deleted",
        about="the same; another client deletes /controller, or a channel breaks",
        requests=(request(1, 1, "create", "t"), request(2, 1, "delete", "t")),
        budget={"deletions": 1, "breaks": 1},
        not_claimed=("ErrorMeansNoEffect", "ErrorWasTrue"),
    ),
    Model(
        name="delayed",
        about="an Envelope arrives after its request was answered",
        requests=(request(1, 1, "create", "t"), request(2, 1, "delete", "t")),
        budget={"delays": 1},
        not_claimed=("ErrorMeansNoEffect", "ErrorWasTrue"),
    ),
    Model(
        name="floors",
        about="two changes of one broker; floors are reported, and outcomes are pruned",
        requests=(request(1, 1, "alter", "t"), request(1, 2, "alter", "t")),
        epochs=1,
        budget={"breaks": 1},
        reports=True,
    ),
    Model(
        name="pruning",
        about="a copy arrives late, after its broker gave up and the outcome was pruned",
        requests=(request(1, 1, "alter", "t"),),
        budget={"delays": 1},
        deadlines=True,
        reports=True,
    ),
    Model(
        name="restart",
        about="a broker is killed and starts again; both processes have a request with number 1",
        requests=(request(1, 1, "alter", "t"), request(1, 1, "alter", "t", life=2)),
        budget={"restarts": 1},
        reports=True,
    ),
    Model(
        name="registration",
        about="a broker loses its registration while its request is in progress",
        requests=(request(1, 1, "alter", "t"),),
        budget={"unregistered": 1, "breaks": 1},
        reports=True,
    ),
    Model(
        name="direct",
        about="another program creates or deletes the topic of a creation",
        requests=(request(1, 1, "create", "t"), request(2, 1, "delete", "t")),
        budget={"direct": 1},
        not_claimed=("ErrorWasTrue",),
    ),
    Model(
        name="blocking",
        about="a success waits until every registered broker knows the change (KIP-4), or is late",
        requests=(request(1, 1, "create", "t"),),
        budget={"unregistered": 1, "breaks": 1},
        blocks=True,
        deadlines=True,
    ),
    Model(
        name="connection",
        about="two requests of one connection; the broker gives up at the deadline",
        requests=(request(1, 1, "alter", "t"), request(1, 2, "alter", "t", after=1)),
        budget={"breaks": 1},
        deadlines=True,
    ),
    Model(
        name="liveness",
        about="after the last fault every request ends",
        requests=(request(1, 1, "create", "t"),),
        budget={"losses": 1, "restarts": 1},
        liveness=True,
    ),
)
CONTROLS: Final = (
    Control("FENCE", "znode_deleted", "OneWriter"),
    Control("COUNTER", "lost_reply", "AtMostOnce"),
    Control("OUTCOMES", "failover", "ErrorMeansNoEffect"),
    Control("ATTEMPTS", "deletion", "ErrorMeansNoEffect"),
    Control("JOINS", "registration", "AtMostOnce"),
    Control("RESENDS", "lost_reply", "AcknowledgedIsDurable"),
    Control("ONE_ROUND", "elements", "ErrorWasTrue"),
    Control("LIVES", "restart", "AcknowledgedIsDurable"),
    Control("LOWEST", "floors", "FloorsRejectNothingOpen"),
    Control("STORES_FLOORS", "pruning", "AtMostOnce"),
    Control("FLOOR_CHECKED", "pruning", "AtMostOnce"),
    Control("GRACE", "registration", "AtMostOnce"),
    Control("LEASE", "deletion", "ErrorWasTrue"),
    Control("WAITS", "connection", "ConnectionsAreInOrder"),
    Control("APPLIED", "blocking", "SuccessIsVisible"),
)
# What the design does not claim, with the model that shows why (docs/specification.md). The other
# limits are paths (spec/paths.py): nodes have them, too.
LIMITS: Final = (Limit("znode_deleted", "ErrorMeansNoEffect"),)
