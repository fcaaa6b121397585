"""Fault rules make selected requests of clients, or their Envelopes, fail. No I/O.

A rule has an action and conditions. It acts on `times` matches, beginning with the `nth`. If
`times` is 0, it acts on the `nth` and all later ones. By default every broker counts its own
matches; with the count `cluster`, the brokers count together.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from random import Random
from typing import Any, Final, Literal, TypeVar

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import API_SPECS
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.suggestions import did_you_mean

RULES_MAX: Final = 100
_DELAY_MS_MAX: Final = 600_000
_COUNT_MAX: Final = 1_000_000_000
_TEXT_MAX: Final = 500
_VERSIONS: Final = re.compile(r"(\d{1,3})(?:-(\d{1,3}))?")


class FaultRuleError(Exception):
    """A rule is invalid. The text is one sentence."""


class Action(StrEnum):
    """What happens to a request."""

    ERROR = "error"  # it is answered with an error code
    DELAY = "delay"
    DROP = "drop"  # it is never answered
    CLOSE = "close"  # the client's connection, or the attempt to send the Envelope, is ended
    DUPLICATE = "duplicate"  # the Envelope is sent twice
    TRUNCATE = "truncate"  # the response is cut in half


class Side(StrEnum):
    """Where a rule acts."""

    CLIENT = "client"  # between the client and the broker
    ENVELOPE = "envelope"  # between the broker and the controller


class Phase(StrEnum):
    """When a rule acts."""

    REQUEST = "request"  # before execution; error, drop and close prevent the execution
    RESPONSE = "response"  # after execution


class Count(StrEnum):
    """Which requests `nth` and `times` count."""

    BROKER = "broker"  # each broker counts its own
    CLUSTER = "cluster"  # the brokers count together


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleField:
    """One field of a rule, for the control API and the page. `kind` is a type of JSON.

    The option of `bridgehead faults add` has the name without `_ms`, and takes a duration.
    """

    name: str
    kind: Literal["string", "integer", "number"]
    meaning: str
    default: Any = None
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None


RULE_FIELDS: Final = (
    RuleField(
        name="action",
        kind="string",
        meaning="What happens to a matching request.",
        choices=tuple(Action),
    ),
    RuleField(
        name="api", kind="string", meaning="Only requests of this API, such as CreateTopics."
    ),
    RuleField(name="versions", kind="string", meaning="Only these versions: `N` or `N-M`."),
    RuleField(name="client_id", kind="string", meaning="Only requests of this client id."),
    RuleField(
        name="principal", kind="string", meaning="Only requests of this principal, `TYPE:NAME`."
    ),
    RuleField(name="topic", kind="string", meaning="Only requests that name this topic."),
    RuleField(name="error", kind="string", meaning="With `error`: the name of Kafka's error code."),
    RuleField(
        name="delay_ms", kind="integer", meaning="With `delay`: how long, in milliseconds.", low=0
    ),
    RuleField(
        name="jitter_ms",
        kind="integer",
        meaning="With `delay`: at most this much longer or shorter, in milliseconds.",
        low=0,
    ),
    RuleField(
        name="side",
        kind="string",
        meaning="Between client and broker, or between broker and controller.",
        default=str(Side.CLIENT),
        choices=tuple(Side),
    ),
    RuleField(
        name="phase",
        kind="string",
        meaning="Before the execution, or after it.",
        default=str(Phase.REQUEST),
        choices=tuple(Phase),
    ),
    RuleField(name="nth", kind="integer", meaning="Act from the N-th match on.", default=1, low=1),
    RuleField(
        name="times",
        kind="integer",
        meaning="Act on N matches; 0 means all. Without it: 1, or 0 with `probability`.",
        low=0,
    ),
    RuleField(
        name="count",
        kind="string",
        meaning="Who counts matches: each broker its own, or the cluster all together.",
        default=str(Count.BROKER),
        choices=tuple(Count),
    ),
    RuleField(
        name="probability",
        kind="number",
        meaning="Act on each of these matches with this probability.",
        low=0,
        high=1,
    ),
)
_NAMES: Final = frozenset(rule_field.name for rule_field in RULE_FIELDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One request, as rules see it."""

    api_key: int
    api_version: int
    client_id: str | None = None
    principal: str = ""
    topics: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRule:
    """One rule. A condition that is None matches everything."""

    action: Action
    side: Side = Side.CLIENT
    phase: Phase = Phase.REQUEST
    error: ErrorCode = ErrorCode.NONE
    delay_ms: int = 0
    jitter_ms: int = 0  # a delay is longer or shorter by at most this much
    api: ApiKey | None = None
    versions: tuple[int, int] | None = None
    client_id: str | None = None
    principal: str | None = None
    topic: str | None = None
    nth: int = 1
    times: int = 1  # 0: no limit
    count: Count = Count.BROKER
    probability: float = 1.0  # of acting on one of these matches

    def matches(self, side: Side, subject: Subject) -> bool:
        """Return whether the rule applies to a request."""
        low, high = self.versions or (0, subject.api_version)
        return (
            side is self.side
            and self.api in (None, subject.api_key)
            and low <= subject.api_version <= high
            and self.client_id in (None, subject.client_id)
            and self.principal in (None, subject.principal)
            and (self.topic is None or self.topic in subject.topics)
        )

    def acts_on(self, match: int) -> bool:
        """Return whether the rule acts on its `match`-th match, counted from 1."""
        return match >= self.nth and (not self.times or match < self.nth + self.times)

    def to_json(self) -> dict[str, Any]:
        """Return the object that `parse_rule` reads."""
        result: dict[str, Any] = {"action": str(self.action), "side": str(self.side)}
        result |= {"phase": str(self.phase), "nth": self.nth, "times": self.times}
        if self.action is Action.ERROR:
            result["error"] = self.error.name
        if self.action is Action.DELAY:
            result["delay_ms"] = self.delay_ms
        if self.jitter_ms:
            result["jitter_ms"] = self.jitter_ms
        if self.probability < 1:
            result["probability"] = self.probability
        if self.count is not Count.BROKER:
            result["count"] = str(self.count)
        if self.api is not None:
            result["api"] = API_SPECS[self.api].name
        if self.versions is not None:
            low, high = self.versions
            result["versions"] = str(low) if low == high else f"{low}-{high}"
        for name in ("client_id", "principal", "topic"):
            if getattr(self, name) is not None:
                result[name] = getattr(self, name)
        return result


