"""What a controller's log says about a migration, as states with Kafka's own names.

The states are those of Kafka's KRaftMigrationDriver. Pure: lines in, states out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, NamedTuple

_LINE: Final = re.compile(
    r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\] (TRACE|DEBUG|INFO|WARN|ERROR|FATAL) "
)
_LINE_CHARS_MAX: Final = 10_000  # a broker logs all of its partitions in one line
_TRANSITION: Final = re.compile(r"\d+ transitioning from (\w+) to (\w+) state")
_CLAIM: Final = re.compile(
    r"KRaft controller (\d+) (?:overwriting|creating) /controller .*ZK epoch (\d+)"
)
_MIGRATED: Final = re.compile(
    r"Completed migration of metadata from ZooKeeper to KRaft\. (\d+) records were generated in "
    r"(\d+) ms"
)
_WRITES: Final = re.compile(
    r"Made the following ZK writes when (reconciling with KRaft state|handling KRaft delta): "
    r"\{(.*)\}"
)
_WAITING: Final = re.compile(
    r"(Still waiting for .*|No brokers are (?:known|registered) .*|"
    r"Cannot register KRaft controller .*|.*current controller register in ZK has the same.*)"
)
_FAULT: Final = re.compile(r"Encountered zk migration fault: (.*)")
_RETRY: Final = re.compile(r"Encountered ZooKeeper .* during event (\w+)\.")
_FATAL: Final = re.compile(r"(?:Encountered fatal fault: )(.*)")
# The fault handler repeats only that it aborts; the cause is in the lines after this one.
_ABORT: Final = re.compile(r"Aborting the metadata migration from ZooKeeper to KRaft")
_FINALIZING: Final = "Completing the ZK migration since this controller was configured"
_LOST: Final = (
    re.compile(r"Could not find partition state in ZK for (?P<what>\S+)\. Initializing"),
    re.compile(r"Found \d+ pending topic deletions\. These will be not migrated"),
    re.compile(r"Not migrating pending deleted topic: (?P<what>\S+)"),
    re.compile(r"Ignoring unknown (?:ResourceType|PatternType|AclOperation)"),
    re.compile(r"Error in topic consumer\. Topic was (?P<what>\S+)\."),
    re.compile(r"Failed to parse the migration json"),
)
# Whatever of Kafka's log is shown: a value of a SCRAM credential or a password must not be.
_SECRET: Final = re.compile(
    r"((?:salt|stored_key|server_key|password|secret|hmac)[\"']?\s*[=:]\s*)[^,}\s]+", re.IGNORECASE
)
_CREDENTIALS: Final = re.compile(r"(Credentials not valid: ).*")


class DriverState(StrEnum):
    """The states of Kafka's KRaftMigrationDriver, in order."""

    UNINITIALIZED = "UNINITIALIZED"
    INACTIVE = "INACTIVE"
    WAIT_FOR_CONTROLLER_QUORUM = "WAIT_FOR_CONTROLLER_QUORUM"
    WAIT_FOR_BROKERS = "WAIT_FOR_BROKERS"
    BECOME_CONTROLLER = "BECOME_CONTROLLER"
    ZK_MIGRATION = "ZK_MIGRATION"
    SYNC_KRAFT_TO_ZK = "SYNC_KRAFT_TO_ZK"
    KRAFT_CONTROLLER_TO_BROKER_COMM = "KRAFT_CONTROLLER_TO_BROKER_COMM"
    DUAL_WRITE = "DUAL_WRITE"


class LogLine(NamedTuple):
    """One line of Kafka's log. A line without a time continues the line before it."""

    time_s: float | None
    level: str
    message: str


class Transition(NamedTuple):
    """A change of the driver's state, in seconds since 1970."""

    time_s: float
    state: DriverState


def parse_log_line(text: str) -> LogLine | None:
    """Return a line of the log, without secrets; None for a line of a stack trace."""
    match = _LINE.match(text)
    text = text[:_LINE_CHARS_MAX]
    if match is None:
        # The reason of an error is on a line of its own, and so are its causes.
        is_reason = "xception" in text and not text.startswith("\t")
        return LogLine(None, "", without_secrets(text.strip())) if is_reason else None
    second = datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    time_s = second.timestamp() + int(match[2]) / 1000
    message, parenthesis, logger = text[match.end() :].rpartition(" (")
    if not parenthesis or not logger.endswith(")") or " " in logger:
        message = text[match.end() :]
    return LogLine(time_s, match[3], without_secrets(message))


def without_secrets(text: str) -> str:
    """Return a line of Kafka's log without the values of credentials and passwords."""
    return _CREDENTIALS.sub(r"\1(hidden)", _SECRET.sub(r"\1(hidden)", text))


