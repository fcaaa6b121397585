"""Reduces a failing scenario to few faults and operations, and formats it as a Python file.

A candidate is the scenario with one reduction. Each candidate is run with the same seed. The first
candidate that still fails replaces the scenario; this is repeated until no candidate fails.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import fields, replace
from typing import Final

from chaos.result import Result
from chaos.scenario import Scenario, Step

_HEADER: Final = '''"""{aim}"""

from __future__ import annotations

{imports}

{constant} = Scenario(
    name={name!r},
    aim={aim!r},
    bug={bug!r},
    catches={catches!r},
    workload={workload},
    steps=(
{steps}    ),
    expects={expects!r},
    topology={topology!r},
    after={after},
)
'''


def is_same_failure(first: Result, other: Result, expected: Collection[str] = ()) -> bool:
    """Return whether `other` violates the first of the properties that `first` violates.

    If `first` violates none, `other` must violate none either, and have the same verdict. The
    properties that the scenario is expected to violate do not count.
    """
    unexpected, others = (
        [name for name in result.violated if name not in expected] for result in (first, other)
    )
    if unexpected:
        return unexpected[0] in others
    return other.verdict == first.verdict and not others


def shrink(scenario: Scenario, fails: Callable[[Scenario], bool]) -> Scenario:
    """Return a scenario that still fails, but no longer fails if it is reduced further."""
    played = scenario.steps * scenario.rounds
    single = (replace(step, times=1) for step in played for _ in range(step.times))
    smallest = replace(scenario, steps=tuple(single), rounds=1)
    while (smaller := next(filter(fails, _smaller(smallest)), None)) is not None:
        smallest = smaller
    return smallest


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    """Yield the scenario with fewer faults, then with fewer operations around them."""
    steps = scenario.steps
    size = len(steps)
    while size:
        for start in range(0, len(steps), size):
            yield replace(scenario, steps=steps[:start] + steps[start + size :])
        size //= 2
    if scenario.after > 1:
        yield replace(scenario, after=scenario.after // 2)
    for at, step in enumerate(steps):
        if step.after > 1:
            fewer = replace(step, after=step.after // 2)
            yield replace(scenario, steps=(*steps[:at], fewer, *steps[at + 1 :]))


def as_file(scenario: Scenario, name: str) -> str:
    """Return the text of a file for chaos/scenarios."""
    faults = {step.fault.name: step.fault.inject.__module__ for step in scenario.steps}
    values = {type(value).__name__ for step in scenario.steps for value in (step.hold,)}
    values |= {"Catch", "Expectation", "Scenario", "Topology"}
    values |= {"Step"} if scenario.steps else set()
    workload = scenario.workload.name
    imports = [f"from {module} import {name.upper()}" for name, module in sorted(faults.items())]
    imports += [
        f"from chaos.scenario import {', '.join(sorted(values))}",
        f"from chaos.workloads import {workload.upper()}",
    ]
    return _HEADER.format(
        imports="\n".join(imports),
        constant=name.upper(),
        name=name,
        aim=scenario.aim,
        bug=scenario.bug,
        catches=scenario.catches,
        workload=workload.upper(),
        steps="".join(f"        {_step(step)},\n" for step in scenario.steps),
        expects=scenario.expects,
        topology=scenario.topology,
        after=scenario.after,
    )


def _step(step: Step) -> str:
    others = [field.name for field in fields(step) if field.name != "fault"]
    spelled = ", ".join(f"{name}={getattr(step, name)!r}" for name in others)
    return f"Step(fault={step.fault.name.upper()}, {spelled})"
