"""`python -m bench.pipeline_proof planted | judges DIR | kills | cluster`: proofs of the pipeline.

planted: the pipeline finds every violation planted in a generated history, and no other.
judges:  the plain judge and the pipeline return equal verdicts, rows judged and violations.
kills:   the pipeline, killed with SIGKILL every few tables and resumed, leaves the same rows as an
         undisturbed run.
cluster: a standalone master with two workers builds the same tables as one process.

Exit code 0 if the proof succeeds, 1 if not.
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

from bench.generated_evidence.__main__ import PLANTED, generate
from bench.standalone_spark import standalone_spark
from judge.evidence.run_lookup import read_run
from judge.history import History
from judge.verdicts import judge
from pipeline.evidence import find_runs
from pipeline.folders import digests
from pipeline.run import TABLES, Pipeline
from pipeline.session import open_session

# By property: verdict, rows judged, and the rows of each violation by its key.
Findings = dict[str, tuple[str, int, dict[str, list[str]]]]
_KILL_EVERY: Final = 6  # tables
_WAIT_S: Final = 600
# The rows of bronze tables depend on the blocks that were read.
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
    return {
        row.property: (
            row.verdict,
            row.judged,
            {violation.key: list(violation.rows) for violation in violations},
        )
        for row, violations in judge(History(read_run(evidence)))
    }


def planted(options: argparse.Namespace, folder: Path) -> bool:
    """Compare the violations found with those planted."""
    began = time.monotonic()
    world = generate(folder, options.events, plant=options.plant)
    print(f"{world.events:,} events generated in {time.monotonic() - began:.0f} s", flush=True)
    began = time.monotonic()
    found = {
        (of, key): rows
        for of, (_, _, keys) in _in_spark(folder, folder / "out").items()
        for key, rows in keys.items()
    }
    print(f"judged in {time.monotonic() - began:.0f} s", flush=True)
    expected = json.loads((folder / PLANTED).read_text(encoding="utf-8"))
    missed = [(of, key) for of, key, row in expected if row not in found.get((of, key), [])]
    unexpected = sorted(set(found) - {(of, key) for of, key, _ in expected})
    print(f"{len(expected)} planted, {len(missed)} missed, {len(unexpected)} others found")
    for each in [*missed, *unexpected][:20]:
        print("  ", *each)
    return not missed and not unexpected


def judges(options: argparse.Namespace, folder: Path) -> bool:
    """Compare the plain judge and the pipeline."""
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
    """Kill and resume the pipeline; compare with an undisturbed run."""
    generate(folder, options.events, plant=1)
    killed = 0
    for table in TABLES[_KILL_EVERY - 1 :: _KILL_EVERY]:
        built_table = folder / "killed" / table.name
        process = _command(folder, "killed")
        deadline = time.monotonic() + _WAIT_S
        while not built_table.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            killed += 1
        print(f"killed when {table.name} was built: {process.wait()}", flush=True)
    for out in ("killed", "undisturbed"):
        print(f"{out}: exit code {_command(folder, out).wait(_WAIT_S)}", flush=True)
    pipelines = [
        Pipeline(open_session(), find_runs(folder), folder / out)
        for out in ("killed", "undisturbed")
    ]
    assert not any(pipeline.make() for pipeline in pipelines), "both are complete"
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
    """Compare the tables of two workers with those of one process."""
    generate(folder, options.events, plant=1)
    with standalone_spark(folder, workers=2) as master:
        began = time.monotonic()
        done = _command(folder, "there", "--master", master, "--memory", "900m").wait(_WAIT_S)
        print(f"two workers: exit code {done} in {time.monotonic() - began:.0f} s", flush=True)
    executors = len(list(folder.glob("work-*/app-*/*/stderr")))
    runs, spark = find_runs(folder), open_session()
    local, clustered = (Pipeline(spark, runs, folder / out) for out in ("here", "there"))
    local.make()
    assert not clustered.make(), "the workers have built every table"
    bad = [name for name in _COMPARED if digests(local.read(name)) != digests(clustered.read(name))]
    same = local.verdicts() == clustered.verdicts()
    print(
        f"{executors} executors; {len(_COMPARED) - len(bad)} of {len(_COMPARED)} tables equal", *bad
    )
    return same and not bad and executors == 2


def _command(folder: Path, out: str, *options: str) -> subprocess.Popen[Any]:
    places = ["--evidence", str(folder), "--out", str(folder / out)]
    arguments = ["run", *places, "--tables", *options]
    return subprocess.Popen(
        [sys.executable, "-m", "pipeline", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one proof in a temporary folder; return the exit code."""
    parser = argparse.ArgumentParser(prog="bench.pipeline_proof", description=__doc__)
    commands = parser.add_subparsers(required=True)
    at_size = commands.add_parser("planted")
    at_size.add_argument("--events", type=int, default=4_000_000)
    at_size.add_argument("--plant", type=int, default=3, help="times to plant each violation")
    at_size.set_defaults(prove=planted)
    both = commands.add_parser("judges")
    both.add_argument("evidence", type=Path, nargs="?", default=Path(".demo"))
    both.add_argument("--out", type=Path, help="existing tables are not built again")
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
    print("proved" if holds else "NOT proved")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
