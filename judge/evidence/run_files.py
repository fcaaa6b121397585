"""Reads and writes the files of a run's folder. A stranger may have made the folder.

A run consists of folders and regular files. Anything else is an error: a symbolic link leads out of
the folder, a pipe blocks its reader, and a device has no end. A file with a hole can be larger than
any disk; what nodes and judges write has none. Files are opened from the run's
folder downwards, so an entry that is replaced by a link after the check is not followed either.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from event_log.evidence import RUN_PATH

DEPTH_MAX: Final = 4  # zookeeper/member=1/log.1 has three parts
_BLOCK_BYTES: Final = 512  # of st_blocks, on every file system
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READING: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATING: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class EvidenceError(Exception):
    """The folder cannot be judged. The message is one sentence."""


def run_files(folder: Path) -> dict[str, int]:
    """Return the size in bytes of every file of a run, by its path below the run's folder.

    Raises:
        EvidenceError: an entry is neither a regular file nor a folder, no run has its name, or a
            file has a hole.
    """
    sizes: dict[str, int] = {}
    folders = [""]
    while folders:
        parent = folders.pop()
        with os.scandir(folder / parent) as entries:
            for entry in entries:
                name = f"{parent}{entry.name}"
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:  # A node that still runs has renamed it.
                    continue
                _check_entry(name, status.st_mode)
                if stat.S_ISDIR(status.st_mode):
                    folders.append(f"{name}/")
                    continue
                sizes[name] = status.st_size
                if status.st_blocks * _BLOCK_BYTES < status.st_size:
                    _check_sparse(folder, name)  # A compressed file has few blocks, too.
    return dict(sorted(sizes.items()))


def _check_entry(name: str, mode: int) -> None:
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise EvidenceError(_not_regular(name, mode))
    if not RUN_PATH.fullmatch(name) or name.count("/") >= DEPTH_MAX:
        raise EvidenceError(f"{name!r} does not belong to a run: remove it from the folder.")


def _check_sparse(folder: Path, name: str) -> None:
    with suppress(FileNotFoundError), open_file(folder, name) as opened:
        size = os.fstat(opened.fileno()).st_size
        if size and os.lseek(opened.fileno(), 0, os.SEEK_HOLE) < size:
            raise EvidenceError(f"{name!r} has a hole; no file of a run has one: remove it.")


def _not_regular(name: str, mode: int) -> str:
    kind = "a symbolic link" if stat.S_ISLNK(mode) else "a pipe, a socket or a device"
    return f"{name!r} is {kind}; a run has only folders and regular files: remove it."


def runs_in(folder: Path) -> list[Path]:
    """Return the folders `run=…` directly in `folder`, sorted; none if it does not exist.

    Raises:
        EvidenceError: `folder` or one of them is a symbolic link.
    """
    runs = []
    with suppress(FileNotFoundError, NotADirectoryError):
        for path in sorted(folder.iterdir()):
            if path.name.startswith("run="):
                if path.is_symlink():
                    raise EvidenceError(_not_regular(str(path), path.lstat().st_mode))
                if path.is_dir():
                    runs.append(path)
    if runs and folder.is_symlink():
        raise EvidenceError(_not_regular(str(folder), folder.lstat().st_mode))
    return runs


def is_file(folder: Path, name: str) -> bool:
    """Return whether a regular file exists directly in `folder`."""
    try:
        return stat.S_ISREG((folder / name).lstat().st_mode)
    except OSError:
        return False


@contextmanager
def _parent_of(folder: Path, name: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
    """Yield a descriptor of the folder that contains `name`, and the last part of `name`."""
    *above, last = name.split("/")
    at = os.open(folder, _FOLDER)
    try:
        for part in above:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o700, dir_fd=at)
            below = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = below
        yield at, last
    finally:
        os.close(at)


def open_file(folder: Path, name: str) -> BinaryIO:
    """Open a file of `folder` for reading; never wait for a writer.

    Raises:
        FileNotFoundError: it does not exist.
        EvidenceError: it is not a regular file, or a folder above it is a link.
        OSError: it cannot be read.
    """
    try:
        with _parent_of(folder, name) as (parent, last):
            descriptor = os.open(last, _READING, dir_fd=parent)
    except OSError as error:
        # Linux: ENOTDIR for a link in place of a folder, ENXIO for a socket.
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO):
            raise EvidenceError(f"{name!r} is not a regular file in {folder}: remove it.") from None
        raise
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise EvidenceError(_not_regular(name, status.st_mode))
    return os.fdopen(descriptor, "rb")


def read_file(folder: Path, name: str, bytes_max: int) -> bytes:
    """Return a file's bytes. Raises as `open_file`, and EvidenceError if it is too large."""
    with open_file(folder, name) as opened:
        data = b""
        if os.fstat(opened.fileno()).st_size <= bytes_max:
            data = opened.read(bytes_max + 1)
            if len(data) <= bytes_max:
                return data
    raise EvidenceError(f"{folder / name} has more than {bytes_max:,} bytes.")


def write_file(folder: Path, name: str, data: bytes) -> None:
    """Replace a file atomically; folders above it are created."""
    with _parent_of(folder, name, create=True) as (parent, last):
        beside = f"{last}.tmp"
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=parent)
        with os.fdopen(os.open(beside, _CREATING, 0o600, dir_fd=parent), "wb") as new:
            new.write(data)
        os.rename(beside, last, src_dir_fd=parent, dst_dir_fd=parent)


def remove(folder: Path, name: str) -> None:
    """Remove a file, or a folder with its content, if it exists. Links are not followed."""
    with suppress(FileNotFoundError), _parent_of(folder, name) as (parent, last):
        try:
            os.unlink(last, dir_fd=parent)
        except IsADirectoryError:
            shutil.rmtree(last, dir_fd=parent)


def copy_files(folder: Path, target: Path) -> None:
    """Copy the files of a run into the new folder `target`, each as long as it is now.

    Raises:
        EvidenceError: see `run_files`; or the file system of `target` has too little space.
    """
    sizes = run_files(folder)
    target.mkdir(parents=True, mode=0o700)
    needed, free = sum(sizes.values()), shutil.disk_usage(target).free
    if needed > free:
        raise EvidenceError(
            f"{folder} has {needed:,} bytes and cannot be copied to {target.parent}, which has "
            f"{free:,} left: seal the run, or set TMPDIR to a folder with more space."
        )
    for name, size in sizes.items():
        with suppress(FileNotFoundError):
            copy_file(folder, name, target / name, size)


def copy_file(folder: Path, name: str, target: Path, size: int) -> None:
    """Copy the first `size` bytes of a file of `folder`. Raises as `open_file`."""
    with open_file(folder, name) as opened:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as copy:
            while size > 0 and (chunk := opened.read(min(size, 1 << 20))):
                size -= copy.write(chunk)
