"""One row for each znode of a dump."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline import schemas
from pipeline.frames import Frames
from pipeline.silver.commits import good_lines
from pipeline.table import Table


def _dumps(frames: Frames) -> DataFrame:
    is_final = F.col("file").endswith("/final.jsonl")
    return good_lines(frames, "dump", "/dump").withColumn("is_final", is_final)


DUMPS: Final = Table(
    name="silver/dumps",
    inputs=("bronze/lines",),
    schema="run STRING, file STRING, line_number BIGINT, is_final BOOLEAN, "
    f"{schemas.ddl(schemas.DUMP)}",
    build=_dumps,
)
