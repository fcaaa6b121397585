"""`python -m bench.pipeline_proof planted | judges DIR | kills | cluster`: the pipeline's claims.

planted: a generated history with every kind of breach; all are found with their rows, nothing else.
judges:  the plain judge and Spark on the same evidence: equal verdicts, rows judged and violations.
kills:   the pipeline is killed with SIGKILL again and again, each time a few tables further; what
         is there at the end is what an undisturbed run leaves, row by row.
cluster: a standalone master with two workers gives every table the rows that one process gives it.

Exit 0 when it is so, 1 when not.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bench.standalone_spark import standalone_spark
from chaos.evidence.finding import read_run
from chaos.history import History
from chaos.properties import PROPERTIES
from chaos.verdicts import judge
from pipeline.evidence import find_runs
from pipeline.folders import digests
from pipeline.generated.__main__ import PLANTED, generate
from pipeline.run import TABLES, Pipeline
from pipeline.session import open_session

# Of each property: verdict, rows judged, and each violation's rows by its key.
Findings = dict[str, tuple[str, int, dict[str, list[str]]]]
_KILL_EVERY: Final = 6  # tables
_WAIT_S: Final = 600
# Where a line was read depends on how its file was cut; what it says does not.
_COMPARED: Final = [table.name for table in TABLES if not table.name.startswith("bronze/")]


def _in_spark(evidence: Path, out: Path) -> Findings:
    runs = find_runs(evidence)[-1:]
    spark = open_session()
    pipeline = Pipeline(spark, runs, out)
    pipeline.make()
    keys: dict[str, dict[str, list[str]]] = {}
    for row in pipeline.read("gold/violations").collect():
        keys.setdefault(row["property"], {})[row["key"]] = row["rows"]
    (verdicts,) = pipeline.verdicts().values()
    return {row.property: (row.verdict, row.judged, keys.get(row.property, {})) for row in verdicts}


def _plain(evidence: Path) -> Findings:
    judgements = judge(History(read_run(evidence)), PROPERTIES)
    return {
        each.property.id: (
            each.verdict.value,
            each.judged,
            {violation.key: list(violation.rows) for violation in each.violations},
        )
        for each in judgements
    }


def planted(options: argparse.Namespace, folder: Path) -> bool:
    """Plant, judge, compare."""
    began = time.monotonic()
    world = generate(folder, options.events, plant=options.plant)
    print(f"{world.events:,} events made in {time.monotonic() - began:.0f} s", flush=True)
    began = time.monotonic()
    found = {
        (of, key): rows
        for of, (_, _, keys) in _in_spark(folder, folder / "out").items()
        for key, rows in keys.items()
    }
    print(f"judged in {time.monotonic() - began:.0f} s", flush=True)
    expected = json.loads((folder / PLANTED).read_text(encoding="utf-8"))
    missed = [(of, key) for of, key, row in expected if row not in found.get((of, key), [])]
    too_much = sorted(set(found) - {(of, key) for of, key, _ in expected})
    print(f"{len(expected)} planted, {len(missed)} missed, {len(too_much)} found beside them")
    for each in [*missed, *too_much][:20]:
        print("  ", *each)
    return not missed and not too_much


def judges(options: argparse.Namespace, folder: Path) -> bool:
    """Ask both."""
    plain, spark = _plain(options.evidence), _in_spark(options.evidence, options.out or folder)
    for of, (verdict, judged, keys) in plain.items():
        same = (
            "equal"
            if spark[of][:2] == (verdict, judged) and spark[of][2].keys() == keys.keys()
            else f"NOT EQUAL: {spark[of]}"
        )
        print(f"{of:4}{verdict:8}{judged:8} judged {len(keys):6} violations  {same}")
    return all(
        (spark[of][:2], spark[of][2].keys()) == (found[:2], found[2].keys())
        for of, found in plain.items()
    )


def kills(options: argparse.Namespace, folder: Path) -> bool:
    """Kill, and go on; then compare with a run that nobody killed."""
    generate(folder, options.events, plant=1)
    killed = 0
    for table in TABLES[_KILL_EVERY - 1 :: _KILL_EVERY]:
        made = folder / "killed" / table.name
        process = _command(folder, "killed")
        deadline = time.monotonic() + _WAIT_S
        while not made.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            killed += 1
        print(f"killed when {table.name} was made: {process.wait()}", flush=True)
    for out in ("killed", "undisturbed"):
        print(f"{out}: exit code {_command(folder, out).wait(_WAIT_S)}", flush=True)
    pipelines = [
        Pipeline(open_session(), find_runs(folder), folder / out)
        for out in ("killed", "undisturbed")
    ]
    assert not any(pipeline.make() for pipeline in pipelines), "both are whole"
    bad = [
        name
        for name in _COMPARED
        if len({str(digests(pipeline.read(name))) for pipeline in pipelines}) > 1
    ]
    print(
        f"killed {killed} times; {len(TABLES) - len(bad)} of {len(TABLES)} tables are equal", *bad
    )
    return not bad and killed > 0


def cluster(options: argparse.Namespace, folder: Path) -> bool:
    """Judge here, judge there; compare here."""
    generate(folder, options.events, plant=1)
    with standalone_spark(folder, workers=2) as master:
        began = time.monotonic()
        done = _command(folder, "there", "--master", master, "--memory", "900m").wait(_WAIT_S)
        print(f"two workers: exit code {done} in {time.monotonic() - began:.0f} s", flush=True)
    executors = len(list(folder.glob("work-*/app-*/*/stderr")))
    runs, spark = find_runs(folder), open_session()
    here, there = (Pipeline(spark, runs, folder / out) for out in ("here", "there"))
    here.make()
    assert not there.make(), "the workers have made all of it"
    bad = [name for name in _COMPARED if digests(here.read(name)) != digests(there.read(name))]
    same = here.verdicts() == there.verdicts()
    print(
        f"{executors} executors; {len(_COMPARED) - len(bad)} of {len(_COMPARED)} tables equal", *bad
    )
    return same and not bad and executors == 2


def _command(folder: Path, out: str, *options: str) -> subprocess.Popen[Any]:
    arguments = ["run", "--evidence", str(folder), "--out", str(folder / out), *options]
    return subprocess.Popen(
        [sys.executable, "-m", "pipeline", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what was asked for in a folder of its own; return the exit code."""
    parser = argparse.ArgumentParser(prog="bench.pipeline_proof", description=__doc__)
    commands = parser.add_subparsers(required=True)
    at_size = commands.add_parser("planted")
    at_size.add_argument("--events", type=int, default=4_000_000)
    at_size.add_argument("--plant", type=int, default=3, help="how often each kind of breach")
    at_size.set_defaults(prove=planted)
    both = commands.add_parser("judges")
    both.add_argument("evidence", type=Path, nargs="?", default=Path(".demo"))
    both.add_argument("--out", type=Path, help="tables that are there already are not made again")
    both.set_defaults(prove=judges)
    disturbed = commands.add_parser("kills")
    disturbed.add_argument("--events", type=int, default=50_000)
    disturbed.set_defaults(prove=kills)
    elsewhere = commands.add_parser("cluster")
    elsewhere.add_argument("--events", type=int, default=200_000)
    elsewhere.set_defaults(prove=cluster)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="bridgehead-proof-") as folder:
        holds: bool = options.prove(options, Path(folder))
    print("so it is" if holds else "it is NOT so")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
