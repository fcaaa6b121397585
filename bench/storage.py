"""The file systems of the pipeline's proofs: the local one, an HDFS and an S3 on loopback.

`make storage-jars` fetches an HDFS, an S3 server and the S3 client that Spark uses.
"""

from __future__ import annotations

import http
import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

import pyspark
from pyspark.sql import SparkSession

from bridgehead.cluster.java import find_java
from bridgehead.cluster.ports import Ports
from pipeline.places import StoragePlace, local_place, place
from pipeline.session import LOOPBACK

JARS: Final = Path.home() / ".cache" / "bridgehead" / "storage"
KINDS: Final = ("file", "hdfs", "s3")
_START_TIMEOUT_S: Final = 300  # on a busy machine the start of an HDFS takes more than a minute


class Storage(NamedTuple):
    """A file system: the URI of an empty folder in it, and the settings of Spark that it needs."""

    uri: str
    settings: Mapping[str, str]

    def upload(self, folder: Path, to: str, spark: SparkSession) -> StoragePlace:
        """Copy a small local folder; return the copy."""
        there = place(f"{self.uri}/{to}", spark)
        for name in local_place(folder).files():
            (there / name).write((folder / name).read_bytes())
        return there


def is_fetched(kind: str) -> bool:
    """Return whether the jars of this file system are here."""
    return kind == "file" or any((JARS / kind).glob("*.jar"))


@contextmanager
def storage(kind: str, folder: Path) -> Iterator[Storage]:
    """Start the server of a file system, in `folder`; yield the file system when it is ready."""
    if kind == "file":
        yield Storage(f"file://{folder}", {})
        return
    if not is_fetched(kind):
        raise FileNotFoundError(f"{JARS / kind} is empty: run `make storage-jars`.")
    with (_hdfs if kind == "hdfs" else _s3)(folder) as served:
        yield served


@contextmanager
def _hdfs(folder: Path) -> Iterator[Storage]:
    ports = Ports()
    port, web_port = ports.choose(), ports.choose()
    jars = f"{JARS / 'hdfs'}/*:{Path(pyspark.__file__).parent / 'jars'}/*"
    state = "jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
    with _server(
        folder / "hdfs.log",
        *("-Xmx384m", f"-Dtest.build.data={folder / 'hdfs'}", "-cp", jars),
        "org.apache.hadoop.mapreduce.MiniHadoopClusterManager",
        *("-nomr", "-format", "-nnport", str(port), "-nnhttpport", str(web_port)),
    ) as process:
        _wait(lambda: _living_datanodes(f"http://{LOOPBACK}:{web_port}/{state}") > 0, process)
        yield Storage(f"hdfs://{LOOPBACK}:{port}/proof", {"spark.hadoop.dfs.replication": "1"})


def _living_datanodes(url: str) -> int:
    with urllib.request.urlopen(url, timeout=5) as page:
        (state,) = json.load(page)["beans"]
    return int(state["NumLiveDataNodes"])


@contextmanager
def _s3(folder: Path) -> Iterator[Storage]:
    port = Ports().choose()
    endpoint, properties = f"http://{LOOPBACK}:{port}", folder / "s3.properties"
    properties.write_text(
        f"s3proxy.endpoint={endpoint}\ns3proxy.authorization=none\n"
        "s3proxy.ignore-unknown-headers=true\n"
        # `transient` keeps objects in memory. If objects were files, folders would exist as objects
        # too; in S3 a folder is only a prefix of names.
        "jclouds.provider=transient\njclouds.identity=unused\njclouds.credential=unused\n",
        encoding="utf-8",
    )
    with _server(
        folder / "s3.log",
        *("-Xmx1g", "-cp", f"{JARS / 's3'}/*", "org.gaul.s3proxy.Main"),
        *("--properties", str(properties)),
    ) as process:
        _wait(lambda: _creates_bucket(f"{endpoint}/proof"), process)
        jars = (path for path in (JARS / "s3a").glob("*.jar") if "slf4j" not in path.name)
        settings = {
            "spark.jars": ",".join(map(str, sorted(jars))),
            "spark.hadoop.fs.s3a.endpoint": endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
            "spark.hadoop.fs.s3a.access.key": "unused",
            "spark.hadoop.fs.s3a.secret.key": "unused",
            # Saves requests: S3A then creates a file without looking for a folder of the same name
            # or for the folders above the file.
            "spark.hadoop.fs.s3a.performance.flags": "create,delete,mkdir",
            # The default stream is made for large files: it has its own client and threads.
            "spark.hadoop.fs.s3a.input.stream.type": "classic",
        }
        yield Storage("s3a://proof/pipeline", settings)


@contextmanager
def _server(log: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(find_java()), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=log.parent,
            env={**os.environ, "TZ": "UTC"},
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _creates_bucket(url: str) -> bool:
    bucket = urllib.request.Request(url, method="PUT")
    with urllib.request.urlopen(bucket, timeout=5) as response:
        return bool(response.status == http.HTTPStatus.OK)


def _wait(is_ready: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Wait until a server, which does not answer at first, is ready."""
    deadline_s = time.monotonic() + _START_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline_s:
        with suppress(OSError, ValueError):
            if is_ready():
                return
        time.sleep(0.1)
    raise TimeoutError(f"{process.args!r} did not start: see its log")
