"""The pipeline on Spark returns the verdicts of the judge without Spark, and loses no line.

One Spark session and two executions of the pipeline serve most tests. The evidence of the first one
is the golden histories that the judges accept, a generated history with every kind of violation,
log files as a real Kafka writes them, and a run without a manifest. Its tables stay in memory,
because one file for each table and run takes minutes to write. The second one stores the tables of
four of these runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from bench.generated_evidence.__main__ import PLANTED, generate
from event_log.clock import ManualClock
from event_log.events import EVENT_KINDS
from event_log.evidence import MANIFEST, RUN, RunDescription
from event_log.writer import FileEventLog
from judge import seals
from judge.evidence.kafka_logs import RUN_ID, gather_kafka
from judge.properties import PROPERTY_SPECS
from judge.property import Violation
from judge.verdicts import Verdict, VerdictRow
from pipeline.bronze.lines import COUNTS, LINES
from pipeline.evidence import PipelineEvidenceError, Run, find_runs
from pipeline.folders import MADE, digests
from pipeline.frames import Frames, local_frame
from pipeline.gold.effects import EFFECTS
from pipeline.run import TABLES, Pipeline, needed
from pipeline.session import RAW_FILES, open_session
from pipeline.silver.boots import BOOTS
from pipeline.silver.events import EXAMINED, OF_KINDS, SUPERFLUOUS
from pipeline.table import Table, TableError
from tests import golden_histories
from tests.integration.kafka_log_samples import write_logs
from tests.integration.pipeline_runs import accepted, expand_all

# The time limit is long because the first test executes the pipeline for all tests.
pytestmark = [pytest.mark.timeout(1200), pytest.mark.long]

GENERATED = "generated"
UNSEALED = "unsealed"
FEW = ("zombie_write", "line_duplicated", "unauthorized_write", GENERATED)
PIPELINES = 4  # Each builds some of the tables.
VERBATIM = Table(
    name="bronze/verbatim",
    inputs=("raw",),
    schema="run STRING, file STRING, line_number BIGINT, source STRING, line STRING",
    build=lambda frames: frames["raw"],
)


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """One Spark session for all tests."""
    session = open_session("local[2]", small=True, memory="2g", settings=RAW_FILES)
    yield session
    session.stop()


@contextmanager
def as_for_large_evidence(spark: SparkSession) -> Iterator[None]:
    """Let Spark plan with several partitions, broadcasts and small blocks."""
    settings = {
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.autoBroadcastJoinThreshold": "10485760",
        "spark.sql.optimizer.disableHints": "false",
        "spark.sql.files.maxPartitionBytes": "3000",
        "spark.sql.files.openCostInBytes": "1",
    }
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, earlier in before.items():
            spark.conf.set(name, str(earlier))


@dataclass(frozen=True)
class Judged:
    """The results of all runs."""

    folder: Path
    pipeline: Pipeline
    verdicts: dict[str, list[VerdictRow]]
    violations: dict[str, list[Violation]]  # by run
    quarantined: dict[str, list[list[Any]]]


@pytest.fixture(scope="module")
def judged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """Judge all runs with one pipeline."""
    folder = tmp_path_factory.mktemp("pipeline")
    generate(folder / "evidence", 5_000, plant=1)
    (folder / "evidence" / PLANTED).rename(folder / PLANTED)
    logs = write_logs(folder / "kafka")
    brokers = [str(logs / "broker-1"), str(logs / "broker-2")]
    gather_kafka(folder / "evidence", brokers, [])
    runs = find_runs(expand_all(accepted(), folder / "evidence"))
    pipeline = Pipeline(spark, [*runs, *_unsealed(folder)], folder / "out", stored=False)
    pipeline.make()
    violations: dict[str, list[Violation]] = {}
    for row in pipeline.read("gold/violations").collect():
        values = row.asDict()
        violations.setdefault(values.pop("run"), []).append(Violation(**values))
    quarantined: dict[str, list[list[Any]]] = {}
    aside = pipeline.read("silver/set_aside").filter("fate = 'quarantined'")
    for row in aside.orderBy("run", "file", "line_number").collect():
        line = [row["file"], row["line_number"], sorted(row["reasons"])]
        quarantined.setdefault(row["run"], []).append(line)
    return Judged(folder, pipeline, pipeline.verdicts(), violations, quarantined)


@pytest.fixture(scope="module")
def stored(spark: SparkSession, judged: Judged) -> Pipeline:
    """Store the tables of a few runs, and read them from the disk."""
    runs = [run for run in judged.pipeline.runs if run.id in FEW]
    Pipeline(spark, runs, judged.folder / "few").make()
    return Pipeline(spark, runs, judged.folder / "few", in_memory=False)


def _unsealed(folder: Path) -> list[Run]:
    """Write a correct run without a manifest; return it as the pipeline finds it."""
    run, copies = folder / f"run={UNSEALED}", folder / "copies"
    copies.mkdir()
    golden = {**golden_histories.load("forwarded_creation"), "zookeeper": None}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(golden_histories, "RUN_ID", UNSEALED)
        golden_histories.expand(golden, run)
    described = RunDescription(run_id=UNSEALED, expected=["F1", "K6"])
    (run / RUN).write_text(json.dumps(asdict(described)), encoding="utf-8")
    (run / MANIFEST).unlink()
    return find_runs(run, copies=copies)


@pytest.mark.parametrize("name", accepted())
def test_golden_history_gets_its_verdicts(judged: Judged, name: str) -> None:
    """The judge without Spark has the same verdicts, numbers of judged rows, keys and sentences."""
    golden = golden_histories.load(name)
    verdicts = golden_histories.verdicts(judged.verdicts[name], judged.violations.get(name, []))
    assert verdicts == golden_histories.pinned(golden)
    expected = [[path, at, sorted(reasons)] for path, at, reasons in golden.get("quarantine", [])]
    assert judged.quarantined.get(name, []) == expected


def test_unsealed_run_is_unknown(judged: Judged) -> None:
    rows = [row for row in judged.verdicts[UNSEALED] if row.decides]
    assert [(row.property, row.verdict, row.judged, row.why) for row in rows] == [
        ("F1", Verdict.UNKNOWN, 1, seals.UNSEALED),
        ("K6", Verdict.UNKNOWN, 2, seals.UNSEALED),
    ]


def test_only_planted_violations_are_found(judged: Judged) -> None:
    """Each planted violation is found with its rows, among thousands of correct events."""
    planted = json.loads((judged.folder / PLANTED).read_text(encoding="utf-8"))
    assert len(planted) > 20
    rows_by_key = {
        (violation.property, violation.key): violation.rows
        for violation in judged.violations[GENERATED]
    }
    assert set(rows_by_key) == {(of, key) for of, key, _ in planted}
    assert [(of, key) for of, key, row in planted if row not in rows_by_key[of, key]] == []


def test_every_line_is_accounted_for(judged: Judged) -> None:
    rows = judged.pipeline.read("gold/accounting").filter("is_there").collect()
    # The manifest of this golden history counts one line more than its file has.
    assert {row["run"] for row in rows if row["sealed"] != row["read"]} == {"line_count_mismatch"}
    assert [row["file"] for row in rows if row["read"] != row["accounted"]] == []


def _difficult(event: Any, text: str) -> Any:
    """Return an event of this kind with `text` in every string."""
    values = {
        "str": text,
        "str | None": text,
        "int": -7,
        "int | None": None,
        "bool": True,
        "float": 0.25,
        "Identity": (3, text, 7),
        "list[str]": [text, ""],
        "list[tuple[str, int]]": [(text, 36), ("", 0)],
        "dict[str, float]": {text: 1.5, "": 2},
    }
    return event(*(values[str(field.type)] for field in fields(event)))


@pytest.mark.parametrize("text", ['a"b\\c', "\\n\n\\\t\r\b\f/", "null", "", "ä€𝄞 \x7f"])
def test_split_line_gives_the_same_event_as_an_examined_line(
    spark: SparkSession, tmp_path: Path, text: str
) -> None:
    """Each kind once, with texts that JSON escapes, or that look like other values."""
    log = FileEventLog(
        tmp_path, run_id="r", node=text or "1", boot="b", host_boot_id=text, clock=ManualClock()
    )
    for event in EVENT_KINDS.values():
        log.append(_difficult(event, text))
    log.close()
    (path,) = tmp_path.glob("*.jsonl")
    written = path.read_text(encoding="utf-8").splitlines()
    rows = [("r", "f", at, "node", line) for at, line in enumerate(written, 1)]
    raw = local_frame(spark, rows, VERBATIM.schema)
    lines = LINES.make({"raw": raw}).localCheckpoint()
    assert lines.filter("kind IS NULL").count() == 0
    unsplit = lines.selectExpr("*").filter("false")
    nothing = {
        "silver/examined": local_frame(spark, [], EXAMINED.schema),
        "silver/superfluous": local_frame(spark, [], SUPERFLUOUS.schema),
    }
    split = {"bronze/lines": lines, "bronze/counts": COUNTS.make({"bronze/lines": lines})}
    examined = EXAMINED.make(
        {"bronze/lines": raw.selectExpr("*", "CAST(NULL AS STRING) AS kind")}
    ).localCheckpoint()
    assert examined.filter("size(broken) > 0").count() == 0
    checked = {"bronze/lines": unsplit, "bronze/counts": COUNTS.make({"bronze/lines": unsplit})}
    for table in OF_KINDS:
        (ours,) = table.make({**nothing, **split}).collect()
        (theirs,) = table.make({**nothing, **checked, "silver/examined": examined}).collect()
        assert ours == theirs


def test_unknown_fields_are_kept_separately(judged: Judged) -> None:
    name = "line_unknown_field"
    kept = judged.pipeline.read("silver/examined").filter(f"run = '{name}' AND ext IS NOT NULL")
    (row,) = kept.collect()
    assert list(row["ext"])


def test_existing_tables_are_not_built_again(stored: Pipeline) -> None:
    assert stored.make() == []


def test_stored_rows_equal_the_rows_in_memory(judged: Judged, stored: Pipeline) -> None:
    for table in TABLES:
        whole = judged.pipeline.read(table.name).filter(f"run IN {FEW}")
        assert digests(stored.read(table.name)) == digests(whole), table.name


@pytest.mark.parametrize(
    "tables", [TABLES[:30], pytest.param(TABLES, marks=pytest.mark.soak)], ids=["some", "all"]
)
def test_rows_do_not_depend_on_partitions_blocks_or_kills(
    spark: SparkSession, judged: Judged, tmp_path: Path, tables: Sequence[Table]
) -> None:
    """Each of several pipelines builds a few tables and ends, as if it were killed.

    These pipelines read the files in smaller blocks. Their output folder already has the remains of
    interrupted tables.
    """
    names = FEW[:3]
    runs = [run for run in reversed(judged.pipeline.runs) if run.id in names]
    with as_for_large_evidence(spark):
        for at in range(0, len(tables), len(tables) // PIPELINES):
            todo = tables[at : at + len(tables) // PIPELINES]
            for table in todo:
                junk = tmp_path / "out" / table.name / "made=interrupted" / "run=zombie_write"
                junk.mkdir(parents=True)
                (junk / "part-0.parquet").write_bytes(b"half a fi")
            pieces = Pipeline(spark, runs, tmp_path / "out", in_memory=False)
            assert pieces.make([*tables[:at], *todo]) == [
                built.name for built in todo if built.is_stored
            ]
        for table in tables:
            ours = digests(pieces.read(table.name))
            whole = digests(judged.pipeline.read(table.name).filter(f"run IN {names}"))
            assert ours == whole, table.name
        text = spark.read.text([(run.folder / "node=1").uri for run in runs])
        blocks = text.select("_metadata.file_path", "_metadata.file_block_start").distinct()
        counted = blocks.groupBy("file_path").count()
        assert counted.filter("count > 1").count() > 0, "no file was cut into blocks"


def test_a_table_without_made_json_is_built_again(judged: Judged, tmp_path: Path) -> None:
    runs = judged.pipeline.runs[:1]
    pipeline = Pipeline(judged.pipeline._spark, runs, tmp_path)
    first = TABLES[0]
    assert pipeline.make([first]) == [first.name]
    (tmp_path / first.name / MADE).unlink()
    assert Pipeline(judged.pipeline._spark, runs, tmp_path).make([first]) == [first.name]


def test_tables_are_not_stored_unless_requested(stored: Pipeline, tmp_path: Path) -> None:
    """The rows of small evidence stay in memory. They equal the rows of a stored table."""
    runs = stored.runs[:1]
    pipeline = Pipeline(stored._spark, runs, tmp_path, stored=False)
    names = ("silver/events", "silver/responded")
    with pytest.raises(LookupError, match="was not built for run"):
        pipeline.read("bronze/lines")
    pipeline.make(needed(names))
    assert list(tmp_path.iterdir()) == []
    for name in names:
        there = stored.read(name).filter(f"run = '{runs[0].id}'")
        assert digests(pipeline.read(name)) == digests(there)


def _without_rows(frames: Frames) -> DataFrame:
    return frames["raw"].filter("line IS NULL")


def test_one_run_is_written_like_several(
    spark: SparkSession, judged: Judged, tmp_path: Path
) -> None:
    """The rows of one run are written without `partitionBy`. A table may have no rows."""
    (run,) = (run for run in judged.pipeline.runs if run.id == "line_duplicated")
    with as_for_large_evidence(spark):
        pipeline = Pipeline(spark, [run], tmp_path, in_memory=False)
        tables = needed([BOOTS.name])
        pipeline.make(tables)
        for table in tables:
            whole = judged.pipeline.read(table.name).filter(f"run = '{run.id}'")
            assert digests(pipeline.read(table.name)) == digests(whole), table.name
        empty = replace(VERBATIM, name="bronze/empty", build=_without_rows)
        pipeline.make([empty])
    record = json.loads((tmp_path / empty.name / MADE).read_bytes())
    assert record[run.id]["folder"] is None


def test_request_in_several_transactions_has_one_effect(spark: SparkSession) -> None:
    """No request was answered.

    ZooKeeper's log has each element of the request `split` once. It has the element of the request
    `twice` in two transactions.
    """
    requests = "run STRING, request_id STRING, received STRUCT<route: STRING>"
    outcomes = "run STRING, request_id STRING, element STRING, error BIGINT, zxid BIGINT"
    decided = "run STRING, error BIGINT, validate_only BOOLEAN, unchanged BOOLEAN"
    route = {"route": "FORWARD"}
    names = ("split", "twice", "lost", "refused")
    done = [("split", "t", 0, 5), ("split", "u", 0, 6), ("twice", "t", 0, 7), ("twice", "t", 0, 8)]
    frames = {
        "gold/decisions": local_frame(spark, [], f"{decided}, done ARRAY<BIGINT>"),
        "gold/requests": local_frame(
            spark,
            [("r", name, route, None) for name in names],
            f"{requests}, responded STRUCT<closed: BOOLEAN>",
        ),
        "silver/outcomes": local_frame(
            spark, [("r", *row) for row in [*done, ("refused", "t", 36, 9)]], outcomes
        ),
    }
    rows = EFFECTS.build(frames).collect()
    assert sorted(map(tuple, rows)) == [
        ("r", "info", "none", 2),
        ("r", "info", "once", 1),
        ("r", "info", "twice", 1),
    ]


def test_frame_of_constants_is_part_of_the_plan(spark: SparkSession) -> None:
    rows = [("a", 1), ("b", None)]
    for frame, expected in (
        (local_frame(spark, rows, "run STRING, seq BIGINT"), rows),
        (local_frame(spark, [], "run STRING, seq BIGINT"), []),
    ):
        assert list(map(tuple, frame.collect())) == expected
        assert "LocalTableScan" in frame._jdf.queryExecution().executedPlan().toString()


def test_row_that_violates_an_expectation_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    """The check runs while the table is written. The table is not published."""
    runs = find_runs(expand_all(["zombie_write"], tmp_path / "e"))
    broken = replace(VERBATIM, name="bronze/broken", expectations={"a line is short": "line = ''"})
    for in_memory in (True, False):
        pipeline = Pipeline(spark, runs, tmp_path / "o", in_memory=in_memory)
        with pytest.raises(TableError, match=r"[1-9] rows violate 'a line is short'"):
            pipeline.make([broken])
        assert pipeline.folders.missing(broken.name) == [runs[0].id]


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("run", ["'another'", "CAST(NULL AS STRING)"])
def test_row_of_another_run_is_an_error(
    spark: SparkSession, tmp_path: Path, run: str, in_memory: bool
) -> None:
    """A single run's folder has no column `run`, so the row would be read as a row of this run."""
    runs = find_runs(expand_all(["zombie_write"], tmp_path / "e"))

    def build(frames: Frames) -> DataFrame:
        return frames["raw"].drop("run").selectExpr(f"{run} AS run", "*")

    broken = replace(VERBATIM, name="bronze/broken", build=build)
    pipeline = Pipeline(spark, runs, tmp_path / "o", in_memory=in_memory)
    with pytest.raises(TableError, match=r"[1-9] rows violate 'a row belongs to a run'"):
        pipeline.make([broken])
    assert pipeline.folders.missing(broken.name) == [runs[0].id]


