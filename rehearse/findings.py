"""What a scan finds: rules, and the places where they apply."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from rehearse.cluster import Cluster

KAFKA_VERSIONS: Final = ("3.9.1", "3.9.2")


class Outcome(Enum):
    """What a KRaft controller's migration does with something."""

    KEPT = "kept"  # it is in KRaft as it was
    CHANGED = "changed"  # it is in KRaft, with another value
    LOST = "lost"  # it is not in KRaft, and stays in ZooKeeper
    DELETED = "deleted"  # it is not in KRaft, and is removed from ZooKeeper
    WAITS = "waits for ever"  # before it owns /controller: the ZooKeeper controller works on
    STUCK = "is stuck"  # it owns /controller, and never tells the brokers
    DIES = "dies"  # its process ends, in most cases while it owns /controller


class Severity(Enum):
    """How bad a finding is, worst first."""

    BLOCKS = "blocks the migration"
    LOSES = "loses metadata"
    CHANGES = "changes metadata"
    WARNS = "needs attention"


SEVERITIES: Final[Mapping[Outcome, Severity]] = {
    Outcome.DIES: Severity.BLOCKS,
    Outcome.STUCK: Severity.BLOCKS,
    Outcome.WAITS: Severity.BLOCKS,
    Outcome.LOST: Severity.LOSES,
    Outcome.DELETED: Severity.LOSES,
    Outcome.CHANGED: Severity.CHANGES,
    Outcome.KEPT: Severity.WARNS,
}


class Place(NamedTuple):
    """Where a rule applies: a znode's path, or a file and a config; `detail` completes it."""

    where: str
    detail: str = ""


class Evidence(Enum):
    """How we know what Kafka does."""

    LIVE = "a live controller"
    SOURCE = "Kafka's source"


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of finding.

    `log` is what the controller (or the broker) logs, a part of a line; empty if it says nothing.
    `remedy` may contain `{where}`. `severity` differs from that of the outcome only if the rule
    says so. `outcome_3_9_2` is None if 3.9.2 does the same as 3.9.1.
    """

    id: str
    what: str
    outcome: Outcome
    effect: str
    log: str
    remedy: str
    find: Callable[[Cluster], Iterator[Place]]
    issue: str = ""
    evidence: Evidence = Evidence.SOURCE
    outcome_3_9_2: Outcome | None = None
    warns_only: bool = False

    def outcome_in(self, kafka: str) -> Outcome:
        """Return what this version of Kafka does."""
        if kafka == "3.9.2" and self.outcome_3_9_2 is not None:
            return self.outcome_3_9_2
        return self.outcome

    def severity_in(self, kafka: str) -> Severity:
        """Return how bad it is with this version of Kafka."""
        return Severity.WARNS if self.warns_only else SEVERITIES[self.outcome_in(kafka)]


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule, and one place where it applies."""

    rule: Rule
    place: Place

    @property
    def remedy(self) -> str:
        """What to do, with the place."""
        return self.rule.remedy.replace("{where}", self.place.where)
