"""What the profile of the pipeline takes from Spark's event log."""

from __future__ import annotations

import json

from bench.pipeline_profile import Cost, read_event_log, table

JOB = {
    "Event": "SparkListenerJobStart",
    "Job ID": 7,
    "Submission Time": 1_000,
    "Stage IDs": [3, 4],
    "Properties": {"spark.jobGroup.id": "gold/told"},
}
TASK = {
    "Event": "SparkListenerTaskEnd",
    "Stage ID": 4,
    "Task Metrics": {
        "Executor Run Time": 250,
        "Disk Bytes Spilled": 5,
        "Input Metrics": {"Bytes Read": 100, "Records Read": 10},
        "Output Metrics": {"Bytes Written": 40, "Records Written": 4},
        "Shuffle Write Metrics": {"Shuffle Bytes Written": 30},
    },
}
END = {"Event": "SparkListenerJobEnd", "Job ID": 7, "Completion Time": 1_500}


def test_tasks_are_counted_for_the_table_of_their_job() -> None:
    costs = read_event_log(map(json.dumps, (JOB, TASK, TASK, END)))
    assert costs == {
        "gold/told": Cost(
            jobs=1,
            running_s=0.5,
            tasks=2,
            task_s=0.5,
            rows_in=20,
            bytes_in=200,
            rows_out=8,
            bytes_out=80,
            shuffled=60,
            spilled=10,
        )
    }


def test_cheap_tables_share_a_row_and_the_last_row_is_the_sum() -> None:
    costs = {"a": Cost(wall_s=50, running_s=20, jobs=3), "b": Cost(wall_s=0.1), "c": Cost(jobs=1)}
    rows = list(table(costs))[2:]
    assert [row.split(" | ")[0] for row in rows] == ["| a", "| 2 others", "| **all**"]
    assert rows[0].startswith("| a | 50.00 | 30.00 | 0.00 | 3 |")
    assert rows[-1].startswith("| **all** | 50.10 | 30.10 | 0.00 | 4 |")
