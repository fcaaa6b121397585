"""`python -m chaos list | run | explore`: the command behind `bridgehead chaos`."""

from __future__ import annotations

import argparse
import asyncio
import resource
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from bridgehead.cluster import ClusterError
from bridgehead.suggestions import did_you_mean
from bridgehead.ui.export import write_page
from chaos.bugs import NAMES
from chaos.local.run import run as run_locally
from chaos.reproduction import scenario_with
from chaos.result import Result, remove_files, write_files
from chaos.scenario import LOCAL, SIMULATED, Scenario
from chaos.scenarios import SCENARIOS, THEMES, TO_START_WITH
from chaos.simulated.explore import Explored, Explorer, Totals, schedule_from
from chaos.simulated.run import Runner
from chaos.simulated.run import run as run_simulated
from chaos.simulated.shrinking import as_file, is_same_failure, shrink
from judge.evidence.run_files import EvidenceError
from judge.evidence.run_lookup import read_run
from judge.exit_codes import CANNOT_RUN, INTERRUPTED
from judge.spec.report import lines_of, report_on, summary_of
from judge.spec.tlc import TlcError, find_tlc
from judge.verdicts import Verdict, exit_code

_WIDTH: Final = 80
_USAGE: Final = 2
_ALL: Final = "all"
_WRONG_SHOWN_MAX: Final = 5
_KEPT_MAX: Final = 20
_PAGE: Final = "run.html"
_PROGRESS_EVERY_S: Final = 10.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Execute one command; return the exit code."""
    options = _parser().parse_args(arguments)
    if options.command == "list":
        return _list(options)
    if options.command == "explore":
        return _explore(options)
    scenarios = {scenario.name: scenario for scenario in SCENARIOS}
    in_tier = [scenario.name for scenario in SCENARIOS if options.tier in scenario.tiers]
    names = in_tier if _ALL in options.names else options.names
    unknown = [name for name in names if name not in scenarios]
    if unknown or options.seeds < 1:
        problem = "--seeds must be 1 or more."
        if unknown:
            list_shows = "`bridgehead chaos list` shows all scenarios"
            hint = did_you_mean(unknown[0], scenarios)
            problem = f"There is no scenario {unknown[0]!r}: {list_shows}.{hint}"
        print(problem, file=sys.stderr)
        return _USAGE
    if options.shrink and options.tier != SIMULATED:
        print(
            f"--shrink needs --tier {SIMULATED}: only that tier repeats a run exactly.",
            file=sys.stderr,
        )
        return _USAGE
    bugs = tuple(filter(None, options.bugs.split(",")))
    if unseeded := sorted(set(bugs) - NAMES):
        join = ", ".join(sorted(NAMES))
        print(f"There is no seeded bug {unseeded[0]!r}: the bugs are {join}.", file=sys.stderr)
        return _USAGE
    for name in names:
        if name not in in_tier:
            reason = scenarios[name].not_simulated
            print(f"{name} does not run in the tier {options.tier}: {reason}.", file=sys.stderr)
            return _USAGE
    if wrong := [property_ for property_ in options.properties if "=" not in property_]:
        print(f"--set needs NAME=VALUE, not {wrong[0]!r}.", file=sys.stderr)
        return _USAGE
    seeds = range(options.seed, options.seed + options.seeds)
    chosen = [scenarios[name] for name in names]
    if bugs:
        chosen = [scenario_with(name, bugs) for name in names]
    if options.spec:
        try:
            find_tlc()
        except TlcError as error:
            print(error, file=sys.stderr)
            return CANNOT_RUN
    properties = dict(property_.split("=", 1) for property_ in options.properties)
    chosen = [scenario.with_properties(properties) for scenario in chosen]
    try:
        return _run(chosen, seeds, options, bugs)
    except KeyboardInterrupt:
        print(f"Interrupted: the evidence so far is in {options.out}.", file=sys.stderr)
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bridgehead chaos", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list", help="list the scenarios")
    listing.add_argument("word", nargs="?", default="", help="a word of the name or the aim")
    listing.add_argument("--theme", choices=list(THEMES))
    listing.add_argument("--tier", choices=[LOCAL, SIMULATED])
    listing.add_argument("--names", action="store_true", help="print only the names")
    runs = commands.add_parser("run", help="run scenarios")
    runs.add_argument("names", nargs="+", metavar="NAME", help=f"a scenario, or `{_ALL}`")
    runs.add_argument("--seed", type=int, default=1)
    runs.add_argument("--seeds", type=int, default=1)
    runs.add_argument("--tier", choices=[LOCAL, SIMULATED], default=LOCAL)
    runs.add_argument("--bugs", default="", metavar="BUG,...", help="seeded bugs of the nodes")
    runs.add_argument(
        "--set",
        action="append",
        default=[],
        dest="properties",
        metavar="NAME=VALUE",
        help="a property of all brokers, instead of the scenario's value; can be repeated",
    )
    runs.add_argument(
        "--shrink", action="store_true", help="reduce each simulated run that does not pass"
    )
    runs.add_argument(
        "--spec", action="store_true", help="let TLC explain each run by the specification, too"
    )
    runs.add_argument("--out", type=Path, default=Path(".chaos"))
    explores = commands.add_parser("explore", help="try every order of a small scenario's messages")
    explores.add_argument(
        "--deviations", type=int, default=2, help="from the default order, in each run"
    )
    explores.add_argument("--histories", type=int, default=1_000, help="stop after so many")
    explores.add_argument("--bugs", default="", metavar="BUG,...", help="seeded bugs of the nodes")
    explores.add_argument(
        "--random", type=int, metavar="SEED", help="draw as many schedules instead"
    )
    explores.add_argument("--replay", metavar="SCHEDULE", help="run one schedule, such as 2:lost")
    explores.add_argument("--out", type=Path, default=Path(".chaos") / "explore")
    return parser


def _explore(options: argparse.Namespace) -> int:
    """Explore, and print what was seen; return the exit code."""
    bugs = frozenset(filter(None, options.bugs.split(",")))
    if bugs - NAMES or options.deviations < 0 or options.histories < 1:
        print(
            f"There are no bugs {sorted(bugs - NAMES)}."
            if bugs - NAMES
            else "--deviations must be 0 or more, --histories 1 or more.",
            file=sys.stderr,
        )
        return _USAGE
    options.out.mkdir(parents=True, exist_ok=True)
    explorer = Explorer(options.out.resolve(), bugs, _Progress())
    if options.replay is not None:
        try:
            schedule = schedule_from(options.replay)
        except ValueError as error:
            print(error, file=sys.stderr)
            return _USAGE
        explored = explorer.replay(schedule)
        _show_explored(explored, options)
        print(f"the client got {explored.result}, {explored.elections} elections")
        return exit_code(Verdict.FAIL if explored.wrong else Verdict.PASS)
    bounds = {"deviations": options.deviations, "stops": True}
    if options.random is None:
        totals = explorer.explore(histories=options.histories, **bounds)
    else:
        totals = explorer.sample(runs=options.histories, seed=options.random, **bounds)
    print(_progress(totals))
    print(f"clients got: {_counts(totals.results)}; elections: {_counts(totals.elections)}")
    if totals.complete >= 0:
        print(f"every schedule with at most {totals.complete} deviations was tried")
    for violation in totals.violations:
        _show_explored(violation, options)
    if not totals.histories:
        return exit_code(Verdict.NODATA)
    return exit_code(Verdict.FAIL if totals.violations else Verdict.PASS)


class _Progress:
    """Prints a line now and then."""

    def __init__(self) -> None:
        self._next_s = _PROGRESS_EVERY_S

    def __call__(self, totals: Totals) -> None:
        if totals.seconds >= self._next_s:
            self._next_s = totals.seconds + _PROGRESS_EVERY_S
            print(_progress(totals), flush=True)


def _progress(totals: Totals) -> str:
    return (
        f"{totals.runs:,} runs, {len(totals.histories):,} histories, {totals.cut:,} cut off, "
        f"{totals.runs / max(totals.seconds, 0.001):.0f} a second"
    )


def _counts(counter: Counter[Any]) -> str:
    return ", ".join(f"{value} ({count:,})" for value, count in sorted(counter.items(), key=str))


def _show_explored(explored: Explored, options: argparse.Namespace) -> None:
    print("messages, and what the schedule did with them:")
    print("\n".join(f"  {text}"[:_WIDTH] for text in explored.texts))
    for sentence in explored.wrong[:_WRONG_SHOWN_MAX]:
        print(textwrap.fill(sentence, _WIDTH, initial_indent="  - ", subsequent_indent="    "))
    schedule = ",".join(map(str, explored.schedule))
    bugs = f" --bugs {options.bugs}" if options.bugs else ""
    print(f"  replay: bridgehead chaos explore --replay {schedule!r}{bugs}")
    print(f"  evidence: bridgehead judge {explored.folder}", flush=True)


def _list(options: argparse.Namespace) -> int:
    """Print the scenarios that the options select, by theme; return the exit code."""
    selected = {
        theme: [scenario for scenario in scenarios if _is_selected(scenario, options)]
        for theme, scenarios in THEMES.items()
        if options.theme in (None, theme)
    }
    if options.names:
        print("\n".join(scenario.name for of_theme in selected.values() for scenario in of_theme))
        return 0
    if not any(selected.values()):
        print("No scenario has this word, theme and tier.", file=sys.stderr)
        return _USAGE
    if not (options.word or options.theme or options.tier):
        print("To start with:\n")
        for name, question in TO_START_WITH.items():
            print(f"{name}\n    {question}")
        print()
    for theme, of_theme in selected.items():
        if of_theme:
            print(f"{theme}: {len(of_theme)}\n")
        for scenario in of_theme:
            _show_scenario(scenario)
        if of_theme:
            print()
    return 0


def _is_selected(scenario: Scenario, options: argparse.Namespace) -> bool:
    text = f"{scenario.name} {scenario.aim}".lower()
    return options.tier in (None, *scenario.tiers) and options.word.lower() in text


def _show_scenario(scenario: Scenario) -> None:
    print(f"{scenario.name}  ({', '.join(scenario.tiers)})")
    text = scenario.aim
    if scenario.not_simulated:
        text += f" (Not simulated: {scenario.not_simulated}.)"
    print(textwrap.indent(textwrap.fill(text, _WIDTH - 4), "    "))


def _run(
    scenarios: Sequence[Scenario], seeds: range, options: argparse.Namespace, bugs: tuple[str, ...]
) -> int:
    """Run every scenario with every seed; write the result files after each run.

    With more than `_KEPT_MAX` simulated runs, write the files after every `_KEPT_MAX` runs, and
    keep only the evidence of runs that did not pass.
    """
    tier, out = options.tier, options.out
    keeps_all = tier == LOCAL or len(seeds) * len(scenarios) <= _KEPT_MAX
    out.mkdir(parents=True, exist_ok=True)
    remove_files(out)
    results: list[Result] = []
    for scenario in scenarios:
        with _runs(scenario, tier) as run_one:
            for seed in seeds:
                folder = out / f"{scenario.name}-{seed}"
                shutil.rmtree(folder, ignore_errors=True)
                print(f"{scenario.name}, seed {seed}", flush=True)
                result = run_one(seed, folder.resolve())
                result.bugs = bugs
                result.properties = tuple(options.properties)
                if options.spec:
                    _explain(scenario, result, folder)
                results.append(result)
                if result.verdict != "PASS":
                    _write_page(result)
                _show(result)
                if options.shrink and result.verdict != "PASS":
                    _shrink(scenario, result, folder)
                if result.verdict == "PASS" and not keeps_all:
                    shutil.rmtree(folder)
                if keeps_all or len(results) % _KEPT_MAX == 0:
                    write_files(out, results)
    write_files(out, results)
    verdicts = [result.verdict for result in results]
    passed = sum(verdict == "PASS" for verdict in verdicts)
    if tier == SIMULATED:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        each_s = (used.ru_utime + used.ru_stime) / len(results)
        print(f"{each_s:.3f} s of processor time per run, {60 / each_s:.0f} runs a minute")
    print(f"{passed} of {len(results)} runs passed:")
    print(f"  {out}/junit.xml\n  {out}/results.json")
    return exit_code(*verdicts)


@contextmanager
def _runs(scenario: Scenario, tier: str) -> Iterator[Callable[[int, Path], Result]]:
    """Yield the function that runs a scenario with a seed."""
    if tier == LOCAL:
        yield lambda seed, folder: asyncio.run(run_locally(scenario, seed, folder, _say))
    else:
        with closing(Runner(scenario, _say)) as runner:
            yield runner.run


def _explain(scenario: Scenario, result: Result, folder: Path) -> None:
    """Change the result of a run that passed, but that the specification does not explain.

    A scenario that expects violations has faulty nodes: the specification must not explain it.
    """
    try:
        report = report_on(read_run(folder))
    except (TlcError, EvidenceError) as error:
        verdict, lines, summary = Verdict.CRASHED, [str(error)], [str(error)]
    else:
        verdict, lines, summary = report.verdict, lines_of(report), summary_of(report)
    for line in summary:
        _say(line.strip())
    expected = Verdict.FAIL if scenario.expects.violates else Verdict.PASS
    if verdict is not expected:
        result.wrong += lines
        if result.verdict is Verdict.PASS:
            result.verdict = Verdict.FAIL if verdict is Verdict.PASS else verdict


def _shrink(scenario: Scenario, first: Result, folder: Path) -> None:
    """Print a reduced scenario that fails with the same seed."""
    candidate_folder = folder.with_name(f"{folder.name}-reduced").resolve()

    def fails(candidate: Scenario) -> bool:
        shutil.rmtree(candidate_folder, ignore_errors=True)
        result = run_simulated(candidate, first.seed, candidate_folder, lambda _: None)
        return is_same_failure(first, result, scenario.expects.violates)

    name = f"{scenario.name}_{first.seed}"
    print("  reducing the scenario", flush=True)
    smallest = shrink(scenario.of_seed(first.seed), fails)
    shutil.rmtree(candidate_folder, ignore_errors=True)
    print(f"  save this as chaos/scenarios/{name}.py and add it to SCENARIOS;")
    print(f"  it fails with --seed {first.seed}:")
    print(as_file(smallest, name), flush=True)


def _write_page(result: Result) -> None:
    """Write the page of a run that did not pass, beside its evidence."""
    page = Path(result.folder) / _PAGE
    try:
        write_page(Path(result.folder), page)
    except ClusterError as error:  # For example, the cluster did not start.
        print(f"  no page: {error}", flush=True)
    else:
        result.page = str(page)


def _say(sentence: str) -> None:
    print(f"  {sentence}"[:_WIDTH], flush=True)


def _show(result: Result) -> None:
    print(
        f"  {result.verdict}: {result.acknowledged} acknowledged, {result.open} unknown, "
        f"{result.elections} elections, {result.seconds:.1f} s"
    )
    if result.verdict == "PASS":
        return
    for sentence in result.wrong[:_WRONG_SHOWN_MAX]:
        print(textwrap.fill(sentence, _WIDTH, initial_indent="  - ", subsequent_indent="    "))
    print(f"  replay: {result.replay}")
    print(f"  evidence: bridgehead judge {result.folder}", flush=True)
    if result.page:
        print(f"  page: {result.page}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
