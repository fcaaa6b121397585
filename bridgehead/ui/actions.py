"""The buttons that break a running cluster. Each runs the command that it shows."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from bridgehead.application import run_module
from bridgehead.cluster.errors import ClusterError
from bridgehead.fault_rules import RULE_FIELDS, RuleField
from bridgehead.fault_rules import Action as RuleAction
from bridgehead.ui.processes import Scenarios

_TIMEOUT_S: Final = 120
RUN_SCENARIO: Final = "run_scenario"
# No value begins with a dash, so none can be taken for an option.
_VALUE: Final = re.compile(r"[A-Za-z0-9_.:*][A-Za-z0-9_.:*-]{0,199}")


@dataclass(frozen=True, slots=True)
class Field:
    """One value that a user chooses. The page hides fields with `is_more` at first."""

    name: str
    title: str
    kind: str  # number, text, choice; broker or scenario: one of those that there are
    default: str = ""
    choices: tuple[str, ...] = ()
    is_optional: bool = False
    is_more: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """Arguments, with names of fields in braces.

    They are left out if the field `unless_empty` is empty, or if the field `rule` is not among
    `rules`.
    """

    arguments: str
    unless_empty: str = ""
    rules: tuple[str, ...] = ()  # empty: any value


@dataclass(frozen=True, slots=True)
class Action:
    """One button: `bridgehead` with the arguments of the parts.

    `{data_dir}` is the cluster's folder, and `{scenarios}` the folder of the page's scenarios.
    """

    name: str
    title: str
    effect: str
    parts: tuple[Part, ...]
    fields: tuple[Field, ...] = ()
    then: str = ""  # a second command, which shows what the first one does


_BROKER: Final = Field("broker", "Broker", "broker")
_OF_CLUSTER: Final = Part("--data-dir {data_dir}")
_TITLES: Final = {
    "api": "API",
    "client_id": "Client id",
    "delay_ms": "Delay",
    "jitter_ms": "Jitter",
    "nth": "From match",
    "times": "How often (0: always)",
    "count": "Matches counted by",
}
_DEFAULTS: Final = {
    "api": "CreateTopics",
    "error": "NOT_CONTROLLER",
    "delay_ms": "1s",
    "times": "1",
}
_FIRST: Final = frozenset({"api", "error", "delay_ms", "side", "times"})
_CONDITIONS: Final = tuple(rule for rule in RULE_FIELDS if rule.name != "action")
# A rule of these actions needs, or has, this field. For all others, every action can have a field.
_RULES: Final = tuple(RuleAction)
_ACTIONS_WITH: Final = {
    "error": (RuleAction.ERROR,),
    "delay_ms": (RuleAction.DELAY,),
    "jitter_ms": (RuleAction.DELAY,),
    "side": tuple(rule for rule in _RULES if rule is not RuleAction.DUPLICATE),
    "phase": tuple(rule for rule in _RULES if rule is not RuleAction.TRUNCATE),
}


def _condition(rule: RuleField) -> Part:
    option = rule.name.removesuffix("_ms").replace("_", "-")
    is_needed = rule.name in ("error", "delay_ms")
    return Part(
        f"--{option} {{{rule.name}}}",
        "" if is_needed else rule.name,
        _ACTIONS_WITH.get(rule.name, ()),
    )


def _field(rule: RuleField) -> Field:
    return Field(
        rule.name,
        _TITLES.get(rule.name, rule.name.capitalize()),
        "choice" if rule.choices else "text",
        _DEFAULTS.get(rule.name, ""),
        rule.choices,
        is_optional=rule.default is not None or rule.name not in ("error", "delay_ms"),
        is_more=rule.name not in _FIRST,
    )


ACTIONS: Final = (
    Action(
        "kill",
        "Kill the controller",
        "Its process ends at once. Another broker is elected when its session has timed out.",
        (Part("controller kill"), _OF_CLUSTER),
    ),
    Action(
        "freeze",
        "Freeze the controller",
        "If it is longer than the session, its writes are rejected when it wakes.",
        (Part("controller freeze --for {seconds}s"), _OF_CLUSTER),
        (Field("seconds", "Seconds", "number", "8"),),
    ),
    Action(
        "expire",
        "Expire the controller's session",
        "ZooKeeper ends the session; the controller resigns.",
        (Part("controller expire"), _OF_CLUSTER),
    ),
    Action(
        "move",
        "Move the controller",
        "The controller resigns in favour of the chosen broker.",
        (Part("controller move {broker}"), _OF_CLUSTER),
        (_BROKER,),
    ),
    Action(
        "stop_broker",
        "Stop a broker",
        "It closes its sessions before it exits.",
        (Part("node stop {broker}"), _OF_CLUSTER),
        (_BROKER,),
    ),
    Action(
        "kill_broker",
        "Kill a broker",
        "Its sessions stay open until they time out.",
        (Part("node kill {broker}"), _OF_CLUSTER),
        (_BROKER,),
    ),
    Action(
        "start_broker",
        "Start a broker",
        "A broker that does not run starts again.",
        (Part("node start {broker}"), _OF_CLUSTER),
        (_BROKER,),
    ),
    Action(
        "add_rule",
        "Add a fault rule",
        "Requests that match it fail. The brokers need bridgehead.faults.allow=true.",
        (
            Part("faults add {rule}"),
            *(_condition(rule) for rule in _CONDITIONS),
            Part("--side envelope", rules=(RuleAction.DUPLICATE,)),
            Part("--phase response", rules=(RuleAction.TRUNCATE,)),
            Part("--broker {broker}", "broker"),
            _OF_CLUSTER,
        ),
        (
            Field("rule", "Action", "choice", "error", _RULES),
            *(_field(rule) for rule in _CONDITIONS),
            Field("broker", "Broker", "broker", is_optional=True, is_more=True),
        ),
    ),
    Action(
        "remove_rules",
        "Remove all fault rules",
        "Requests are treated as usual again.",
        (Part("faults remove"), _OF_CLUSTER),
    ),
    Action(
        RUN_SCENARIO,
        "Run a scenario",
        "A cluster of its own has the scenario's faults, and a page to watch it.",
        (Part("chaos run {scenario} --seed {seed} --out {scenarios}"),),
        (Field("scenario", "Scenario", "scenario"), Field("seed", "Seed", "number", "1")),
        then="ui {scenarios}/{scenario}-{seed} --read-only",
    ),
)
_BY_NAME: Final = {action.name: action for action in ACTIONS}


def described() -> list[dict[str, Any]]:
    """Return the buttons for the page's scripts."""
    return [asdict(action) for action in ACTIONS]


