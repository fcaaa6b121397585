"""Paths through Forwarding.tla that simulated nodes replay (`chaos/simulated/replay.py`).

`python -m spec --write-paths` lets TLC look for the shortest path to each goal, and writes
`spec/paths.toml`. `make spec` lets TLC follow each committed path.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from judge.spec.tlc import MODULES, Outcome, TlcError, literal, run_tlc
from spec.models import CONTROLS, MODELS, Model

FILE: Final = MODULES / "paths.toml"
_HEADER: Final = """\
# Paths through spec/Forwarding.tla. `python -m spec --write-paths` writes this file.
# Nodes 1 and 2 may become controllers; requests come from nodes 3 and 4.
"""
_TOKEN: Final = re.compile(
    r'\s*(<<|>>|\|->|:>|@@|[\[\]{}(),]|"[^"]*"|-?\d+|TRUE|FALSE|\w+)', re.ASCII
)
_PRINTED: Final = re.compile(r'^<<\s*"', re.MULTILINE)
_FIRST_BROKER: Final = 3

Step = tuple[str, *tuple[int | str, ...]]


@dataclass(frozen=True, slots=True)
class Goal:
    """The state that a path leads to. `part` is left out; "": the full design."""

    name: str
    model: str
    violates: str
    """An invariant; for the full design, that states of this kind are never reached."""
    part: str = ""
    candidates: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """A goal, the steps to it, and what the specification says about its last state."""

    goal: Goal
    steps: tuple[Step, ...]
    end: Mapping[str, Any]


# Two nodes must be controllers at the same time.
_TWO_CANDIDATES: Final = ("FENCE", "LEASE")
GOALS: Final = (
    *(
        Goal(c.part, c.model, c.invariant, c.part, 2 if c.part in _TWO_CANDIDATES else 1)
        for c in CONTROLS
    ),
    # Limits of the full design.
    Goal("former_controller_is_wrong", "znode_deleted", "ErrorWasTrue", candidates=2),
    Goal("late_envelope_is_executed", "delayed", "ErrorMeansNoEffect"),
    Goal("other_program_writes", "direct", "ErrorWasTrue"),
    # Kinds of states.
    Goal("first_copy_was_applied", "lost_reply", "NeverCounted"),
    Goal("zombie_was_fenced", "znode_deleted", "NeverFenced", candidates=2),
    Goal("outcome_was_found", "failover", "NeverFound", candidates=2),
    Goal("next_controller_found_outcome", "failover", "NeverFoundLater", candidates=2),
    Goal("topic_existed", "failover", "NeverExists"),
    Goal("every_broker_knew", "blocking", "NeverOk"),
    Goal("topic_was_unknown", "deletion", "NeverUnknown"),
    Goal("copy_came_too_late", "pruning", "NeverTooLate"),
    Goal("write_conflicted", "direct", "NeverConflict"),
    Goal("outcome_was_pruned", "floors", "NeverPruned"),
    Goal("second_process_was_answered", "restart", "NeverSecondLife"),
    Goal("next_controller_answered", "failover", "NeverReElected", candidates=2),
)


def model_of(goal: Goal) -> Model:
    """Return the goal's model, with its requests at brokers that are never controllers.

    Without deadlines: a broker's deadline passes earlier than the controller's own, so after a
    timeout no copy that waited at the controller is executed.
    """
    model = next(model for model in MODELS if model.name == goal.model)
    requests = tuple(
        {**request, "node": request["node"] + _FIRST_BROKER - 1} for request in model.requests
    )
    return replace(model, requests=requests, deadlines=False)


def _run(goal: Goal, steps: Sequence[Step], invariants: Sequence[str]) -> Outcome:
    model = model_of(goal)
    constants = {
        **model.constants(goal.part),
        "Nodes": set(range(1, max(request["node"] for request in model.requests) + 1)),
        "Candidates": set(range(1, goal.candidates + 1)),
        "Path": [list(step) for step in steps],
    }
    return run_tlc(
        constants,
        base="Paths",
        specification="PathSpec",
        invariants=invariants,
        view="vars" if not steps else "",
        workers=1,  # With more, the path found is not always the shortest one.
    )


def search(goal: Goal) -> Path:
    """Let TLC find the shortest path. Raises TlcError if there is none."""
    outcome = _run(goal, (), [goal.violates])
    if outcome.violated != goal.violates:
        raise TlcError(f"{goal.name}: no path violates {goal.violates}")
    _, state = outcome.trace[-1]
    steps = state.partition("/\\ steps = ")[2].partition("\n/\\")[0]
    path = tuple(tuple(step) for step in value_of(steps))
    return Path(goal=goal, steps=path, end=follow(goal, path)[0])


def follow(goal: Goal, steps: Sequence[Step]) -> tuple[dict[str, Any], Outcome]:
    """Let TLC follow a path.

    Returns the path's last state, and the outcome: its last state must violate the goal's
    invariant.

    Raises:
        TlcError: the specification does not have the path.
    """
    outcome = _run(goal, steps, ["IsFollowed", goal.violates])
    printed = [
        _parse(_TOKEN.findall(outcome.output[match.start() :]))[0]
        for match in _PRINTED.finditer(outcome.output)
    ]
    if not printed:
        raise TlcError(f"{goal.name}: spec/Forwarding.tla does not have this path any more")
    return dict(printed), outcome


def value_of(text: str) -> Any:
    """Return a value that TLC has printed. Functions are dicts, sets are sorted lists."""
    tokens = _TOKEN.findall(text)
    value, rest = _parse(tokens)
    assert not rest, text
    return value


def _parse(tokens: list[str]) -> tuple[Any, list[str]]:
    head, rest = tokens[0], tokens[1:]
    match head:
        case "<<" | "{":
            items, rest = _items(rest, {"<<": ">>", "{": "}"}[head])
            return (items if head == "<<" else sorted(items)), rest
        case "[" | "(":
            return _function(rest, {"[": "]", "(": ")"}[head])
        case "TRUE" | "FALSE":
            return head == "TRUE", rest
    return (head[1:-1] if head[0] == '"' else int(head)), rest


def _items(tokens: list[str], end: str) -> tuple[list[Any], list[str]]:
    items = []
    while tokens[0] != end:
        item, tokens = _parse(tokens)
        items.append(item)
        tokens = tokens[1:] if tokens[0] == "," else tokens
    return items, tokens[1:]


def _function(tokens: list[str], end: str) -> tuple[dict[Any, Any], list[str]]:
    function = {}
    key: Any
    while tokens[0] != end:
        if tokens[1] == "|->":
            key, tokens = tokens[0], tokens[2:]
        else:
            key, tokens = _parse(tokens)
            key, tokens = (tuple(key) if isinstance(key, list) else key), tokens[1:]
        function[key], tokens = _parse(tokens)
        tokens = tokens[1:] if tokens[0] in (",", "@@") else tokens
    return function, tokens[1:]


def read_paths() -> dict[str, Path]:
    """Return the committed paths by name."""
    goals = {goal.name: goal for goal in GOALS}
    tables = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return {
        name: Path(
            goal=goals[name],
            steps=tuple(_step(text) for text in table["steps"]),
            end={key: value_of(text) for key, text in table["end"].items()},
        )
        for name, table in tables.items()
    }


def _step(text: str) -> Step:
    action, *arguments = text.split()
    return action, *(int(word) if word.isdigit() else word for word in arguments)


def write_paths(paths: Sequence[Path]) -> None:
    """Write the committed file."""
    lines = [_HEADER]
    for path in paths:
        goal = path.goal
        left_out = f"without {goal.part}, " if goal.part else ""
        lines += [f"[{goal.name}]  # {goal.model}, {left_out}violates {goal.violates}", "steps = ["]
        lines += [f'    "{" ".join(map(str, step))}",' for step in path.steps]
        lines += ["]", f"[{goal.name}.end]"]
        lines += [f"{name} = '{literal(value)}'" for name, value in path.end.items()]
        lines.append("")
    FILE.write_text("\n".join(lines), encoding="utf-8")
