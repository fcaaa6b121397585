"""Generates the page about chaos: scenarios, faults and workloads from their values."""

from __future__ import annotations

from typing import Final

from chaos.faults import FAULTS
from chaos.missing import MISSING
from chaos.scenario import Scenario, Topology
from chaos.scenarios import SCENARIOS
from chaos.workloads import WORKLOADS
from judge.properties import PROPERTY_SPECS
from tools.generate_reference import MARK

_INTRODUCTION: Final = """\
A scenario defines a workload, the faults with their times, and what must hold. The evidence of
each run is sealed and judged. A run that does not pass leaves a page that shows it, `run.html` in
its folder ([ui](ui.md)).

## Tiers

Every scenario runs in the tier `local`. Most scenarios also run in the tier `simulated`.

- `local`: real processes and a real ZooKeeper. The seed determines the clients' requests and the
  moments of the faults, but not the exact timing of the processes.
- `simulated`: the same nodes in one process, without sockets, threads and real time. The event
  loop, the clocks, the network and ZooKeeper are simulated; everything else is the production code.
  All random choices come from the seed, so a seed gives the same history every time.

The simulated ZooKeeper (`chaos/simulated/zookeeper.py`) passes the same test cases as a real
ZooKeeper (`tests/zookeeper_cases.py`). In the simulation too:

- connections to ZooKeeper break,
- requests to ZooKeeper and its replies are lost,
- ZooKeeper sessions expire, and move to other connections,
- messages are delayed at random, so messages of different connections overtake each other.

The simulation is simpler than reality in these respects:

- ZooKeeper is one server that applies each request at once. It has no members that lag, fail or
  elect a leader.
- Each callback of the event loop takes 1 µs.
- There is no TLS.
- Disks neither fail nor take time.

In the tier `local`, the fault of `slow_fsync` needs `strace` and the right to trace processes. The
fault of `wall_clock_jumps` needs `libfaketime`. The faults that fill the disk of a process do not
really fill the disk: they set the process's limit on the size of files (`RLIMIT_FSIZE`) to 0, so
every write of the process to a file fails.

## Running scenarios

```sh
bridgehead chaos list
bridgehead chaos run controller_pause_past_session
bridgehead chaos run reply_of_commit_lost --seed 7 --seeds 3 --out results
bridgehead chaos run sessions_flap --tier simulated --seeds 20
bridgehead chaos run reads_in_failover --set bridgehead.metadata.reads=controller
make chaos SCENARIO=all
```

- Each run has a folder in `--out` (default `.chaos`). `bridgehead judge` can read this folder.
- `--out` also has `results.json` and `junit.xml` for programs. After each run, the command writes
  both files again, with all its runs so far.
- If a command makes more than 20 simulated runs, it writes both files only after every 20 runs and
  at the end. Such a command also deletes the folders of the runs that passed.
- The exit code is 0 if every run passed, and 1 if a run failed or hung. It is 3 if no run failed or
  hung, but a run crashed or is undecided.

With `--shrink`, the command repeats each simulated run that does not pass with fewer and fewer
faults and operations. It keeps a reduction only if the reduced run fails in the same way.
Violations that the scenario expects do not count:

- If the original run violated properties, the reduced run must violate the first of them.
- If the original run violated none, the reduced run must violate none either, and must have the
  same verdict.

The command then prints the smallest scenario as a file for `chaos/scenarios`.

## All orders of a small scenario

`bridgehead chaos explore` tries the orders of deliveries, losses and crashes of one small scenario
on simulated nodes, one after another. Two nodes run, and a client of the one that is not the
controller creates a topic. A *schedule* deviates from the default order at some messages, counted
from 0 in the order of their arrival:

| deviation | does |
|---|---|
| `later` | the message arrives after the next message of another link |
| `held` | the message, and what follows on its link, arrives 3 s later: after the session timeout |
| `lost` | the connection breaks; the message and what follows it are lost |
| `killed` | the receiver's process is killed before it arrives; at most one process is killed |
| `expired` | the ZooKeeper session of the sender ends before the message arrives |

The messages are Envelopes, replies and metadata between the nodes, multis, ZooKeeper's replies to
them, and fired watches. First all schedules with one deviation are tried, then those with two, and
so on.

A *history* is what each process and ZooKeeper received, in order. If a run reaches a state that an
earlier run had, the run is cut off: it would continue in the same way. Times are not part of a
state, so a run that differs from an earlier one only in times is cut off, too. The judge judges
each history; what it finds violated is printed with the schedule. `--replay 2:lost,5:killed` runs
one schedule again. Timers, heartbeats, reads of ZooKeeper and the client's own connection keep
their default times.

```sh
bridgehead chaos explore --deviations 1
bridgehead chaos explore --bugs naive_retry
make explore
```

With at most one deviation there are 16 histories, with two some 280. The first 1,746, most of them
with three deviations, took 2,290 runs and 88 s of processor time, 38 ms a run: `make explore` takes
some ten minutes of one processor. None of the 1,746 violates a property. The seeded bugs
`naive_retry`, `assumes_commit`, `forgets_outcomes`, `deletes_successors_znode` and
`retry_across_sessions` are found within 16 runs, `relays_not_controller` within 30. Random
schedules (`--random 7`) with at most two deviations find `retry_across_sessions` within 20 runs,
and `assumes_commit` within 2, but not `relays_not_controller` within 250. An exploration also
says when nothing is left to try. Bugs that need two requests, or two copies in one round of the
controller, are not found here: the
[paths](specification.md#paths-as-tests) have them.

## When a run passes

A run passes if three conditions are met:

- The workload finds nothing wrong with the clients' results and the brokers' metadata.
- The judge's verdict is PASS ([properties](properties.md)).
- The scenario's limits are met. There can be limits for the number of elections, of unknown
  outcomes and of successes, and for the longest time without a success.

Two scenarios are exceptions. In `controller_znode_deleted` the properties W5 and W6 must be
violated; everything else must hold. In `canary` W1 and W2 must be violated; nothing else counts.

The property T1 requires evidence that each fault had an effect. The harness's own event
`fault_injected` does not suffice. A run in which a fault had no effect is undecided. A run counts
as hung if, for example, it waits for operations that are not acknowledged within 90 s.

## Adding a scenario

Add a `Scenario` to the module of `chaos/scenarios` with its theme, and to the tuple at the end of
this module; then run `make docs`. Faults (`chaos/faults`) are added in the same way. A workload is
a file in `chaos/workloads`, and a line in `chaos/workloads/__init__.py`.

## Scenarios

The column *bug that it would find* has an error of nodes or of the judge that would make the
scenario fail. Names such as W1 are [properties](properties.md).\
"""

