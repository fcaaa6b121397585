"""Generates the page about chaos: scenarios, faults and workloads from their values."""

from __future__ import annotations

from typing import Final

from chaos.faults import FAULTS
from chaos.missing import MISSING
from chaos.scenario import Scenario, Topology
from chaos.scenarios import SCENARIOS
from chaos.workloads import WORKLOADS
from docs.generate_reference import MARK

_INTRODUCTION: Final = """\
A scenario defines a workload, faults and when they are injected, and what must hold. It runs real
processes and a real ZooKeeper; the evidence of each run is sealed and judged.

```sh
bridgehead chaos list
bridgehead chaos run controller_pause_past_session
bridgehead chaos run reply_of_commit_lost --seed 7 --seeds 3 --out results
make chaos SCENARIO=all
```

Each run has a folder in `--out` (default `.chaos`), which `bridgehead judge` reads. `results.json`
and `junit.xml` are for programs; both are written after each run. The seed determines the clients'
requests and the moments of the faults, but not the exact timing of real processes. The exit code is
0 if every run passed, 1 if a run failed or hung, and 3 if all others passed but a run is undecided.

A run passes if three conditions are met: at the end every broker's metadata agrees with the results
that the clients got, all expected properties hold ([properties](properties.md)), and the number of
elections is in the expected range. The property T1 requires evidence, other than the harness's own
event `fault_injected`, that each fault had an effect; a run in which a fault had no effect is
undecided. A run hangs if no operation is acknowledged for 90 s.

To add a scenario, add a file to `chaos/scenarios` and a line to `chaos/scenarios/__init__.py`;
then `make docs`. Faults (`chaos/faults`) and workloads (`chaos/workloads`) are added in the same
way.\
"""


def chaos_page() -> str:
    """Return the page."""
    page = ["# Chaos", "", MARK, "", *_INTRODUCTION.splitlines(), "", "## Scenarios", ""]
    page += ["| name | what must hold | bug that it would find | faults | workload | cluster |"]
    page += ["|---|---|---|---|---|---|"]
    page += [_scenario(each) for each in SCENARIOS]
    page += ["", "## Faults", "", "| name | does |", "|---|---|"]
    page += [f"| `{each.name}` | {each.does} |" for each in FAULTS]
    page += ["", "## Workloads", "", "| name | does |", "|---|---|"]
    page += [f"| `{each.name}` | {each.does} |" for each in WORKLOADS]
    page += ["", "## Scenarios that do not exist", "", "| scenario | reason |", "|---|---|"]
    page += [f"| {what} | {reason} |" for what, reason in MISSING]
    return "\n".join([*page, ""])


def _scenario(scenario: Scenario) -> str:
    steps = [
        f"`{step.fault.name}`" + (f" ×{step.times}" if step.times > 1 else "")
        for step in scenario.steps
    ]
    cells = (
        f"`{scenario.name}`",
        scenario.aim,
        scenario.bug,
        ", ".join(steps) or "none",
        f"`{scenario.workload.name}`",
        _cluster(scenario.topology),
    )
    return f"| {' | '.join(cells)} |"


def _cluster(topology: Topology) -> str:
    parts = [f"{topology.brokers} brokers"]
    if topology.zookeeper_members > 1:
        parts.append(f"{topology.zookeeper_members} members of ZooKeeper")
    if topology.seeded_bugs:
        parts.append("seeded bugs " + ", ".join(f"`{each}`" for each in topology.seeded_bugs))
    return "; ".join(parts)