@dataclass(slots=True)
class Progress:
    """How far one controller's migration is."""

    state: DriverState | None = None
    transitions: list[Transition] = field(default_factory=list)
    waiting_for: str = ""
    """Why the driver does not go on, in Kafka's words; empty if it does."""
    claimed_s: float | None = None
    """When it claimed `/controller`: from then on the old controller cannot write."""
    epoch: int | None = None
    """The ZooKeeper epoch of that claim."""
    records: int | None = None
    """The number of records that the metadata became."""
    writes: dict[str, int] = field(default_factory=dict)
    """What it wrote to ZooKeeper in its syncs, by kind of write."""
    notices: list[str] = field(default_factory=list)
    """Lines that name a lost or changed item, without repetitions."""
    fatal: str = ""
    """Why the process ends; empty if it does not."""
    is_finalized: bool = False
    dual_write_s: float | None = None
    _reason_of: str = ""
    _began: int = 0  # the first transition of the process that runs

    def feed(self, lines: Iterable[LogLine]) -> list[str]:
        """Follow lines; return a sentence for each step that a user wants to see."""
        sentences = []
        for line in lines:
            sentence = self._continue(line) if line.time_s is None else self._follow(line)
            if sentence:
                sentences.append(sentence)
        return sentences

    def gap_s(self) -> float | None:
        """Return how long there was no controller in the last claim; None if it lasts."""
        if self.claimed_s is None or self.dual_write_s is None:
            return None
        return self.dual_write_s - self.claimed_s if self.dual_write_s >= self.claimed_s else None

    def restarted(self) -> None:
        """Forget what a new process begins again."""
        self.state, self.waiting_for, self.fatal, self._reason_of = None, "", "", ""
        self._began = len(self.transitions)

    @property
    def states(self) -> list[DriverState]:
        """The states that the process that runs has entered."""
        return [transition.state for transition in self.transitions[self._began :]]

    def begin_again(self) -> None:
        """Forget what belongs to an earlier migration, but not its transitions."""
        self.restarted()
        self.claimed_s = self.dual_write_s = None

    def _follow(self, line: LogLine) -> str:
        assert line.time_s is not None
        self._reason_of = ""
        message = line.message
        if match := _TRANSITION.search(message):
            return self._transition(line.time_s, match[2])
        if match := _CLAIM.search(message):
            self.epoch = int(match[2])
            if self.gap_s() is not None or self.claimed_s is None:
                self.claimed_s = line.time_s  # else it claims again within the same gap
            return f"controller {match[1]} claims /controller with epoch {match[2]}"
        if match := _MIGRATED.search(message):
            self.records = int(match[1])
            return f"{match[1]} records were generated in {match[2]} ms"
        if match := _WRITES.search(message):
            return self._count_writes(match[1], match[2])
        if match := _ABORT.search(message):
            return self._wait(match[0], fatal=True)
        if match := _FATAL.search(message):
            return "" if _ABORT.match(self.fatal) else self._wait(match[1], fatal=True)
        if match := _WAITING.search(message):
            return self._wait(match[1])
        if match := (_FAULT.search(message) or _RETRY.search(message)):
            return self._wait(match[0])
        if _FINALIZING in message:
            self.is_finalized = True
            return "the controller ends the migration"
        if any(pattern.search(message) for pattern in _LOST) and message not in self.notices:
            self.notices.append(message)
        return ""

    def _transition(self, time_s: float, name: str) -> str:
        state = DriverState(name) if name in DriverState.__members__ else None
        if state is None:
            return ""
        self.state, self.waiting_for = state, ""
        self.transitions.append(Transition(time_s, state))
        if state is DriverState.DUAL_WRITE:
            self.dual_write_s = time_s
        return f"{state}"

    def _count_writes(self, when: str, text: str) -> str:
        for part in filter(None, text.split(", ")):
            kind, _, count = part.partition("=")
            self.writes[kind] = self.writes.get(kind, 0) + int(count)
        return f"wrote to ZooKeeper: {text}" if when.startswith("reconciling") and text else ""

    def _wait(self, why: str, *, fatal: bool = False) -> str:
        self._reason_of = why
        if fatal:
            self.fatal = why
        if self.waiting_for.startswith(why):  # the same again, of which the reason is known
            return ""
        self.waiting_for = why
        return "" if why.startswith("No brokers") else why

    def _continue(self, line: LogLine) -> str:
        """Add the reason that follows a fault."""
        if not self._reason_of or line.message in self.waiting_for:
            return ""
        self.waiting_for = f"{self.waiting_for}: {line.message}"
        if self.fatal:
            self.fatal = self.waiting_for
        return line.message
