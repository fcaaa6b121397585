"""Every line that is no event and no commit, with all reasons: nothing vanishes.

`fate` is quarantined, duplicate (the same event again), two_writers (another event under the same
number), or cut (a kill came in between). Only files whose lines do not add up are read again.
"""

from __future__ import annotations

from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline import schemas
from pipeline.bronze.lines import IS_BLANK, numbered
from pipeline.silver.events import SOURCES, cut_lines, unaccounted
from pipeline.silver.reading import is_good, parsed_events, parsed_others
from pipeline.table import Frames, Table, local_frame

_KEY: Final = ("run", "node", "boot", "seq")
_PLACE: Final = ("run", "file", "line_number")
_KEPT: Final = (
    *("silver/events", "silver/commits", "silver/dumps"),
    *("silver/kafka_requests", "silver/kafka_decisions"),
)


def _incomplete(frames: Frames) -> DataFrame:
    """Return the files of which not every line is accounted for: run, file."""
    kept = [frames[name].select("run", "file") for name in _KEPT]
    return unaccounted(frames, reduce(DataFrame.unionByName, kept))


def content() -> Column:
    """Return what is equal for equal events, wherever they stand."""
    columns = [
        F.expr(f"array_sort(map_entries(`{name}`))") if type_.startswith("MAP") else F.col(name)
        for name, type_ in {**schemas.union(), "ext": "MAP"}.items()
    ]
    return F.xxhash64(*columns)


def _build(frames: Frames) -> DataFrame:
    incomplete = _incomplete(frames)
    if not incomplete.limit(1).count():
        return local_frame(incomplete.sparkSession, [], SET_ASIDE.schema)
    of_interest = F.broadcast(incomplete.select("run", "file"))
    lines = numbered(frames).join(of_interest, on=["run", "file"], how="left_semi")
    lines = lines.filter(~F.expr(IS_BLANK))
    events = lines.filter(F.col("source").isin(*SOURCES))
    places = frames["silver/events"].join(of_interest, on=["run", "file"], how="left_semi")
    left = parsed_events(events).join(places.select(*_PLACE), on=list(_PLACE), how="left_anti")
    cut = cut_lines(frames, frames["silver/events"]).withColumn("is_cut", F.lit(True))
    left = left.join(F.broadcast(cut), on=list(_PLACE), how="left")
    left = left.withColumn("is_cut", F.coalesce("is_cut", F.lit(False)))
    good = left.filter(is_good() & ~F.col("is_cut")).withColumn("content", content())
    keys = good.select(*_KEY).distinct()
    kept = frames["silver/events"].join(F.broadcast(keys), on=list(_KEY), how="left_semi")
    kept = kept.select(*_KEY, content().alias("kept_content"))
    copies = good.join(kept, on=list(_KEY), how="left").select(
        *_PLACE,
        "line",
        F.when(F.col("content") == F.col("kept_content"), "duplicate")
        .otherwise("two_writers")
        .alias("fate"),
        F.array().cast("array<string>").alias("reasons"),
        "node",
        "boot",
        "seq",
    )
    bad = left.filter(~is_good() | F.col("is_cut")).select(
        *_PLACE,
        "line",
        F.when(F.col("is_cut"), "cut").otherwise("quarantined").alias("fate"),
        F.when(F.col("is_cut"), F.array().cast("array<string>"))
        .otherwise(F.expr("filter(broken, x -> x != 'unknown_field')"))
        .alias("reasons"),
        *(F.lit(None).cast(t).alias(n) for n, t in (("node", "string"), ("boot", "string"))),
        F.lit(None).cast("bigint").alias("seq"),
    )
    return copies.unionByName(bad).unionByName(_others(lines)).unionByName(_kafka(frames, lines))


def _others(lines: DataFrame) -> DataFrame:
    found = None
    for source, shape in (("commits", "/commit"), ("dump", "/dump")):
        of_source = lines.filter(F.col("source") == source).select(*_PLACE, "line")
        parsed = (
            parsed_others(of_source, shape)
            .filter(~is_good())
            .select(
                *_PLACE,
                "line",
                F.lit("quarantined").alias("fate"),
                F.col("broken").alias("reasons"),
                *(
                    F.lit(None).cast(t).alias(n)
                    for n, t in (("node", "string"), ("boot", "string"))
                ),
                F.lit(None).cast("bigint").alias("seq"),
            )
        )
        found = parsed if found is None else found.unionByName(parsed)
    assert found is not None
    return found


def _kafka(frames: Frames, lines: DataFrame) -> DataFrame:
    """A line of a real Kafka's logs is what its pattern says, or it is none."""
    of_kafka = lines.filter(F.col("source").startswith("kafka_"))
    kept = [frames[name].select(*_PLACE) for name in _KEPT[3:]]
    return of_kafka.join(kept[0].unionByName(kept[1]), on=list(_PLACE), how="left_anti").select(
        *_PLACE,
        "line",
        F.lit("quarantined").alias("fate"),
        F.array(F.when(F.expr("is_valid_utf8(line)"), "not_of_this_log").otherwise("utf8")).alias(
            "reasons"
        ),
        *(F.lit(None).cast(t).alias(n) for n, t in (("node", "string"), ("boot", "string"))),
        F.lit(None).cast("bigint").alias("seq"),
    )


SET_ASIDE: Final = Table(
    name="silver/set_aside",
    inputs=("files", "bronze/lines", "bronze/blocks", *_KEPT),
    schema="run STRING, file STRING, line_number BIGINT, line STRING, fate STRING, "
    "reasons ARRAY<STRING>, node STRING, boot STRING, seq BIGINT",
    build=_build,
    expectations={"a quarantined line has a reason": "fate <> 'quarantined' OR size(reasons) > 0"},
)
