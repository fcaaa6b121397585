"""Follows a run with Structured Streaming: one micro-batch for each call of `Stream.advance`.

    FOLDER/lines, offsets.json      the lines of the next batch (pipeline.watch.increments)
    FOLDER/checkpoint               written by Spark: which files of lines belong to which batch
    FOLDER/state/<batch>/requests   requests that are open, partly read, or ended in the last minute
    FOLDER/state/<batch>/summary.json

A batch reads the state of the batch before it and writes a new state. The summary is written last;
a state without a summary is ignored. After a kill, Spark repeats the last batch with the same
lines, and the new state replaces the state of the interrupted attempt. So every line counts once.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from pipeline.frames import local_frame
from pipeline.watch.increments import Increments
from pipeline.watch.summary import WINDOW_MS, Hop, Open, Summary, summary_from_json

# Only the fields that are needed are parsed.
_LINE: Final = (
    "kind STRING, mono_ns BIGINT, wall_ms BIGINT, node STRING, boot STRING, host_boot_id STRING, "
    "request_id STRING, connection STRING, route STRING, attempt BIGINT, epoch BIGINT, "
    "number BIGINT, ended_node STRING, ended_boot STRING"
)
_MOMENT: Final = "STRUCT<ns: BIGINT, node: STRING, host: STRING>"
_MOMENTS: Final = (
    *("received", "sent", "returned", "envelope", "started", "decided", "responded"),
    *("commit_sent", "commit_acknowledged"),
)
_REQUESTS: Final = (
    "id STRING, boot STRING, connection STRING, route STRING, received_ms BIGINT, last_ms BIGINT, "
    + ", ".join(f"{moment} {_MOMENT}" for moment in _MOMENTS)
)
_KIND_OF: Final = {
    "received": "request_received",
    "sent": "forward_sent",
    "returned": "forward_replied",
    "envelope": "envelope_received",
    "started": "execution_started",
    "decided": "request_decided",
    "responded": "responded",
    "commit_sent": "commit_sent",
    "commit_acknowledged": "commit_acknowledged",
}
_KINDS: Final = ", ".join(f"'{kind}'" for kind in _KIND_OF.values())

_COUNTS: Final = f"""
SELECT node, boot, wall_ms DIV {WINDOW_MS} * {WINDOW_MS} AS start_ms, count(*) AS lines,
  max(wall_ms) AS last_ms,
  count_if(kind IN ({_KINDS})) AS of_requests,
  count_if(kind = 'request_received') AS received,
  count_if(kind = 'responded') AS responded,
  count_if(kind = 'forward_sent') AS forwarded,
  count_if(kind = 'forward_sent' AND attempt > 1) AS resent,
  count_if(kind = 'commit_acknowledged') AS commits,
  bool_or(kind = 'stopped') AS stopped,
  max(struct(epoch, wall_ms)) FILTER (WHERE kind = 'became_active') AS active,
  coalesce(max(epoch) FILTER (WHERE kind = 'resigned'), -1) AS resigned_epoch,
  collect_set(struct(ended_node, ended_boot)) FILTER (WHERE kind = 'node_ended') AS ended
FROM {{events}} GROUP BY node, boot, start_ms
"""

# The parts of a request come in any order, and in any number of batches. A request without a
# response is dropped if its broker has ended or its connection was closed.
_MERGE: Final = f"""
WITH parts AS (
  SELECT * FROM {{requests}}
  UNION ALL
  SELECT coalesce(request_id, concat_ws(' ', node, boot, number)) AS id,
    CASE WHEN kind = 'request_received' THEN boot END AS boot, connection,
    CASE WHEN kind = 'request_received' THEN route END AS route,
    CASE WHEN kind = 'request_received' THEN wall_ms END AS received_ms, wall_ms AS last_ms,
    {
    ", ".join(
        f"CASE WHEN kind = '{kind}' THEN struct(mono_ns AS ns, node, host_boot_id AS host) END "
        f"AS {moment}"
        for moment, kind in _KIND_OF.items()
    )
}
  FROM {{events}} WHERE kind IN ({_KINDS})),
merged AS (
  SELECT id, max(boot) AS boot, max(connection) AS connection, max(route) AS route,
    max(received_ms) AS received_ms, max(last_ms) AS last_ms,
    {", ".join(f"max({moment}) AS {moment}" for moment in _MOMENTS)}
  FROM parts GROUP BY id),
closed AS (
  SELECT DISTINCT boot, connection FROM {{events}} WHERE kind = 'disconnected')
SELECT m.* FROM merged m LEFT JOIN closed c ON m.boot = c.boot AND m.connection = c.connection
WHERE m.last_ms >= :kept_from_ms AND (m.received IS NULL OR m.responded IS NOT NULL)
  OR m.received IS NOT NULL AND m.responded IS NULL
    AND c.boot IS NULL AND NOT array_contains(:ended, m.boot)
