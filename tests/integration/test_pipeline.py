"""The pipeline on a real Spark: equal verdicts with the plain judge, and nothing lost on the way.

One session and one run of the pipeline serve every test here: all golden histories, and a generated
one in which every kind of breach is planted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from chaos.evidence.kafka_logs import RUN_ID, gather_kafka
from event_log.promises import PROMISES, VerdictRow
from pipeline.evidence import EvidenceError, find_runs
from pipeline.folders import MADE, digests
from pipeline.generated.__main__ import PLANTED, generate
from pipeline.run import TABLES, Pipeline
from pipeline.session import open_session
from pipeline.verdicts import worst
from tests import golden_histories
from tests.integration.kafka_log_samples import write_logs
from tests.integration.pipeline_runs import accepted, expand_all

# The first test does the work of all.
pytestmark = pytest.mark.timeout(1200)

GENERATED = "generated"
# Where a line was read depends on how its file was cut; what it says does not.
COMPARED = [table for table in TABLES if not table.name.startswith("bronze/")]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """One for all tests."""
    session = open_session("local[2]", small=True, memory="2g")
    yield session
    session.stop()


@dataclass(frozen=True)
class Judged:
    """All runs, judged together."""

    folder: Path
    pipeline: Pipeline
    verdicts: dict[str, list[VerdictRow]]
    # Of each run and property: every violation's key and rows.
    breaches: dict[tuple[str, str], list[tuple[str, list[str]]]]
    quarantined: dict[str, list[list[Any]]]


@pytest.fixture(scope="module")
def judged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """Everything in one run of the pipeline."""
    folder = tmp_path_factory.mktemp("pipeline")
    generate(folder / "evidence", 5_000, plant=1)
    (folder / "evidence" / PLANTED).rename(folder / PLANTED)
    logs = write_logs(folder / "kafka")
    brokers = [str(logs / "broker-1"), str(logs / "broker-2")]
    gather_kafka(folder / "evidence", brokers, [])
    pipeline = Pipeline(
        spark, find_runs(expand_all(accepted(), folder / "evidence")), folder / "out"
    )
    pipeline.make()
    breaches: dict[tuple[str, str], list[tuple[str, list[str]]]] = {}
    for row in pipeline.read("gold/violations").collect():
        found = breaches.setdefault((row["run"], row["property"]), [])
        found.append((row["key"], row["rows"]))
    quarantined: dict[str, list[list[Any]]] = {}
    aside = pipeline.read("silver/set_aside").filter("fate = 'quarantined'")
    for row in aside.orderBy("run", "file", "line_number").collect():
        line = [row["file"], row["line_number"], sorted(row["reasons"])]
        quarantined.setdefault(row["run"], []).append(line)
    return Judged(folder, pipeline, pipeline.verdicts(), breaches, quarantined)


@pytest.mark.parametrize("name", accepted())
def test_a_golden_history_gets_the_verdicts_that_the_plain_judge_gives(
    judged: Judged, name: str
) -> None:
    """Verdict, rows judged and the key of every violation, of every property."""
    golden = golden_histories.load(name)
    given: dict[str, Any] = {"run": worst(judged.verdicts[name])}
    for row in judged.verdicts[name]:
        keys = sorted(key for key, _ in judged.breaches.get((name, row.property), []))
        of = [row.verdict, row.judged]
        given[row.property] = [*of, keys] if keys else of
    assert given == golden["expect"]
    expected = [[path, at, sorted(reasons)] for path, at, reasons in golden.get("quarantine", [])]
    assert judged.quarantined.get(name, []) == expected


def test_everything_that_was_planted_is_found_and_nothing_else(judged: Judged) -> None:
    """With its rows, in a history whose other thousands of events are as they should be."""
    planted = json.loads((judged.folder / PLANTED).read_text(encoding="utf-8"))
    assert len(planted) > 20
    found = {
        (of, key): rows
        for (run, of), breaches in judged.breaches.items()
        if run == GENERATED
        for key, rows in breaches
    }
    assert set(found) == {(of, key) for of, key, _ in planted}
    assert [(of, key) for of, key, row in planted if row not in found[of, key]] == []


def test_every_line_is_accounted_for(judged: Judged) -> None:
    """What was sealed is what was read, and each line became something."""
    rows = judged.pipeline.read("gold/accounting").filter("is_there").collect()
    # One golden history has a manifest that counts a line too many: K6's own.
    assert {row["run"] for row in rows if row["sealed"] != row["read"]} == {"a_line_that_vanished"}
    assert [row["file"] for row in rows if row["read"] != row["accounted"]] == []


def test_an_unknown_field_is_kept_aside(judged: Judged) -> None:
    """It is another version's, and somebody may want it."""
    name = "a_field_of_a_later_version"
    kept = judged.pipeline.read("silver/events").filter(f"run = '{name}' AND ext IS NOT NULL")
    (row,) = kept.collect()
    assert list(row["ext"])


def test_what_is_made_is_not_made_again(judged: Judged) -> None:
    """Another run of the pipeline finds everything there."""
    again = Pipeline(judged.pipeline._spark, judged.pipeline.runs, judged.folder / "out")
    assert again.make() == []


