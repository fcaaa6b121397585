"""Generates the page about the changes, histories and bugs that make each check fail."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from chaos.bugs import BUGS
from chaos.bugs.bug import FOUND_BY_RUNS, Bug
from chaos.reproduction import of_bugs, of_scenarios
from chaos.scenario import SIMULATED
from spec.models import CONTROLS
from tests.kill_matrix.counterexamples import COUNTEREXAMPLES, Counterexample
from tests.kill_matrix.evidence_mutants import EVIDENCE_MUTANTS
from tests.kill_matrix.golden import WITHOUT_SEEDED_BUG, example_of_each_property
from tests.kill_matrix.not_explained import EXPLAINED, NOT_EXPLAINED
from tools.generate_reference import MARK

_INTRODUCTION: Final = """\
A check that cannot fail shows nothing. This page lists what makes each of the
[properties](properties.md) fail. For each property there is at least one change of evidence or one
golden history that only this property detects.

`make prove-judge` makes each change of the first table and judges the result with
the judge of `bridgehead judge`.

## Changes of evidence

A golden history is the evidence of a small run (`tests/golden`). Each row of the table changes one
golden history:

- *drop* removes a line, *double* repeats it, and *set* changes its fields. *cut* removes a line and
  all later lines of its file.
- `2/b` is boot `b` of node 2, `up/h` is the harness, and `load/k` is a workload's client history.
  The number of a transaction is its zxid.
- If the end of a node's log is cut off, no property is violated, but the verdict on the run is
  UNKNOWN. The column *found by* then has *a gap*.

`tests/unit/judge/test_golden_histories.py` tests all rows.\
"""
_GOLDEN: Final = """\
## Golden histories with violations

Several golden histories can violate the same property. This table has, for each property, the
history that violates the fewest other properties. All golden histories are tested with both judges:
`tests/unit/judge/test_golden_histories.py` uses the plain judge, and
`tests/integration/test_pipeline.py` uses the pipeline.\
"""
_SPECIFIED: Final = """\
## Parts of the specification

A model of the [specification](specification.md) without one protective part violates an invariant.
`make spec` checks each row, and that the models with all parts hold. The counterexample is then
replayed on simulated nodes with the seeded bug, which must end in the same state
(`tests/unit/chaos/test_paths.py`). Two parts have no such bug:\
"""
_SEEDED: Final = """\
## Seeded bugs of nodes

These bugs (`chaos/bugs`) are seeded into nodes.

- The column *found by* has the violated properties. If no property finds the bug, the column has
  what the test observes.
- The column *specification*, `rejects`: `bridgehead judge --spec` finds requests in the run that
  no behaviour of the specification explains. `explains`: the bug is one of elections, commits,
  identities or floors, but the specification explains each request alone; the reasons are
  [below](#bugs-that-the-specification-explains). `tests/integration/test_specification.py` shows
  both. The other bugs are about rights, contents, records or migrations, which the specification
  does not have.
- The column *tier*: in `local` the nodes are processes, in `simulated` they are simulated
  ([chaos](chaos.md)), and in `unit test` there are no nodes.
- The column *test* has the test's file below `tests`.\
"""


def kill_matrix_page() -> str:
    """Return the page."""
    page = ["# Kill matrix", "", MARK, "", *_INTRODUCTION.splitlines(), ""]
    page += _table(
        ("change", "history", "found by", "verdict on the run"),
        (
            (mutant.title, f"`{mutant.history}`", ", ".join(mutant.violates) or "a gap", mutant.run)
            for mutant in EVIDENCE_MUTANTS
        ),
    )
    page += ["", *_GOLDEN.splitlines(), ""]
    page += _table(
        ("property", "history", "found by"),
        (
            (violated, f"`{name}`", ", ".join(scenarios))
            for violated, (name, scenarios) in example_of_each_property().items()
        ),
    )
    page += ["", *_SPECIFIED.splitlines(), ""]
    page += [f"- `{part}`: {why}" for part, why in COUNTEREXAMPLES.items() if isinstance(why, str)]
    page += ["", *_controls()]
    page += ["", *_SEEDED.splitlines(), ""]
    rejected = {name for _, *names in NOT_EXPLAINED for name in names}
    replays = [c for c in COUNTEREXAMPLES.values() if isinstance(c, Counterexample)]
    rejected |= {replay.bug for replay in replays if not replay.is_explained}
    explained = {bug: why for bug, why, _ in EXPLAINED}
    page += _table(
        ("bug", "found by", "specification", "tier", "test"),
        (
            (
                f"`{bug.name}`",
                bug.found_by,
                "rejects" if bug.name in rejected else "explains" * (bug.name in explained),
                _tier(bug),
                f"`{bug.test}`",
            )
            for bug in sorted(BUGS, key=lambda bug: bug.name)
        ),
    )
    page += ["", "No seeded bug of a node violates these properties:", ""]
    page += _table(("property", "reason"), WITHOUT_SEEDED_BUG.items())
    page += ["", "### Bugs that the specification explains", ""]
    page += _table(("bug", "reason"), ((f"`{bug}`", why) for bug, why in explained.items()))
    return "\n".join([*page, ""])


def _controls() -> list[str]:
    rows = []
    for control in CONTROLS:
        replay = COUNTEREXAMPLES[control.part]
        bug = f"`{replay.bug}`" if isinstance(replay, Counterexample) else ""
        rows.append((f"`{control.part}`", f"`{control.model}`", f"`{control.invariant}`", bug))
    return _table(("part left out", "model", "violates", "seeded bug"), rows)


def _tier(bug: Bug) -> str:
    tiers = {name: run.tier for run in (*of_bugs(), *of_scenarios()) for name in run.bugs}
    if bug.test == FOUND_BY_RUNS:
        return tiers[bug.name]
    if bug.test.startswith(("unit/chaos/", "integration/test_specification.py")):
        return SIMULATED
    return "local" if bug.test.startswith("integration/") else "unit test"


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    head = list(header)
    return [_line(head), "|" + "---|" * len(head), *map(_line, rows)]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