"""

_OPEN: Final = """
SELECT received.node AS node, count(*) AS requests, min(received_ms) AS oldest_ms
FROM {requests} WHERE received IS NOT NULL AND responded IS NULL GROUP BY received.node
"""

# The same hops as in gold/latency.
_LATENCY: Final = """
WITH hops AS (
  SELECT h.hop, h.ns DIV 1000 AS us FROM {requests} LATERAL VIEW explode(array(
    named_struct('hop', 'total', 'ns', responded.ns - received.ns),
    named_struct('hop', 'broker to controller and back', 'ns', returned.ns - sent.ns),
    named_struct('hop', 'broker to controller', 'ns',
      CASE WHEN envelope.host = received.host THEN envelope.ns - sent.ns END),
    named_struct('hop', 'queue of the controller', 'ns',
      CASE WHEN started.node = envelope.node THEN started.ns - envelope.ns END),
    named_struct('hop', 'decision and commit', 'ns',
      CASE WHEN decided.node = started.node THEN decided.ns - started.ns END),
    named_struct('hop', 'ZooKeeper', 'ns', commit_acknowledged.ns - commit_sent.ns))) x AS h
  WHERE (route = 'FORWARD' AND responded IS NOT NULL OR commit_acknowledged IS NOT NULL)
    AND h.ns >= 0)
SELECT hop, count(*) AS requests, percentile(us, 0.5) AS p50_us, percentile(us, 0.99) AS p99_us,
  max(us) AS max_us
FROM hops GROUP BY hop
"""

HOPS: Final = (
    *("total", "broker to controller and back", "broker to controller"),
    *("queue of the controller", "decision and commit", "ZooKeeper"),
)


class WatchError(Exception):
    """The run cannot be watched. The message is for the user."""


@contextlib.contextmanager
def only_watch(folder: Path) -> Iterator[None]:
    """Let no other process use the folder.

    Raises:
        WatchError: another process uses it, or it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
    except OSError as error:
        raise WatchError(
            f"{folder} cannot be used: {error.strerror}. Choose another --out."
        ) from None
    with lock as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise WatchError(
                f"Another `pipeline watch` uses {folder}: stop it, or choose another --out."
            ) from None
        yield


class Stream:
    """The state of the run in the folder `run`, kept in `folder`."""

    def __init__(self, spark: SparkSession, run: Path, folder: Path) -> None:
        self._spark = spark
        self._run = run
        self._folder = folder.resolve()
        self._states = self._folder / "state"
        self._states.mkdir(parents=True, exist_ok=True)
        self._increments = Increments(run, self._folder)
        # A kill may have left lines that Spark has not read.
        self._unread = any(self._increments.lines.iterdir())

    def advance(self) -> Summary:
        """Read the new lines; return the summary that includes them."""
        if self._increments.take() or self._unread:
            lines = self._spark.readStream.text(f"file://{self._increments.lines}")
            query = (
                lines.writeStream.foreachBatch(self._add)
                .option("checkpointLocation", f"file://{self._folder}/checkpoint")
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
            self._increments.drop_copied()
            self._unread = False
        return self._summary(self._batches()[-1:])

    def _batches(self) -> list[int]:
        """Return the batches with a published state, in order."""
        return sorted(int(path.parent.name) for path in self._states.glob("*/summary.json"))

    def _summary(self, batches: list[int]) -> Summary:
        if not batches:
            return Summary(run=self._run.name.removeprefix("run="))
        path = self._states / str(batches[-1]) / "summary.json"
        return summary_from_json(path.read_text(encoding="utf-8"))

    def _add(self, lines: DataFrame, batch: int) -> None:
        """Compute the state of a batch."""
        earlier = [candidate for candidate in self._batches() if candidate < batch]
        summary = self._summary(earlier)
        spark = lines.sparkSession  # The batch has a session of its own.
        events = lines.selectExpr(f"from_json(value, '{_LINE}') AS e").select("e.*").persist()
        try:
            summary.add([row.asDict() for row in spark.sql(_COUNTS, events=events).collect()])
            requests = (
                spark.read.schema(_REQUESTS).parquet(self._requests(earlier[-1]))
                if earlier
                else local_frame(spark, [], _REQUESTS)
            )
            merged = spark.sql(
                _MERGE,
                # An empty list would have no type.
                {
                    "kept_from_ms": summary.kept_from_ms,
                    "ended": ["", *(boot.boot for boot in summary.boots if boot.ended)],
                },
                requests=requests,
                events=events,
            )
            merged.write.mode("overwrite").parquet(self._requests(batch))
        finally:
            events.unpersist()
        kept = spark.read.schema(_REQUESTS).parquet(self._requests(batch))
        summary.open = [Open(**row.asDict()) for row in spark.sql(_OPEN, requests=kept).collect()]
        hops = [Hop(**row.asDict()) for row in spark.sql(_LATENCY, requests=kept).collect()]
        summary.latency = sorted(hops, key=lambda hop: HOPS.index(hop.hop))
        summary.batch = batch
        self._publish(summary, earlier)

    def _requests(self, batch: int) -> str:
        return f"file://{self._states}/{batch}/requests"

    def _publish(self, summary: Summary, earlier: list[int]) -> None:
        folder = self._states / str(summary.batch)
        part = folder / "summary.part"
        part.write_text(summary.to_json(), encoding="utf-8")
        os.replace(part, folder / "summary.json")
        # After a kill, Spark may repeat this batch. The repetition needs the state of the batch
        # before, so that state is kept.
        for number in earlier[:-1]:
            shutil.rmtree(self._states / str(number))
