"""The pipeline on a standalone master with two workers, out of PySpark's wheel.

`make prove-pipeline ARGS=cluster` does the same with every table and many events.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from bench.standalone_spark import standalone_spark
from pipeline.evidence import find_runs
from pipeline.folders import digests
from pipeline.gold.requests import FORWARDS
from pipeline.run import TABLES, Pipeline
from pipeline.session import open_session
from tests.integration.pipeline_runs import expand_all

pytestmark = pytest.mark.timeout(600)

MADE: Final = TABLES[: TABLES.index(FORWARDS) + 1]
# Where a line was read depends on how its file was cut; what it says does not.
COMPARED: Final = [table.name for table in MADE if not table.name.startswith("bronze/")]


def made_by(master: str, evidence: Path, out: Path) -> dict[str, dict[str, tuple[int, str]]]:
    session = open_session(master, small=True, memory="512m")
    try:
        pipeline = Pipeline(session, find_runs(evidence), out)
        assert pipeline.make(MADE) == [table.name for table in MADE]
        return {name: digests(pipeline.read(name)) for name in COMPARED}
    finally:
        session.stop()


def test_a_cluster_of_workers_gives_the_rows_that_one_process_gives(tmp_path: Path) -> None:
    """Our code is sent to processes that are not the driver's."""
    evidence = expand_all(["a_zombie_that_writes", "a_line_that_came_twice"], tmp_path / "runs")
    with standalone_spark(tmp_path, workers=2) as master:
        by_workers = made_by(master, evidence, tmp_path / "there")
    assert len(list(tmp_path.glob("work-*/app-*/*/stderr"))) == 2, "an executor on each worker"
    assert by_workers == made_by("local[2]", evidence, tmp_path / "here")
