"""`python -m bench.pipeline_proof planted | judges DIR | kills | cluster`: proofs of the pipeline.

planted: the pipeline finds every violation planted in a generated history, and no other.
judges:  the plain judge and the pipeline return equal verdicts, rows judged and violations.
kills:   the pipeline, killed with SIGKILL at random moments and resumed, leaves the same rows and
         verdicts as an undisturbed run.
cluster: a standalone master with two workers builds the same tables as one process.

With `--on hdfs` or `--on s3`, `kills` and `cluster` keep evidence and tables in an HDFS or an S3 on
loopback (`make storage-jars` fetches the servers). The local copy of the generated evidence is
deleted as soon as it is uploaded, so workers and driver share no file on the local disk.

Exit code 0 if the proof succeeds, 1 if not.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import psutil
from pyspark.sql import DataFrame, SparkSession

from bench.generated_evidence.__main__ import PLANTED, generate
from bench.standalone_spark import standalone_spark
from bench.storage import KINDS, Storage, storage
from judge.evidence.run_lookup import read_run
from judge.history import History
from judge.verdicts import judge
from pipeline.evidence import Run, find_runs
from pipeline.folders import MADE, digests
from pipeline.places import StoragePlace, place
from pipeline.run import TABLES, Pipeline
from pipeline.session import open_session

# By property: verdict, rows judged, and the rows of each violation by its key.
Findings = dict[str, tuple[str, int, dict[str, list[str]]]]
_WAIT_S: Final = 1800
_POLL_S: Final = 0.2
_COMPARED: Final = [table.name for table in TABLES]
_STORED: Final = [table.name for table in TABLES if table.is_stored]


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
    rows_by_key = {
        (of, key): rows
        for of, (_, _, keys) in _in_spark(folder, folder / "out").items()
        for key, rows in keys.items()
    }
    print(f"judged in {time.monotonic() - began:.0f} s", flush=True)
    expected = json.loads((folder / PLANTED).read_text(encoding="utf-8"))
    missed = [(of, key) for of, key, row in expected if row not in rows_by_key.get((of, key), [])]
    unexpected = sorted(set(rows_by_key) - {(of, key) for of, key, _ in expected})
    print(f"{len(expected)} planted, {len(missed)} missed, {len(unexpected)} others found")
    for row in [*missed, *unexpected][:20]:
        print("  ", *row)
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
        (spark[of][:2], spark[of][2].keys()) == (of_plain[:2], of_plain[2].keys())
        for of, of_plain in plain.items()
    )


def kills(options: argparse.Namespace, folder: Path) -> bool:
    """Kill and resume the pipeline; compare with an undisturbed run.

    The kills are spread over the whole run: each comes at a random moment after a random number of
    tables has been written, and the next pipeline continues in the same folder. If a pipeline ends
    before its kill, the next one begins with an empty folder. Some kills, chosen at random, also
    kill Java; otherwise Java ends when it notices that Python has ended.
    """
    chance = random.Random(options.seed)
    with storage(options.on, folder) as held:
        spark = open_session("local[2]", small=True, memory="1g", settings=held.settings)
        evidence = _evidence(options.events, folder, held, spark)
        runs = find_runs(evidence)
        began = time.monotonic()
        _end(_command(held, evidence, "undisturbed"), "undisturbed")
        whole_s = time.monotonic() - began
        outs, killed = ["killed-1"], 0
        while killed < options.kills:
            moments = sorted(chance.randrange(len(_STORED)) for _ in range(options.kills - killed))
            for tables in moments:
                out = place(f"{held.uri}/{outs[-1]}", spark)
                process = _command(held, evidence, outs[-1])
                _wait_for_tables(process, out, more_than=max(tables, _written(out)))
                try:
                    process.wait(chance.uniform(0, whole_s / len(_STORED)))
                except subprocess.TimeoutExpired:
                    with_java = chance.random() < 0.5
                    _kill(process, with_java=with_java)
                    killed += 1
                    killed_is = "Python and Java" if with_java else "Python"
                    tables_are = f"{_written(out)} of {len(_STORED)} tables"
                    print(f"kill {killed} of {killed_is}: {tables_are} written", flush=True)
                else:
                    outs.append(f"killed-{len(outs) + 1}")
                    break
        _end(_command(held, evidence, outs[-1]), outs[-1])
        whole, *pieces = (_tables(spark, runs, held, out) for out in ("undisturbed", *outs))
        bad = _unequal([whole, *pieces])
        same = all(piece.verdicts() == whole.verdicts() for piece in pieces)
    print(
        f"{options.on}: {whole_s:.0f} s without a kill; killed {killed} times; in {len(pieces)} "
        f"folders {len(_COMPARED) - len(bad)} of {len(_COMPARED)} tables are equal",
        *bad,
    )
    return same and not bad


def _written(out: StoragePlace) -> int:
    """Return the number of tables that a pipeline has written."""
    try:
        return sum(name.endswith(MADE) for name in out.files())
    except FileNotFoundError:  # no folder yet, or a folder that Spark deletes now
        return 0


def _wait_for_tables(process: subprocess.Popen[Any], out: StoragePlace, *, more_than: int) -> None:
    """Wait until a pipeline has written more than `more_than` tables, or ends."""
    deadline_s = time.monotonic() + _WAIT_S
    while process.poll() is None and _written(out) <= more_than:
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"no more than {more_than} tables after {_WAIT_S} s")
        time.sleep(_POLL_S)


def _kill(process: subprocess.Popen[Any], *, with_java: bool) -> None:
    children = psutil.Process(process.pid).children(recursive=True) if with_java else []
    process.kill()
    for child in children:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()
    process.wait()


def _tables(spark: SparkSession, runs: Sequence[Run], held: Storage, out: str) -> Pipeline:
    return Pipeline(spark, runs, place(f"{held.uri}/{out}", spark), in_memory=False)


def _complete(tables: Pipeline) -> int:
    return sum(not tables.folders.missing(name) for name in _STORED)


def _unequal(folders: Sequence[Pipeline]) -> list[str]:
    """Return the tables whose rows differ between the folders."""
    assert all(_complete(tables) == len(_STORED) for tables in folders)
    bad = []
    for name in _COMPARED:
        rows = [
            tables.read(name).selectExpr("*", f"'{at}' AS folder")
            for at, tables in enumerate(folders)
        ]
        digest_of_folder = digests(functools.reduce(DataFrame.unionAll, rows), by="folder")
        if any(
            digest_of_folder.get(str(at)) != digest_of_folder.get("0") for at in range(len(folders))
        ):
            bad.append(name)
    return bad


def cluster(options: argparse.Namespace, folder: Path) -> bool:
    """Compare the tables that two workers build with the tables that one process builds."""
    with (
        storage(options.on, folder) as held,
        standalone_spark(folder, workers=2) as master,
    ):
        spark = open_session("local[2]", small=True, memory="1g", settings=held.settings)
        evidence = _evidence(options.events, folder, held, spark)
        runs = find_runs(evidence)
        _end(_command(held, evidence, "here", "--master", "local[2]"), "one process")
        process = _command(held, evidence, "there", "--master", master, "--memory", "900m")
        _end(process, "two workers")
        executors = len(list(folder.glob("work-*/app-*/*/stderr")))
        here, there = (_tables(spark, runs, held, out) for out in ("here", "there"))
        bad = _unequal([here, there])
        same = here.verdicts() == there.verdicts()
    equal = len(_COMPARED) - len(bad)
    print(f"{options.on}: {executors} executors; {equal} of {len(_COMPARED)} tables equal", *bad)
    return same and not bad and executors == 2


def _evidence(events: int, folder: Path, held: Storage, spark: SparkSession) -> StoragePlace:
    """Generate a history, upload it to the proof's file system, and delete the local copy."""
    generate(folder / "generated", events, plant=1)
    there = held.upload(folder / "generated", "evidence", spark)
    shutil.rmtree(folder / "generated")
    return there