def values_of(document: object) -> tuple[Action, dict[str, str]]:
    """Return the action of `{"action": NAME, FIELD: TEXT, ...}`, and the values of its fields.

    Raises:
        ClusterError: the action is unknown, or a value has a wrong form.
    """
    values = document if isinstance(document, dict) else {}
    action = _BY_NAME.get(str(values.get("action")))
    if action is None:
        raise ClusterError("There is no such action.")
    texts = {field.name: str(values.get(field.name, "")) for field in action.fields}
    for field in action.fields:
        if texts[field.name] and not _VALUE.fullmatch(texts[field.name]):
            raise ClusterError(f"{field.title}: this value cannot be used.")
        if not texts[field.name] and not field.is_optional and field.kind != "text":
            raise ClusterError(f"{field.title}: a value is missing.")
    return action, texts


def arguments(document: object, folders: Mapping[str, str]) -> list[str]:
    """Return the arguments of the command. `folders` has `data_dir` and `scenarios`.

    Raises:
        ClusterError: as in `values_of`, or a value is missing.
    """
    action, texts = values_of(document)
    result = []
    for part in action.parts:
        is_empty = part.unless_empty and not texts[part.unless_empty]
        if is_empty or (part.rules and texts["rule"] not in part.rules):
            continue
        for argument in part.arguments.split():
            filled = argument.format(**texts, **folders)
            if not filled:
                raise ClusterError("A value is missing.")
            result.append(filled)
    return result


def execute(document: object, data_dir: Path, scenarios: Scenarios) -> dict[str, str]:
    """Run the command; return what it prints as `result`, and the page of a scenario as `open`.

    Raises:
        ClusterError: as in `arguments`, or the command failed.
    """
    action, texts = values_of(document)
    if action.name == RUN_SCENARIO:
        address = scenarios.start(texts["scenario"], texts["seed"])
        return {"result": f"{texts['scenario']}, seed {texts['seed']}, runs.", "open": address}
    folders = {"data_dir": str(data_dir.resolve()), "scenarios": str(scenarios.folder)}
    command = arguments(document, folders)
    try:
        result = run_module("bridgehead", *command, timeout_s=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise ClusterError(f"The command took longer than {_TIMEOUT_S} s.") from None
    if result.returncode:
        lines = [line for line in result.stderr.splitlines() if line.strip("─╭╰╮╯ ")]
        raise ClusterError(lines[-1].removeprefix("bridgehead: ") if lines else "It failed.")
    return {"result": result.stdout.strip()}