def test_other_partitions_blocks_and_kills_give_the_same_rows(
    spark: SparkSession, judged: Judged, tmp_path: Path
) -> None:
    """Each table is made by a pipeline of its own, as after a kill, and from smaller blocks.

    What a kill in the middle of a table leaves behind is lying about.
    """
    names = {"a_zombie_that_writes", "a_line_that_came_twice", "an_effect_that_nobody_had_allowed"}
    runs = [run for run in reversed(judged.pipeline.runs) if run.id in names]
    settings = {
        "spark.sql.shuffle.partitions": "5",
        "spark.sql.files.maxPartitionBytes": "1500",
        "spark.sql.files.openCostInBytes": "1",
    }
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        for at in range(len(TABLES)):
            junk = tmp_path / "out" / ".building" / TABLES[at].name / "run=x"
            junk.mkdir(parents=True)
            (junk / "part-0.parquet").write_bytes(b"half a fi")
            pieces = Pipeline(spark, runs, tmp_path / "out")
            assert pieces.make(TABLES[: at + 1]) == [TABLES[at].name]
        for table in COMPARED:
            ours = digests(pieces.read(table.name))
            whole = digests(judged.pipeline.read(table.name).filter(f"run IN {tuple(names)}"))
            assert ours == whole, table.name
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))
    blocks = pieces.read("bronze/blocks").groupBy("run", "file").count()
    assert blocks.filter("count > 1").count() > 0, "no file was cut into blocks"


def test_a_table_that_was_half_replaced_is_made_again(judged: Judged, tmp_path: Path) -> None:
    """A run's rows count only together with the word from what they were made."""
    runs = judged.pipeline.runs[:1]
    pipeline = Pipeline(judged.pipeline._spark, runs, tmp_path)
    first = TABLES[0]
    assert pipeline.make([first]) == [first.name]
    (tmp_path / first.name / f"run={runs[0].id}" / MADE).unlink()
    assert Pipeline(judged.pipeline._spark, runs, tmp_path).make([first]) == [first.name]


def test_a_line_of_another_run_refuses_the_run(spark: SparkSession, tmp_path: Path) -> None:
    """It was put there by mistake, or to deceive."""
    name = "a_line_of_another_run"
    pipeline = Pipeline(spark, find_runs(expand_all([name], tmp_path / "e")), tmp_path / "o")
    with pytest.raises(EvidenceError) as refused:
        pipeline.make()
    assert golden_histories.load(name)["expect"]["refused"] in str(refused.value)


def test_no_query_needs_one_task_for_everything_or_compares_each_with_each(
    judged: Judged,
) -> None:
    """Read from the plans: it would be right on small data, and never end on large."""
    ids = [run.id for run in judged.pipeline.runs]
    for table in TABLES:
        frame = table.build(judged.pipeline._inputs(table, ids))
        plan = frame._jdf.queryExecution().executedPlan().toString()
        for bad in ("BroadcastNestedLoopJoin", "CartesianProduct", "Exchange SinglePartition"):
            assert bad not in plan, f"{table.name}: {bad}\n{plan[:2000]}"
        assert "PythonUDF" not in plan
        assert "BatchEvalPython" not in plan


def test_the_report_needs_nothing_but_itself(judged: Judged, tmp_path: Path) -> None:
    """No script, no network; every verdict and every violation's first rows are in it."""
    judged.pipeline.write_results(judged.verdicts)
    out = judged.folder / "out"
    page = (out / "report" / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<script|https?://|url\(|@import|<link", page)
    assert len(page.encode()) < 5_000_000
    assert "prefers-color-scheme: dark" in page
    for _, row in zip(range(30), judged.verdicts[GENERATED], strict=False):
        assert row.name.replace("_", " ") in page
    assert "events-2b0000000001-0000.jsonl:" in page
    assert "<h2>Who writes through whom</h2>" in page
    assert "<h2>Denials by principal</h2>" in page
    documents = json.loads((out / "verdicts.json").read_text(encoding="utf-8"))
    assert {each["run"] for each in documents} == {*accepted(), GENERATED, RUN_ID}
    junit = (out / "junit.xml").read_text(encoding="utf-8")
    assert junit.count("<testcase ") == len(PROMISES) * len(documents)


def test_a_real_kafkas_logs_tell_who_forwards_and_who_is_denied(judged: Judged) -> None:
    """Counted as in the logs; what is no line of such a log is set aside, and K6 holds."""
    read = judged.pipeline.read
    forwarded = read("gold/kafka_forwarded").groupBy("broker", "api").sum("requests", "forwarded")
    assert sorted(map(tuple, forwarded.collect())) == [
        ("1", "CREATE_TOPICS", 3, 0),
        ("1", "METADATA", 1, 0),
        ("2", "CREATE_TOPICS", 3, 3),
        ("2", "METADATA", 1, 0),
    ]
    denials = read("gold/kafka_denials").select("principal", "operation", "resource").collect()
    assert sorted(map(tuple, denials)) == [
        ("User:bob", "create", "kafka-cluster"),
        ("User:bob", "create", "orders"),
    ]
    aside = read("silver/set_aside").filter(f"run = '{RUN_ID}'").select("line_number", "reasons")
    assert sorted(map(tuple, aside.collect())) == [
        (5, ["not_of_this_log"]),
        (6, ["not_of_this_log"]),
    ]
    verdicts = {row.property: row.verdict for row in judged.verdicts[RUN_ID]}
    assert verdicts.pop("K6") == "PASS"
    assert set(verdicts.values()) == {"NODATA"}