@dataclass(slots=True)
class _Counted:
    rule: FaultRule
    next_match: Callable[[], int] | None  # counts for the cluster; None: for this broker
    matches: int = 0
    hits: int = 0


@dataclass(slots=True)
class FaultRules:
    """The rules of one broker, in the order in which they were added, and their counts."""

    random: Random = field(default_factory=Random)
    _rules: dict[str, _Counted] = field(default_factory=dict)

    def add(
        self,
        rule: FaultRule,
        name: str | None = None,
        next_match: Callable[[], int] | None = None,
    ) -> str:
        """Add a rule; return its name, by default `rule-N`.

        `next_match` counts a match for the whole cluster and returns its number.

        Raises:
            FaultRuleError: there are too many rules, the name is taken, or the rule counts for the
                cluster and nothing does that.
        """
        if rule.count is Count.CLUSTER and next_match is None:
            raise FaultRuleError(
                "Only a rule that is added to the cluster can have the count cluster."
            )
        if len(self._rules) >= RULES_MAX:
            raise FaultRuleError(f"There are {RULES_MAX} fault rules already: remove some.")
        if name is None:
            name = free_name(self._rules)
        if name in self._rules:
            raise FaultRuleError(f"There is a fault rule {name!r} already.")
        self._rules[name] = _Counted(rule, next_match if rule.count is Count.CLUSTER else None)
        return name

    def remove(self, name: str | None) -> int:
        """Remove one rule, or all if `name` is None; return how many rules were removed.

        Raises:
            FaultRuleError: there is no rule with this name.
        """
        if name is None:
            count = len(self._rules)
            self._rules.clear()
            return count
        if self._rules.pop(name, None) is None:
            raise FaultRuleError(f"There is no fault rule {name!r}.")
        return 1

    def described(self) -> list[dict[str, Any]]:
        """Return every rule with its name, its matches, and how often it has acted."""
        return [
            {"name": name, "rule": rule.rule.to_json(), "matches": rule.matches, "hits": rule.hits}
            for name, rule in self._rules.items()
        ]

    def hit(self, side: Side, subject: Subject) -> tuple[str, FaultRule] | None:
        """Count a request at every rule that matches; return the first rule that acts on it."""
        acting: tuple[str, FaultRule] | None = None
        for name, rule in self._rules.items():
            if not rule.rule.matches(side, subject):
                continue
            rule.matches += 1
            match = rule.matches if rule.next_match is None else rule.next_match()
            if acting is None and rule.rule.acts_on(match) and self._happens(rule.rule):
                rule.hits += 1
                acting = name, self._with_jitter(rule.rule)
        return acting

    def _happens(self, rule: FaultRule) -> bool:
        return self.random.random() < rule.probability

    def _with_jitter(self, rule: FaultRule) -> FaultRule:
        if not rule.jitter_ms:
            return rule
        jitter_ms = self.random.randint(-rule.jitter_ms, rule.jitter_ms)
        return replace(rule, delay_ms=rule.delay_ms + jitter_ms)


def free_name(taken: Container[str]) -> str:
    """Return the first name `rule-N` that is not taken."""
    return next(name for n in itertools.count(1) if (name := f"rule-{n}") not in taken)


