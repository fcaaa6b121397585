"""The pipeline on a real Spark: equal verdicts with the plain judge, and nothing lost on the way.

One session and one run of the pipeline over all golden histories serve every test here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import SparkSession

from event_log.promises import VerdictRow
from pipeline.evidence import find_runs
from pipeline.run import Pipeline
from pipeline.session import open_session
from pipeline.verdicts import worst
from tests import golden_histories
from tests.integration.pipeline_runs import accepted, expand_all


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """Small data: what compiles code or plans again while it runs costs more than it gives."""
    session = open_session(
        "local[2]",
        shuffle_partitions=2,
        memory="2g",
        settings={
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            "spark.sql.adaptive.enabled": "false",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        },
    )
    yield session
    session.stop()


@dataclass(frozen=True)
class Judged:
    """The golden histories, judged together."""

    pipeline: Pipeline
    verdicts: dict[str, list[VerdictRow]]
    keys: dict[tuple[str, str], list[str]]  # of violations, by run and property
    quarantined: dict[str, list[list[Any]]]


@pytest.fixture(scope="module")
def judged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """All golden histories in one run of the pipeline."""
    folder = tmp_path_factory.mktemp("golden")
    runs = find_runs(expand_all(accepted(), folder / "evidence"))
    pipeline = Pipeline(spark, runs, folder / "out")
    pipeline.make()
    keys: dict[tuple[str, str], list[str]] = {}
    for row in pipeline.read("gold/violations").collect():
        keys.setdefault((row["run"], row["property"]), []).append(row["key"])
    quarantined: dict[str, list[list[Any]]] = {}
    aside = pipeline.read("silver/set_aside").filter("fate = 'quarantined'")
    for row in aside.orderBy("run", "file", "line_number").collect():
        line = [row["file"], row["line_number"], sorted(row["reasons"])]
        quarantined.setdefault(row["run"], []).append(line)
    return Judged(pipeline, pipeline.verdicts(), keys, quarantined)


@pytest.mark.parametrize("name", accepted())
def test_a_golden_history_gets_the_verdicts_that_the_plain_judge_gives(
    judged: Judged, name: str
) -> None:
    """Verdict, rows judged and the key of every violation, of every property."""
    golden = golden_histories.load(name)
    given: dict[str, Any] = {"run": worst(judged.verdicts[name])}
    for row in judged.verdicts[name]:
        keys = sorted(judged.keys.get((name, row.property), []))
        of = [row.verdict, row.judged]
        given[row.property] = [*of, keys] if keys else of
    assert given == golden["expect"]
    expected = [[path, at, sorted(reasons)] for path, at, reasons in golden.get("quarantine", [])]
    assert judged.quarantined.get(name, []) == expected
