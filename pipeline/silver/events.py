"""Typed events: one table for each kind, with the columns of that kind.

- `silver/examined`: the lines that bronze did not split, parsed and checked field by field. Usually
  there are none.
- `silver/superfluous`: duplicates, and last lines that a kill cut off. Usually there are none.
- `silver/events`: the fields that every event has, of all other valid lines. This table is a view.
- `silver/<kind>`: the events of one kind. `event_log.events` has the kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from pipeline import schemas
from pipeline.bronze.lines import IS_EXAMINED, kinds_of
from pipeline.frames import Frames, has_no_rows, local_frame
from pipeline.silver.reading import is_good, parsed_events
from pipeline.table import Table

PLACE: Final = ("run", "file", "line_number")
KEY: Final = ("run", "node", "boot", "seq")
_COMMON: Final = ("source", "seq", "mono_ns", "wall_ms", "node", "boot", "host_boot_id")
_COMMON_DDL: Final = (
    "run STRING, file STRING, line_number BIGINT, source STRING, seq BIGINT, mono_ns BIGINT, "
    "wall_ms BIGINT, node STRING, boot STRING, host_boot_id STRING"
)
_VALID: Final = {"an event has a place in its boot": "seq >= 0"}


def _examine(frames: Frames) -> DataFrame:
    lines = frames["bronze/lines"].filter(IS_EXAMINED).select(*PLACE, "source", "line")
    if lines.isEmpty():
        return local_frame(lines.sparkSession, [], EXAMINED.schema)
    return parsed_events(lines)


def _candidates(frames: Frames) -> DataFrame:
    """Return the common fields of all valid lines, also of duplicates and cut lines."""
    columns = (*PLACE, *_COMMON, "kind")
    events = frames["bronze/lines"].filter("kind IS NOT NULL").select(*columns)
    if has_no_rows(frames["silver/examined"]):
        return events
    return events.unionByName(frames["silver/examined"].filter(is_good()).select(*columns))


def _superfluous(frames: Frames) -> DataFrame:
    """Find duplicates: each of 64 sequence numbers has a bit. The first in a file is kept."""
    events = _candidates(frames)
    bucket = F.expr("seq DIV 64").alias("bucket")
    doubled = (
        events.groupBy("run", "node", "boot", bucket)
        .agg(
            F.count("*").alias("rows"),
            F.expr("bit_count(bit_or(shiftleft(1L, CAST(pmod(seq, 64) AS INT))))").alias("numbers"),
        )
        .filter(F.col("rows") > F.col("numbers"))
        .select("run", "node", "boot", "bucket")
    )
    cut = _cut_lines(frames, events)
    if doubled.isEmpty() and cut.isEmpty():
        return local_frame(events.sparkSession, [], SUPERFLUOUS.schema)
    order = W.partitionBy(*KEY).orderBy("file", "line_number")
    first = F.first(F.struct("file", "line_number")).over(order)
    copies = (
        events.select(*KEY, "file", "line_number", bucket)
        .join(F.broadcast(doubled), on=["run", "node", "boot", "bucket"], how="left_semi")
        .join(F.broadcast(cut), on=list(PLACE), how="left_anti")
        .withColumn("first", first)
        .filter(F.col("first") != F.struct("file", "line_number"))
        .select(*PLACE, "first", F.lit(False).alias("is_cut"))
    )
    nothing = F.lit(None).cast("struct<file: string, line_number: bigint>")
    cut = cut.select(*PLACE, nothing.alias("first"), F.lit(True).alias("is_cut"))
    return copies.unionByName(cut)


def _cut_lines(frames: Frames, events: DataFrame) -> DataFrame:
    """Return the last lines that a kill cut off: those of boots without a `stopped` event."""
    files = frames["files"].filter(F.col("left_open") & F.col("is_there"))
    number, boot = F.col("lines").alias("line_number"), F.col("boot").alias("of")
    last = files.select("run", "file", number, boot)
    stopped = events.filter(F.col("kind") == "stopped").select("run", F.col("boot").alias("of"))
    return last.join(stopped.distinct(), on=["run", "of"], how="left_anti").select(*PLACE)


def _without_superfluous(frames: Frames, events: DataFrame) -> DataFrame:
    if has_no_rows(frames["silver/superfluous"]):
        return events
    places = F.broadcast(frames["silver/superfluous"].select(*PLACE))
    return events.join(places, on=list(PLACE), how="left_anti")


def _view(frames: Frames) -> DataFrame:
    return _without_superfluous(frames, _candidates(frames))


def _of_kind(kind: str) -> Callable[[Frames], DataFrame]:
    """Return a `build` of the table of one kind."""

    def build(frames: Frames) -> DataFrame:
        lines, examined = frames["bronze/lines"], frames["silver/examined"]
        parts = []
        if kind in kinds_of(frames["bronze/counts"]):
            columns = map(F.expr, schemas.split_columns(kind))
            parts.append(
                lines.filter(F.col("kind") == kind)
                .withColumn("v", F.expr(_split("fields")))
                .withColumn("t", F.expr(_UNESCAPED))
                .select(*PLACE, *_COMMON, *columns)
            )
        if not has_no_rows(examined):
            good = examined.filter(is_good() & (F.col("kind") == kind))
            parts.append(good.select(*PLACE, *_COMMON, *map(F.expr, schemas.own_columns(kind))))
        if not parts:
            return local_frame(lines.sparkSession, [], _ddl(kind))
        events = parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])
        return _without_superfluous(frames, events)

    return build


def _split(text: str) -> str:
    return f"split({text}, {schemas.quoted(schemas.SEPARATOR)})"


_UNESCAPED: Final = (
    f"CASE WHEN contains(fields, {schemas.quoted(chr(92))}) "
    f"THEN {_split(schemas.unescaped('fields'))} ELSE v END"
)


def _ddl(kind: str) -> str:
    return f"{_COMMON_DDL}, {schemas.ddl(schemas.fields_of(kind))}"


EXAMINED: Final = Table(
    name="silver/examined",
    inputs=("bronze/lines",),
    schema="run STRING, file STRING, line_number BIGINT, source STRING, line STRING, "
    f"broken ARRAY<STRING>, {schemas.ddl(schemas.union())}, ext MAP<STRING, STRING>",
    build=_examine,
)
SUPERFLUOUS: Final = Table(
    name="silver/superfluous",
    inputs=("files", "bronze/lines", "silver/examined"),
    schema="run STRING, file STRING, line_number BIGINT, "
    "first STRUCT<file: STRING, line_number: BIGINT>, is_cut BOOLEAN",
    build=_superfluous,
)
EVENTS: Final = Table(
    name="silver/events",
    inputs=("bronze/lines", "silver/examined", "silver/superfluous"),
    schema=f"{_COMMON_DDL}, kind STRING",
    build=_view,
    is_stored=False,
    is_kept_in_memory=False,
)
OF_KINDS: Final = tuple(
    Table(
        name=f"silver/{kind}",
        inputs=("bronze/lines", "bronze/counts", "silver/examined", "silver/superfluous"),
        schema=_ddl(kind),
        build=_of_kind(kind),
        expectations=_VALID,
    )
    for kind in schemas.KINDS
)
