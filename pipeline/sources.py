"""The inputs of the tables: the raw lines, and runs, files and gaps according to the manifests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from event_log.evidence import FINAL_DUMP
from judge.evidence.gaps import manifest_gaps
from pipeline.bronze.lines import files_frame, raw_lines
from pipeline.evidence import Run
from pipeline.frames import local_frame

SOURCES: Final = ("raw", "files", "runs", "manifest_gaps")
_RUNS: Final = (
    "run STRING, first_zxid BIGINT, final_zxid BIGINT, logs BOOLEAN, scenario STRING, "
    "super_users ARRAY<STRING>, allow_if_no_acl BOOLEAN, operations_min BIGINT, "
    "started_ms BIGINT, sealed_ms BIGINT, request_timeout_ms BIGINT"
)


def source_frames(spark: SparkSession, runs: Sequence[Run], *, few: bool) -> dict[str, DataFrame]:
    """Return the frames that tables of these runs are built from; `few`: they have few lines."""
    return {
        "raw": raw_lines(spark, runs, few=few),
        "files": files_frame(spark, runs),
        "runs": local_frame(spark, [_row(run) for run in runs], _RUNS),
        "manifest_gaps": local_frame(
            spark,
            [
                (run.id, *gap, at)
                for run in runs
                for at, gap in enumerate(manifest_gaps(run.manifest, run.missing))
            ],
            "run STRING, witness STRING, sentence STRING, position BIGINT",
        ),
    }


def _row(run: Run) -> tuple[object, ...]:
    recorded, zookeeper = run.manifest.run, run.manifest.zookeeper
    # Null if there is no final dump: D1 then compares no znodes with a dump.
    final_zxid = (
        zookeeper.final_zxid if any(f.path == FINAL_DUMP for f in run.files("dump")) else None
    )
    return (
        run.id,
        zookeeper.first_zxid,
        final_zxid,
        zookeeper.logs,
        recorded.scenario,
        recorded.super_users,
        recorded.allow_if_no_acl,
        recorded.operations_min,
        recorded.started_ms,
        run.manifest.sealed_ms,
        recorded.request_timeout_ms,
    )