def parse_rule(document: Mapping[str, Any]) -> FaultRule:
    """Return the rule that a JSON object describes.

    Raises:
        FaultRuleError: a field is unknown, missing or invalid.
    """
    unknown = sorted(set(document) - _NAMES)
    if unknown:
        hint = did_you_mean(unknown[0], _NAMES)
        raise FaultRuleError(f"A fault rule has no field {unknown[0]!r}.{hint}")
    if "action" not in document:
        raise FaultRuleError(f"A fault rule needs an action: {', '.join(Action)}.")
    action = _one_of(Action, "action", document["action"])
    rule = FaultRule(
        action=action,
        side=_one_of(Side, "side", document.get("side", Side.CLIENT)),
        phase=_one_of(Phase, "phase", document.get("phase", Phase.REQUEST)),
        error=_error(document.get("error")),
        delay_ms=_number(document, "delay_ms", 0, _DELAY_MS_MAX),
        jitter_ms=_number(document, "jitter_ms", 0, _DELAY_MS_MAX),
        api=_api(document.get("api")),
        versions=_versions(document.get("versions")),
        client_id=_text(document, "client_id"),
        principal=_text(document, "principal"),
        topic=_text(document, "topic"),
        nth=_number(document, "nth", 1, _COUNT_MAX),
        times=_number(document, "times", 0, _COUNT_MAX, default=int("probability" not in document)),
        count=_one_of(Count, "count", document.get("count", Count.BROKER)),
        probability=_probability(document.get("probability", 1)),
    )
    for problem in _contradictions(rule, document):
        raise FaultRuleError(problem)
    return rule


def _contradictions(rule: FaultRule, document: Mapping[str, Any]) -> Iterator[str]:
    if (rule.action is Action.ERROR) != ("error" in document):
        yield "Give `error` with the action error, and only with it."
    if (rule.action is Action.DELAY) != (rule.delay_ms > 0):
        yield "Give a `delay_ms` above 0 with the action delay, and only with it."
    if rule.jitter_ms > rule.delay_ms:
        yield "`jitter_ms` is at most `delay_ms`."
    if rule.action is Action.DUPLICATE and rule.side is not Side.ENVELOPE:
        yield "Only Envelopes can be duplicated: use the side envelope."
    if rule.action is Action.DUPLICATE and rule.phase is not Phase.REQUEST:
        yield "An Envelope is duplicated when it is sent: use the phase request."
    if rule.action is Action.TRUNCATE and rule.phase is not Phase.RESPONSE:
        yield "Only responses can be truncated: use the phase response."
    if rule.versions is not None and rule.api is None:
        yield "A range of versions needs an API."


_Choice = TypeVar("_Choice", bound=StrEnum)


def _one_of(kind: type[_Choice], name: str, value: object) -> _Choice:
    for member in kind:
        if member == value:
            return member
    hint = did_you_mean(value, kind)
    raise FaultRuleError(f"`{name}` is one of {', '.join(kind)}, not {value!r}.{hint}")


def _error(value: object) -> ErrorCode:
    if value is None:
        return ErrorCode.NONE
    if isinstance(value, str) and value in ErrorCode.__members__ and value != "NONE":
        return ErrorCode[value]
    hint = did_you_mean(value, ErrorCode.__members__)
    raise FaultRuleError(f"`error` is the name of one of Kafka's error codes, not {value!r}.{hint}")


def _api(value: object) -> ApiKey | None:
    if value is None:
        return None
    for key, spec in API_SPECS.items():
        if value == spec.name:
            return ApiKey(key)
    hint = did_you_mean(value, (spec.name for spec in API_SPECS.values()))
    raise FaultRuleError(
        f"`api` is a name in docs/apis.md, such as CreateTopics, not {value!r}.{hint}"
    )


def _versions(value: object) -> tuple[int, int] | None:
    if value is None:
        return None
    match = _VERSIONS.fullmatch(str(value))
    if match is None or int(match[2] or match[1]) < int(match[1]):
        raise FaultRuleError(f"`versions` is a number or a range such as 2-5, not {value!r}.")
    return int(match[1]), int(match[2] or match[1])


def _number(document: Mapping[str, Any], name: str, low: int, high: int, default: int = -1) -> int:
    value = document.get(name, default if default >= 0 else low)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise FaultRuleError(f"`{name}` is a number from {low} to {high}, not {value!r}.")
    return value


def _probability(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise FaultRuleError(f"`probability` is above 0 and at most 1, not {value!r}.")
    return float(value)


def _text(document: Mapping[str, Any], name: str) -> str | None:
    value = document.get(name)
    if value is not None and (not isinstance(value, str) or len(value) > _TEXT_MAX):
        raise FaultRuleError(f"`{name}` is a text of at most {_TEXT_MAX} characters.")
    return value
