"""`python -m spec`: check the models of Forwarding.tla with TLC, and refute the controls.

Prints each model with its number of states, and the trace of each control. Exit code: 0 if every
model holds and every control is refuted as expected, 1 if not, 4 if TLC cannot run.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from judge.spec.tlc import Outcome, TlcError, run_tlc
from spec.models import CONTROLS, LIMITS, MODELS, SAFETY, Control, Model

_CANNOT_RUN: Final = 4
_LIVENESS: Final = "EveryRequestEnds"
_SIMULATED: Final = ("-simulate", "num=200000", "-depth", "100")


def main(arguments: Sequence[str] | None = None) -> int:
    """Check what the arguments name; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m spec", description=__doc__)
    parser.add_argument("names", nargs="*", help="models and parts; default: all")
    parser.add_argument("--long", action="store_true", help="simulate larger models instead")
    parser.add_argument("--quiet", action="store_true", help="print no traces")
    options = parser.parse_args(arguments)
    names = options.names
    try:
        if options.long:
            held = [_simulate(model) for model in MODELS if _named(names, model.name)]
            return 0 if all(held) else 1
        models = [_check(model) for model in MODELS if _named(names, model.name)]
        controls = [
            _refute(control, prints_trace=not options.quiet)
            for control in (*CONTROLS, *LIMITS)
            if _named(names, control.part or control.model)
        ]
    except TlcError as error:
        print(error, file=sys.stderr)
        return _CANNOT_RUN
    if not models and not controls:
        print("no model or part has that name", file=sys.stderr)
        return 2
    print(f"{sum(models)} of {len(models)} models hold, ", end="")
    print(f"{sum(controls)} of {len(controls)} controls are refuted")
    return 0 if all((*models, *controls)) else 1


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
    )


def _check(model: Model) -> bool:
    began_s = time.monotonic()
    outcome = check(model)
    seconds = time.monotonic() - began_s
    holds = not outcome.violated
    verdict = "holds" if holds else f"VIOLATES {outcome.violated}"
    print(
        f"{model.name:14}{outcome.distinct:9,} states, depth {outcome.depth:2}, "
        f"{seconds:5.1f} s: {verdict}",
        flush=True,
    )
    if not holds:
        _print_trace(outcome)
    return holds


def _simulate(model: Model) -> bool:
    """Follow random behaviours of a model with one more election and more faults."""
    larger = replace(
        model,
        epochs=model.epochs + 1,
        budget={fault: count + 1 for fault, count in model.budget.items()},
        liveness=False,
    )
    outcome = check(larger, options=_SIMULATED)
    print(f"{model.name:14}{outcome.generated:11,} states: {outcome.violated or 'holds'}")
    if outcome.violated:
        _print_trace(outcome)
    return not outcome.violated


def _refute(control: Control, *, prints_trace: bool) -> bool:
    model = next(model for model in MODELS if model.name == control.model)
    if not control.part:  # A limit: the full design does not claim this invariant.
        model = replace(
            model, not_claimed=tuple(n for n in SAFETY if n != control.invariant), liveness=False
        )
    outcome = check(model, control.part)
    left_out = f"without {control.part}" if control.part else "a limit"
    is_refuted = outcome.violated == control.invariant
    violated = f"{outcome.violated or 'nothing'} in {len(outcome.trace)} states"
    expected = "" if is_refuted else f", EXPECTED {control.invariant}"
    print(f"{model.name:14}{left_out}: {violated}{expected}", flush=True)
    if prints_trace or not is_refuted:
        _print_trace(outcome)
    return is_refuted


def _print_trace(outcome: Outcome) -> None:
    """Print each action, and below it what it changed."""
    before: dict[str, str] = {}
    for number, (action, state) in enumerate(outcome.trace):
        print(f"  {number:3} {action}")
        values = dict(
            part.strip().split(" = ", 1) for part in f"\n{state}".split("\n/\\ ") if " = " in part
        )
        for name, value in values.items():
            if number and before.get(name) != value:
                print(f"        {name} = {_short(value)}")
        before = values


def _short(value: str) -> str:
    """Return a value on one line, without the fields of records that are empty, 0 or FALSE."""
    line = " ".join(value.split())
    line = re.sub(r"\w+ \|-> (?:\{\}|<<\s?>>|0|FALSE)(?:, | ?(?=\]))", "", line)
    return re.sub(r",? ?\]", "]", line)


if __name__ == "__main__":
    sys.exit(main())