def test_only_a_boot_without_a_stopped_event_was_killed(spark: SparkSession) -> None:
    """The harness writes the same event, `node_ended`, for stopped and for killed processes."""
    boot = "run STRING, node STRING, boot STRING, seq BIGINT"
    events = [
        ("h", "1", "stops", 0, "node", 0, 0, "stopped"),
        ("h", "2", "dies", 0, "node", 0, 0, "started"),
        ("h", "3", "unknown", 0, "node", 0, 0, "started"),
        *(("h", "harness", "x", at, "harness", 0, 0, "node_ended") for at in (0, 1)),
    ]
    ended = [("h", "harness", "x", 0, "1", "stops"), ("h", "harness", "x", 1, "2", "dies")]
    common = f"{boot}, source STRING, mono_ns BIGINT, wall_ms BIGINT, kind STRING"
    frames = {
        "silver/events": local_frame(spark, events, common),
        "silver/started": local_frame(spark, [], f"{boot}, version STRING"),
        "silver/node_ended": local_frame(
            spark, ended, f"{boot}, ended_node STRING, ended_boot STRING"
        ),
    }
    boots = BOOTS.build(frames).collect()
    killed = {row["boot"]: row["killed"] for row in boots}
    assert killed == {"stops": False, "dies": True, "unknown": False, "x": False}


