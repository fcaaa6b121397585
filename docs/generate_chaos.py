"""Generates the page about chaos: scenarios, faults and workloads from their values."""

from __future__ import annotations

from typing import Final

from chaos.faults import FAULTS
from chaos.missing import MISSING
from chaos.scenario import Scenario, Topology
from chaos.scenarios import SCENARIOS
from chaos.workloads import WORKLOADS
from docs.generate_reference import MARK
from event_log.properties import PROPERTY_SPECS

_INTRODUCTION: Final = """\
A scenario defines a workload, the faults with their times, and what must hold. The evidence of
each run is sealed and judged. There are two tiers. Every scenario runs in the first; most also run
in the second:

- `local`: real processes and a real ZooKeeper.
- `simulated`: the same nodes in one process, without sockets, threads and real time. The event
  loop, the clocks, the network and ZooKeeper are simulated; everything else is the production code.
  All random choices come from the seed, so a seed gives the same history every time.

```sh
bridgehead chaos list
bridgehead chaos run controller_pause_past_session
bridgehead chaos run reply_of_commit_lost --seed 7 --seeds 3 --out results
bridgehead chaos run sessions_flap --tier simulated --seeds 20
make chaos SCENARIO=all
```

Each run has a folder in `--out` (default `.chaos`), which `bridgehead judge` reads. `results.json`
and `junit.xml` are for programs. After each run both are written again, with all runs of the
command so far. If a command makes more than 20 simulated runs, it writes both files only after
every 20 runs and at the end, and deletes the folders of the runs that passed. In the tier `local`
the seed determines the clients' requests and the moments of the faults, but not the exact timing of
real processes. The exit code is 0 if every run passed, 1 if a run failed or hung, and 3 if no run
failed or hung, but one crashed or is undecided.

With `--shrink` each simulated run that does not pass is repeated with fewer and fewer faults and
operations. A reduction is kept only if the reduced run still violates the first property that the
original run violated. If the original run violated none, the reduced run must have the same verdict
and violate none either. The smallest scenario found is printed as a file for `chaos/scenarios`.

A run passes if three conditions are met: the workload finds nothing wrong with the clients' results
and the brokers' metadata, the judge's verdict is PASS ([properties](properties.md)), and the
scenario's limits are met. The limits are for the number of elections, the number of unknown
outcomes, the number of successes, and the longest time without a success. There are two exceptions.
In `controller_znode_deleted` the properties W5 and W6 must be violated; everything else must hold.
In `canary` W1 and W2 must be violated, and nothing else counts.

The property T1 requires evidence that each fault had an effect; the harness's own event
`fault_injected` does not suffice. A run in which a fault had no effect is undecided. A run counts
as hung if, for example, it waits for operations that are not acknowledged within 90 s.

The simulated ZooKeeper (`chaos/simulated/zookeeper.py`) is one server that applies each request at
once: it has no members that lag, fail or elect a leader. It passes the same test cases as a real
ZooKeeper (`tests/zookeeper_cases.py`). In the simulation too, connections to ZooKeeper break,
requests and replies are lost, sessions expire and move to other connections. The simulated network
delays messages at random, so messages of different connections overtake each other. Each callback
of the event loop takes 1 µs, there is no TLS, and disks neither fail nor take time.

In the tier `local`, `slow_fsync` needs `strace` and the right to trace processes, and
`wall_clock_jumps` needs `libfaketime`. If a scenario fills the disk of a process, the disk is not
really filled: the process's limit on the size of files (`RLIMIT_FSIZE`) is set to 0, so each of its
writes to a file fails.

To add a scenario, add a file to `chaos/scenarios` and a line to `chaos/scenarios/__init__.py`;
then `make docs`. Faults (`chaos/faults`) and workloads (`chaos/workloads`) are added in the same
way.

In the table of scenarios, a *bug* is an error of nodes or of the judge that would make the scenario
fail. Names such as W1 are [properties](properties.md).\
"""

_CATCHES: Final = """\
## Seeded bugs

A scenario that cannot fail shows nothing. So each scenario names seeded bugs of nodes
(`node/seeded_bugs.py`) with which it fails, or the reason why it names none. `--bugs` seeds them
into all nodes of a run. The last column has the [properties](properties.md) that the run then
violates. If no property finds the bug, the column has quoted words from the report of the run.

`make prove-bugs` makes all these runs, and eight runs with other bugs (`chaos/kafka_bugs.py`,
`chaos/other_bugs.py`). It also checks that each scenario of the tier `simulated` passes without
seeded bugs. These 88 checks took half an hour on a busy machine with two processors (load average
6 to 15).\
"""
_PROPERTIES: Final = frozenset(spec.id for spec in PROPERTY_SPECS)


def chaos_page() -> str:
    """Return the page."""
    page = ["# Chaos", "", MARK, "", *_INTRODUCTION.splitlines(), "", "## Scenarios", ""]
    page += [
        "| name | what must hold | bug that it would find | faults | workload | cluster | tiers |"
    ]
    page += ["|---|---|---|---|---|---|---|"]
    page += [_scenario(each) for each in SCENARIOS]
    page += ["", *_CATCHES.splitlines(), ""]
    page += ["| scenario | seeded bugs | found by |", "|---|---|---|"]
    page += [_catch(each) for each in SCENARIOS]
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
    rounds = f" ({scenario.rounds} rounds)" if scenario.rounds > 1 else ""
    cells = (
        f"`{scenario.name}`",
        scenario.aim,
        scenario.bug,
        f"{scenario.draw.count}, drawn by the seed"
        if scenario.draw
        else (", ".join(steps) or "none") + rounds,
        f"`{scenario.workload.name}`",
        _cluster(scenario.topology),
        _tiers(scenario),
    )
    return f"| {' | '.join(cells)} |"


def _catch(scenario: Scenario) -> str:
    catch = scenario.catches
    if isinstance(catch, str):
        return f"| `{scenario.name}` | none | {catch} |"
    bugs = ", ".join(f"`{each}`" for each in catch.bugs)
    found = ", ".join(each if each in _PROPERTIES else f'"{each}"' for each in catch.found_by)
    return f"| `{scenario.name}` | {bugs} | {found} |"


def _tiers(scenario: Scenario) -> str:
    tiers = ", ".join(f"`{each}`" for each in scenario.tiers)
    return f"{tiers} only: {scenario.not_simulated}" if scenario.not_simulated else tiers


def _cluster(topology: Topology) -> str:
    parts = [f"{topology.brokers} brokers"]
    if topology.zookeeper_members > 1:
        parts.append(f"{topology.zookeeper_members} members of ZooKeeper")
    if topology.seeded_bugs:
        parts.append("seeded bugs " + ", ".join(f"`{each}`" for each in topology.seeded_bugs))
    return "; ".join(parts)
