"""The pipeline runs on a standalone master with two workers from PySpark's wheel.

Evidence and tables are on a shared disk or in an HDFS. `make prove-pipeline ARGS=cluster` does
the same with every table and many events; `ARGS="cluster --on s3"` does it in S3. S3 is not
tested here: a test process starts one JVM for all its Spark tests, and this JVM may have started
without the classes for S3.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from bench.standalone_spark import standalone_spark
from bench.storage import Storage, is_fetched, storage
from pipeline.evidence import find_runs
from pipeline.folders import digests
from pipeline.gold.forwards import FORWARDS
from pipeline.places import place
from pipeline.run import TABLES, Pipeline
from pipeline.session import open_session
from tests.integration.pipeline_runs import expand_all

pytestmark = [pytest.mark.timeout(600), pytest.mark.long, pytest.mark.soak]

BUILT: Final = TABLES[: TABLES.index(FORWARDS) + 1]


def digests_on(
    master: str, evidence: Path, held: Storage, out: str
) -> dict[str, dict[str, tuple[int, str]]]:
    session = open_session(master, small=True, memory="512m", settings=held.settings)
    try:
        uploaded = held.upload(evidence, f"{out}-evidence", session)
        pipeline = Pipeline(session, find_runs(uploaded), place(f"{held.uri}/{out}", session))
        assert pipeline.make(BUILT) == [table.name for table in BUILT if table.is_stored]
        return {table.name: digests(pipeline.read(table.name)) for table in BUILT}
    finally:
        session.stop()


@pytest.mark.parametrize("kind", ["file", "hdfs"])
def test_workers_build_the_same_rows_as_one_process(kind: str, tmp_path: Path) -> None:
    """The workers have no code of ours: the tables are SQL, which Spark runs in Java."""
    if not is_fetched(kind):
        pytest.skip("the storage's server is not installed: `make storage-jars` fetches it")
    evidence = expand_all(["zombie_write", "line_duplicated"], tmp_path / "runs")
    with storage(kind, tmp_path) as held, standalone_spark(tmp_path, workers=2) as master:
        by_workers = digests_on(master, evidence, held, "there")
        assert len(list(tmp_path.glob("work-*/app-*/*/stderr"))) == 2, "a worker has no executor"
        here = Storage(f"file://{tmp_path}", {})
        assert by_workers == digests_on("local[2]", evidence, here, "here")
