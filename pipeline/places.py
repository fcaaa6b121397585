"""Folders and files on any file system: local ones through Python, all others through Hadoop.

A place is named by a path or by a URI (`hdfs://…`, `s3a://…`). Local places need no Spark, so
local evidence is checked before Spark starts.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Protocol

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

_SCHEME: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):/")
# Hadoop's name of a capability: a file appears when its stream is closed, not before.
_APPEARS_WHEN_CLOSED: Final = "fs.capability.outputstream.abortable"


class StoragePlace(Protocol):
    """A folder or a file. Methods raise OSError if the file system fails."""

    @property
    def name(self) -> str:
        """The last part of the path."""

    @property
    def uri(self) -> str:
        """How Spark names the place."""

    def __truediv__(self, below: str) -> StoragePlace:
        """Return a place below this one."""

    def is_folder(self) -> bool:
        """Return whether a folder exists here."""

    def is_file(self) -> bool:
        """Return whether a file exists here."""

    def folders(self) -> list[StoragePlace]:
        """Return the folders directly in this folder; none if it does not exist."""

    def files(self) -> dict[str, int]:
        """Return the size in bytes of every file below this folder, by its relative path."""

    def read_bytes(self) -> bytes:
        """Return the contents of a small file."""

    def sha256(self) -> str:
        """Return the digest of a file of any size, in hexadecimal."""

    def write(self, data: bytes) -> None:
        """Create or replace a small file in one step. Folders above it are created."""

    def make_folder(self) -> None:
        """Create this folder, and those above it, if they do not exist."""

    def delete(self) -> None:
        """Delete this folder, if it exists."""


def local_path(where: str) -> Path | None:
    """Return the path of a local place; None for a place on another file system."""
    scheme = _SCHEME.match(where)
    if scheme is None:
        return Path(where)
    return Path("/" + where[5:].lstrip("/")) if scheme["scheme"].lower() == "file" else None


def place(where: str, spark: SparkSession) -> StoragePlace:
    """Return the place that a path or a URI names."""
    path = local_path(where)
    return _Hadoop(spark, where) if path is None else local_place(path)


def local_place(path: Path) -> StoragePlace:
    """Return a place on this machine."""
    return _Local(path)


class _Local:
    """A place on this machine."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()

    def __str__(self) -> str:
        return str(self.path)

    def __truediv__(self, below: str) -> _Local:
        return _Local(self.path / below)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def uri(self) -> str:
        return f"file://{self.path}"

    def is_folder(self) -> bool:
        return self.path.is_dir()

    def is_file(self) -> bool:
        return self.path.is_file()

    def folders(self) -> list[StoragePlace]:
        if not self.path.is_dir():
            return []
        return [_Local(path) for path in self.path.iterdir() if path.is_dir()]

    def files(self) -> dict[str, int]:
        return {
            path.relative_to(self.path).as_posix(): path.stat().st_size
            for path in self.path.rglob("*")
            if path.is_file()
        }

    def read_bytes(self) -> bytes:
        return self.path.read_bytes()

    def sha256(self) -> str:
        with self.path.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()

    def write(self, data: bytes) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_name(f".{self.path.name}.part")
        part.write_bytes(data)
        os.replace(part, self.path)

    def make_folder(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)

    def delete(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


@contextlib.contextmanager
def _as_os_error(where: str) -> Iterator[None]:
    """Raise the exceptions of Hadoop as OSError."""
    try:
        yield
    except Py4JJavaError as error:
        kind = FileNotFoundError if "FileNotFound" in str(error.java_exception) else OSError
        first = str(error.java_exception.getMessage()).strip().partition("\n")[0]
        raise kind(None, first, where) from error


class _Hadoop:
    """A place on a file system that Hadoop knows."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        self._spark = spark
        self._jvm: Any = spark._jvm
        self._conf: Any = spark._jsc.hadoopConfiguration()
        with _as_os_error(uri):
            path = self._jvm.org.apache.hadoop.fs.Path(uri)  # type: ignore[union-attr]
            self._fs = path.getFileSystem(self._conf)
            self._path = self._fs.makeQualified(path)

    def __str__(self) -> str:
        return self.uri

    @property
    def uri(self) -> str:
        return str(self._path.toString())

    def __truediv__(self, below: str) -> _Hadoop:
        return _Hadoop(self._spark, f"{self.uri.rstrip('/')}/{below}")

    @property
    def name(self) -> str:
        return str(self._path.getName())

    def is_folder(self) -> bool:
        status = self._status()
        return status is not None and bool(status.isDirectory())

    def is_file(self) -> bool:
        status = self._status()
        return status is not None and bool(status.isFile())

    def _status(self) -> Any:
        try:
            with _as_os_error(self.uri):
                return self._fs.getFileStatus(self._path)
        except FileNotFoundError:
            return None

    def folders(self) -> list[StoragePlace]:
        try:
            with _as_os_error(self.uri):
                statuses = list(self._fs.listStatus(self._path))
        except FileNotFoundError:
            return []
        return [self / status.getPath().getName() for status in statuses if status.isDirectory()]

    def files(self) -> dict[str, int]:
        above = self.uri.rstrip("/") + "/"
        lengths: dict[str, int] = {}
        with _as_os_error(self.uri):
            listed = self._fs.listFiles(self._path, True)
            while listed.hasNext():
                next_ = listed.next()
                lengths[next_.getPath().toString().removeprefix(above)] = next_.getLen()
        return lengths

    def read_bytes(self) -> bytes:
        with _as_os_error(self.uri):
            stream = self._fs.open(self._path)
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()

    def sha256(self) -> str:
        digest = self._jvm.java.security.MessageDigest.getInstance("SHA-256")
        nowhere = self._jvm.java.io.OutputStream.nullOutputStream()
        with _as_os_error(self.uri):
            stream = self._fs.open(self._path)
            try:
                # Java reads the file: its bytes do not pass through Python.
                self._jvm.java.security.DigestInputStream(stream, digest).transferTo(nowhere)
            finally:
                stream.close()
        return bytes(digest.digest()).hex()

    def write(self, data: bytes) -> None:
        with _as_os_error(self.uri):
            if self._fs.hasPathCapability(self._path, _APPEARS_WHEN_CLOSED):
                self._create(self._path, data)
                return
            part = self._jvm.org.apache.hadoop.fs.Path(self._path.getParent(), f".{self.name}.part")
            self._create(part, data)
            fs = self._jvm.org.apache.hadoop.fs
            gateway: Any = self._spark.sparkContext._gateway
            rename = getattr(fs, "Options$Rename")
            options = gateway.new_array(rename, 1)
            options[0] = rename.OVERWRITE
            context = fs.FileContext.getFileContext(self._path.toUri(), self._conf)
            context.rename(part, self._path, options)

    def _create(self, path: Any, data: bytes) -> None:
        stream = self._fs.create(path, True)
        try:
            stream.write(bytearray(data))
        except BaseException:
            if stream.hasCapability(_APPEARS_WHEN_CLOSED):
                stream.abort()  # otherwise close() would publish half a file
            raise
        finally:
            stream.close()

    def make_folder(self) -> None:
        with _as_os_error(self.uri):
            self._fs.mkdirs(self._path)

    def delete(self) -> None:
        with _as_os_error(self.uri):
            self._fs.delete(self._path, True)
