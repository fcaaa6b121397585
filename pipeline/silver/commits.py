"""One row for each of ZooKeeper's transactions."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline import schemas
from pipeline.bronze.lines import IS_BLANK
from pipeline.frames import Frames
from pipeline.silver.events import PLACE
from pipeline.silver.reading import is_good, parsed_others
from pipeline.table import Table


def good_lines(frames: Frames, source: str, shape: str) -> DataFrame:
    """Return the valid lines of the files of one source, parsed as `shape`."""
    is_of_source = (F.col("source") == source) & F.col("kind").isNull()
    lines = frames["bronze/lines"].filter(is_of_source & ~F.expr(IS_BLANK))
    return parsed_others(lines.select(*PLACE, "line"), shape).filter(is_good())


def _commits(frames: Frames) -> DataFrame:
    return good_lines(frames, "commits", "/commit")


COMMITS: Final = Table(
    name="silver/commits",
    inputs=("bronze/lines",),
    schema=f"run STRING, file STRING, line_number BIGINT, {schemas.ddl(schemas.COMMIT)}",
    build=_commits,
)
