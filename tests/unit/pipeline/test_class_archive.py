"""The archive of loaded classes that shortens the start of Spark's Java."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.session import class_archive


@pytest.fixture
def java(tmp_path: Path) -> Path:
    """A Java that has an archive of its own classes."""
    home = tmp_path / "java"
    for name in ("bin/java", "lib/modules", "lib/server/classes.jsa"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).touch()
    return home / "bin" / "java"


def test_missing_archive_is_written_at_exit_and_then_read(java: Path, tmp_path: Path) -> None:
    folder = tmp_path / "archives"
    written = class_archive(java, folder).split()[-1]
    option, _, name = written.partition("=")
    assert option == "-XX:ArchiveClassesAtExit"
    archive = Path(name)
    assert archive.parent == folder
    archive.write_bytes(b"\0" * 100)
    assert class_archive(java, folder).split()[-1] == written, "Java writes the header last"
    archive.write_bytes(b"\xa8\x0b\x0b\xf0 and so on")
    assert class_archive(java, folder).split()[-1] == f"-XX:SharedArchiveFile={archive}"


def test_each_java_has_its_own_archive(java: Path, tmp_path: Path) -> None:
    before = class_archive(java, tmp_path)
    other = tmp_path / "other"
    java.parents[1].rename(other)
    assert class_archive(other / "bin" / "java", tmp_path) != before


def test_java_without_an_archive_of_its_own_gets_no_option(java: Path, tmp_path: Path) -> None:
    (java.parents[1] / "lib/server/classes.jsa").unlink()
    assert class_archive(java, tmp_path) == ""


def test_folder_that_cannot_be_created_is_not_an_error(java: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert class_archive(java, tmp_path / "file" / "archives") == ""