def _end(process: subprocess.Popen[Any], name: str) -> None:
    began = time.monotonic()
    code = process.wait(_WAIT_S)
    print(f"{name}: exit code {code} after {time.monotonic() - began:.0f} s", flush=True)


def _command(
    held: Storage, evidence: StoragePlace, out: str, *options: str
) -> subprocess.Popen[Any]:
    places = ["--evidence", evidence.uri, "--out", f"{held.uri}/{out}"]
    settings = [f"--conf={name}={value}" for name, value in held.settings.items()]
    return subprocess.Popen(
        [sys.executable, "-m", "pipeline", "run", *places, "--tables", *settings, *options],
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
    both.add_argument("--out", type=Path, help="folder; it keeps the tables that it has")
    both.set_defaults(prove=judges)
    disturbed = commands.add_parser("kills")
    disturbed.add_argument("--events", type=int, default=5_000)
    disturbed.add_argument("--on", choices=KINDS, default="file", help="the file system")
    disturbed.add_argument("--kills", type=int, default=20)
    disturbed.add_argument("--seed", type=int, default=1, help="seed of the random kills")
    disturbed.set_defaults(prove=kills)
    elsewhere = commands.add_parser("cluster")
    elsewhere.add_argument("--events", type=int, default=200_000)
    elsewhere.add_argument("--on", choices=KINDS, default="file", help="the file system")
    elsewhere.set_defaults(prove=cluster)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="bridgehead-proof-") as folder:
        holds: bool = options.prove(options, Path(folder))
    print("proved" if holds else "NOT proved")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
