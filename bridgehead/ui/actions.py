"""The buttons that break a running cluster. Each runs the command that it shows."""

from __future__ import annotations

import re
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from bridgehead.application import run_module
from bridgehead.cluster.errors import ClusterError

_TIMEOUT_S: Final = 120
# No value begins with a dash, so none can be taken for an option.
_VALUE: Final = re.compile(r"[A-Za-z0-9_.:*][A-Za-z0-9_.:*-]{0,199}")


@dataclass(frozen=True, slots=True)
class Field:
    """One value that a user chooses. A choice `broker` lists the brokers."""

    name: str
    title: str
    kind: str  # broker, number, text or choice
    default: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """Arguments, with names of fields in braces; left out unless a field has a value of `among`."""

    arguments: str
    field: str = ""
    among: tuple[str, ...] = ()  # empty: any value


@dataclass(frozen=True, slots=True)
class Action:
    """One button: `bridgehead` with the arguments of the parts, and the cluster's --data-dir."""

    name: str
    title: str
    effect: str
    parts: tuple[Part, ...]
    fields: tuple[Field, ...] = ()


_BROKER: Final = Field("broker", "Broker", "broker")
_RULES: Final = ("error", "delay", "drop", "close", "duplicate", "truncate")
ACTIONS: Final = (
    Action(
        "kill",
        "Kill the controller",
        "Its process ends at once. Another broker is elected when its session has timed out.",
        (Part("controller kill"),),
    ),
    Action(
        "freeze",
        "Freeze the controller",
        "If it is longer than the session, its writes are rejected when it wakes.",
        (Part("controller freeze --for {seconds}s"),),
        (Field("seconds", "Seconds", "number", "8"),),
    ),
    Action(
        "expire",
        "Expire the controller's session",
        "ZooKeeper ends the session; the controller resigns.",
        (Part("controller expire"),),
    ),
    Action(
        "move",
        "Move the controller",
        "The controller resigns in favour of the chosen broker.",
        (Part("controller move {broker}"),),
        (_BROKER,),
    ),
    Action(
        "stop_broker",
        "Stop a broker",
        "It closes its sessions before it exits.",
        (Part("node stop {broker}"),),
        (_BROKER,),
    ),
    Action(
        "kill_broker",
        "Kill a broker",
        "Its sessions stay open until they time out.",
        (Part("node kill {broker}"),),
        (_BROKER,),
    ),
    Action(
        "start_broker",
        "Start a broker",
        "A broker that does not run starts again.",
        (Part("node start {broker}"),),
        (_BROKER,),
    ),
    Action(
        "add_rule",
        "Add a fault rule",
        "Requests that match it fail. The brokers need bridgehead.faults.allow=true.",
        (
            Part("faults add {rule}"),
            Part("--api {api}", "api"),
            Part("--error {error}", "rule", ("error",)),
            Part("--delay {delay}s", "rule", ("delay",)),
            Part("--side {side}", "rule", tuple(rule for rule in _RULES if rule != "duplicate")),
            Part("--side envelope", "rule", ("duplicate",)),
            Part("--phase response", "rule", ("truncate",)),
            Part("--times {times}"),
        ),
        (
            Field("rule", "Action", "choice", "error", _RULES),
            Field("api", "API", "text", "CreateTopics"),
            Field("error", "Error", "text", "NOT_CONTROLLER"),
            Field("delay", "Delay in seconds", "number", "1"),
            Field("side", "Side", "choice", "client", ("client", "envelope")),
            Field("times", "How often (0: always)", "number", "1"),
        ),
    ),
    Action(
        "remove_rules",
        "Remove all fault rules",
        "Requests are treated as usual again.",
        (Part("faults remove"),),
    ),
)
_BY_NAME: Final = {action.name: action for action in ACTIONS}


def described() -> list[dict[str, Any]]:
    """Return the buttons for the page's scripts."""
    return [asdict(action) for action in ACTIONS]


def arguments(document: object) -> list[str]:
    """Return the command's arguments for `{"action": NAME, FIELD: TEXT, ...}`.

    Raises:
        ClusterError: the action is unknown, or a value is missing or has a wrong form.
    """
    values = document if isinstance(document, dict) else {}
    action = _BY_NAME.get(str(values.get("action")))
    if action is None:
        raise ClusterError("There is no such action.")
    texts = {field.name: str(values.get(field.name, "")) for field in action.fields}
    for field in action.fields:
        if texts[field.name] and not _VALUE.fullmatch(texts[field.name]):
            raise ClusterError(f"{field.title}: this value cannot be used.")
    result = []
    for part in action.parts:
        chosen = texts.get(part.field, "")
        if part.field and (not chosen or (part.among and chosen not in part.among)):
            continue
        for argument in part.arguments.split():
            filled = argument.format(**texts)
            if not filled:
                raise ClusterError("A value is missing.")
            result.append(filled)
    return result


def execute(document: object, data_dir: Path) -> str:
    """Run the command; return what it prints.

    Raises:
        ClusterError: as in `arguments`, or the command failed.
    """
    command = (*arguments(document), "--data-dir", str(data_dir.resolve()))
    try:
        result = run_module("bridgehead", *command, timeout_s=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise ClusterError(f"The command took longer than {_TIMEOUT_S} s.") from None
    if result.returncode:
        lines = [line for line in result.stderr.splitlines() if line.strip("─╭╰╮╯ ")]
        raise ClusterError(lines[-1].removeprefix("bridgehead: ") if lines else "It failed.")
    return result.stdout.strip()