_CATCHES: Final = """\
## Seeded bugs

A scenario that cannot fail shows nothing. Therefore each scenario names seeded bugs of nodes
(`chaos/bugs`) that make it fail, or the reason why it names none. The option `--bugs` seeds bugs
into all nodes of a run. The last column has the [properties](properties.md) that the run with these
bugs violates. If no property finds the bug, the column quotes the report of the run.

`make prove-bugs` makes all these runs, and eight runs with other bugs. It also checks that each
scenario of the tier `simulated` passes without seeded bugs. These 88 checks took half an hour on a
busy machine with two processors (load average 6 to 15).\
"""
_PROPERTIES: Final = frozenset(spec.id for spec in PROPERTY_SPECS)


def chaos_page() -> str:
    """Return the page."""
    page = ["# Chaos", "", MARK, "", *_INTRODUCTION.splitlines(), ""]
    page += [
        "| name | what must hold | bug that it would find | faults | workload | cluster | tiers |"
    ]
    page += ["|---|---|---|---|---|---|---|"]
    page += [_scenario(scenario) for scenario in SCENARIOS]
    page += ["", *_CATCHES.splitlines(), ""]
    page += ["| scenario | seeded bugs | found by |", "|---|---|---|"]
    page += [_catch(scenario) for scenario in SCENARIOS]
    page += ["", "## Faults", "", "| name | effect |", "|---|---|"]
    page += [f"| `{fault.name}` | {fault.does} |" for fault in FAULTS]
    page += ["", "## Workloads", "", "| name | does |", "|---|---|"]
    page += [f"| `{workload.name}` | {workload.does} |" for workload in WORKLOADS]
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
    bugs = ", ".join(f"`{bug}`" for bug in catch.bugs)
    finders = ", ".join(
        finder if finder in _PROPERTIES else f'"{finder}"' for finder in catch.found_by
    )
    return f"| `{scenario.name}` | {bugs} | {finders} |"


def _tiers(scenario: Scenario) -> str:
    tiers = ", ".join(f"`{tier}`" for tier in scenario.tiers)
    return f"{tiers} only: {scenario.not_simulated}" if scenario.not_simulated else tiers


def _cluster(topology: Topology) -> str:
    parts = [f"{topology.brokers} brokers"]
    if topology.zookeeper_members > 1:
        parts.append(f"{topology.zookeeper_members} members of ZooKeeper")
    if topology.seeded_bugs:
        parts.append("seeded bugs " + ", ".join(f"`{bug}`" for bug in topology.seeded_bugs))
    return "; ".join(parts)
