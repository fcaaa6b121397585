"""`python -m spec`: check the models of Forwarding.tla with TLC, and refute the controls.

TLC visits all states of the models. It follows the committed paths (`spec/paths.toml`): the
counterexample of each control must violate its invariant, and every path must still end where the
file says. Prints each model with its number of states, and with a name the trace of a path. Exit
code: 0 if all of it is so, 1 if not, 4 if TLC cannot run.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from judge.spec.tlc import Outcome, TlcError, run_tlc
from spec.models import LIMITS, MODELS, SAFETY, Limit, Model
from spec.paths import FILE, GOALS, Path, follow, read_paths, search, write_paths

_CANNOT_RUN: Final = 4
_LIVENESS: Final = "EveryRequestEnds"
_BEHAVIOURS: Final = 20_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Check what the arguments name; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m spec", description=__doc__)
    parser.add_argument("names", nargs="*", help="models and parts; default: all")
    parser.add_argument("--long", action="store_true", help="simulate larger models instead")
    parser.add_argument(
        "--behaviours", type=int, default=_BEHAVIOURS, help="of each model, with --long"
    )
    parser.add_argument("--quiet", action="store_true", help="print no traces")
    parser.add_argument("--write-paths", action="store_true", help="look for the paths again")
    options = parser.parse_args(arguments)
    names = options.names
    try:
        if options.write_paths:
            write_paths([search(goal) for goal in GOALS])
            return 0
        if options.long:
            chosen = [model for model in MODELS if _named(names, model.name)]
            held = [_simulate(model, options.behaviours) for model in chosen]
            return 0 if all(held) else 1
        paths = read_paths()
        jobs: list[Callable[[], Checked]] = [
            *(partial(_check, model) for model in MODELS if _named(names, model.name)),
            *(partial(_follow, path) for name, path in paths.items() if _named(names, name)),
            *(partial(_refute, limit) for limit in LIMITS if _named(names, limit.model)),
        ]
        checked = _side_by_side(jobs, prints_traces=bool(names) and not options.quiet)
    except TlcError as error:
        print(error, file=sys.stderr)
        return _CANNOT_RUN
    if not jobs:
        print("no model, part or path has that name", file=sys.stderr)
        return 2
    print(f"{sum(checked)} of {len(checked)} models, paths and limits are as expected")
    return 0 if all(checked) else 1


class Checked(NamedTuple):
    """What TLC found, on one line. The trace is printed if it is not as expected."""

    is_expected: bool
    line: str
    outcome: Outcome


def _side_by_side(jobs: Sequence[Callable[[], Checked]], *, prints_traces: bool) -> list[bool]:
    """Run one TLC on each processor, and print in order. Raises TlcError."""
    checked = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for job in [pool.submit(job) for job in jobs]:
            is_expected, line, outcome = job.result()
            print(line, flush=True)
            if prints_traces or not is_expected:
                _print_trace(outcome)
            checked.append(is_expected)
    return checked


def _named(names: Sequence[str], name: str) -> bool:
    return not names or name in names


def check(model: Model, without: str = "", options: Sequence[str] = ()) -> Outcome:
    """Let TLC check a model, with one part left out. Raises TlcError."""
    claimed = [name for name in SAFETY if name not in model.not_claimed]
    return run_tlc(
        model.constants(without),
        base="Forwarding",
        specification="FairSpec" if model.liveness else "Spec",
        invariants=claimed,
        properties=[_LIVENESS] if model.liveness else [],
        options=options,
        workers=1 if not options else None,  # _side_by_side uses the other processors
    )


def _check(model: Model) -> Checked:
    began_s = time.monotonic()
    outcome = check(model)
    seconds = time.monotonic() - began_s
    verdict = f"VIOLATES {outcome.violated}" if outcome.violated else "holds"
    line = (
        f"{model.name:14}{outcome.distinct:9,} states, depth {outcome.depth:2}, "
        f"{seconds:5.1f} s: {verdict}"
    )
    return Checked(not outcome.violated, line, outcome)


def _follow(path: Path) -> Checked:
    goal = path.goal
    end, outcome = follow(goal, path.steps)
    is_expected = end == path.end and outcome.violated == goal.violates
    names = ["Initial predicate", *(" ".join(map(str, step)) for step in path.steps)]
    outcome.trace = [(name, state) for name, (_, state) in zip(names, outcome.trace, strict=True)]
    of = f"without {goal.part}" if goal.part else goal.name
    line = f"{goal.model:14}{of}: {outcome.violated or 'nothing'} after {len(path.steps)} steps"
    if not is_expected:
        line += f", EXPECTED {goal.violates} and the end in {FILE.name}"
    return Checked(is_expected, line, outcome)


def _simulate(model: Model, behaviours: int) -> bool:
    """Follow random behaviours of a model with one more election and more faults."""
    larger = replace(
        model,
        epochs=model.epochs + 1,
        budget={fault: count + 1 for fault, count in model.budget.items()},
        liveness=False,
    )
    began_s = time.monotonic()
    outcome = check(larger, options=("-simulate", f"num={behaviours}", "-depth", "100"))
    seconds = time.monotonic() - began_s
    print(
        f"{model.name:14}{behaviours:9,} behaviours, {seconds:5.1f} s: "
        f"{outcome.violated or 'holds'}",
        flush=True,
    )
    if outcome.violated:
        _print_trace(outcome)
    return not outcome.violated


def _refute(limit: Limit) -> Checked:
    """Look for a violation that the full design does not exclude."""
    model = next(model for model in MODELS if model.name == limit.model)
    model = replace(
        model, not_claimed=tuple(n for n in SAFETY if n != limit.invariant), liveness=False
    )
    outcome = check(model)
    is_expected = outcome.violated == limit.invariant
    line = f"{model.name:14}a limit: {outcome.violated} in {len(outcome.trace)} states"
    return Checked(is_expected, line, outcome)


def _print_trace(outcome: Outcome) -> None:
    """Print each action, and below it what it changed."""
    before: dict[str, str] = {}
    for number, (action, state) in enumerate(outcome.trace):
        print(f"  {number:3} {action}")
        values = dict(
            part.strip().split(" = ", 1) for part in f"\n{state}".split("\n/\\ ") if " = " in part
        )
        for name, value in values.items():
            if number and name != "steps" and before.get(name) != value:
                print(f"        {name} = {_short(value)}")
        before = values


def _short(value: str) -> str:
    """Return a value on one line, without the fields of records that are empty, 0 or FALSE."""
    line = " ".join(value.split())
    line = re.sub(r"\w+ \|-> (?:\{\}|<<\s?>>|0|FALSE)(?:, | ?(?=\]))", "", line)
    return re.sub(r",? ?\]", "]", line)


if __name__ == "__main__":
    sys.exit(main())