def test_run_with_a_line_of_another_run_is_rejected(spark: SparkSession, tmp_path: Path) -> None:
    name = "line_of_another_run"
    pipeline = Pipeline(spark, find_runs(expand_all([name], tmp_path / "e")), tmp_path / "o")
    with pytest.raises(PipelineEvidenceError) as rejected:
        pipeline.make()
    assert golden_histories.load(name)["expect"]["rejected"] in str(rejected.value)


@pytest.mark.soak
def test_no_query_plan_has_a_single_partition_or_a_nested_loop(
    spark: SparkSession, stored: Pipeline
) -> None:
    """With such a plan a query is correct on small data, but does not end on large data."""
    for table in TABLES:
        with as_for_large_evidence(spark):
            frame = table.build(stored._inputs(table, sorted(FEW)))
            plan = frame._jdf.queryExecution().executedPlan().toString()
        for bad in ("BroadcastNestedLoopJoin", "CartesianProduct", "Exchange SinglePartition"):
            assert bad not in plan, f"{table.name}: {bad}\n{plan[:2000]}"
        assert "PythonUDF" not in plan
        assert "BatchEvalPython" not in plan


def test_report_is_self_contained(judged: Judged, tmp_path: Path) -> None:
    """The page uses no script and no network. It has all verdicts and the places of violations."""
    judged.pipeline.write_results(judged.verdicts)
    out = judged.folder / "out"
    page = (out / "report" / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<script|https?://|url\(|@import|<link", page)
    assert len(page.encode()) < 5_000_000
    assert "prefers-color-scheme: dark" in page
    for _, row in zip(range(30), judged.verdicts[GENERATED], strict=False):
        assert row.name.replace("_", " ") in page
    assert "events-2b0000000001-0000.jsonl:" in page
    assert "<h2>Forwarded requests by broker</h2>" in page
    assert "<h2>Denials by principal</h2>" in page
    documents = json.loads((out / "verdicts.json").read_text(encoding="utf-8"))
    assert {document["run"] for document in documents} == {*accepted(), GENERATED, RUN_ID, UNSEALED}
    junit = (out / "junit.xml").read_text(encoding="utf-8")
    assert junit.count("<testcase ") == len(PROPERTY_SPECS) * len(documents)


def test_forwarded_and_denied_requests_in_logs_of_kafka_are_counted(judged: Judged) -> None:
    """The pipeline sets aside lines that do not belong to the log. Property K6 passes."""
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
