"""Keeps a bounded number of log files open. Used from one thread."""

from __future__ import annotations

import os
import shutil
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

OPEN_FILES_MAX: Final = 2_000
_APPENDING: Final = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
READING: Final = os.O_RDONLY | os.O_CLOEXEC


class OpenFiles:
    """File descriptors by path. At the limit, the least recently used descriptor is closed."""

    def __init__(self, limit: int = OPEN_FILES_MAX, flags: int = _APPENDING) -> None:
        """`flags` are those of `os.open`."""
        self._limit = limit
        self._flags = flags
        # Deletes files and folders. A broker sets a function that does it in a thread, because
        # deleting a large log takes long.
        self.remove: Callable[[Sequence[Path]], object] = remove_all
        self._descriptors: OrderedDict[Path, int] = OrderedDict()

    def descriptor(self, path: Path) -> int:
        """Return a descriptor. For appending, the file is created if it does not exist."""
        descriptor = self._descriptors.get(path)
        if descriptor is not None:
            self._descriptors.move_to_end(path)
            return descriptor
        if len(self._descriptors) >= self._limit:
            _, oldest = self._descriptors.popitem(last=False)
            os.close(oldest)
        opened = os.open(path, self._flags, 0o644)
        self._descriptors[path] = opened
        return opened

    def close(self, path: Path) -> None:
        """Close a file, if it is open."""
        descriptor = self._descriptors.pop(path, None)
        if descriptor is not None:
            os.close(descriptor)

    def close_all(self) -> None:
        """Close every file."""
        for path in list(self._descriptors):
            self.close(path)


def remove_all(paths: Sequence[Path]) -> None:
    """Delete files, and folders with their content. What does not exist is skipped."""
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def flush_all(paths: Sequence[Path]) -> None:
    """Write everything in these files to the disk itself. What does not exist is skipped."""
    for path in paths:
        try:
            descriptor = os.open(path, READING)
        except FileNotFoundError:
            continue
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """Append all of `data`. One `os.write` may write only a part on a full disk.

    Raises:
        OSError: the disk is full or broken.
    """
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file's content atomically."""
    new = path.with_name(path.name + ".tmp")
    new.unlink(missing_ok=True)  # It may be a link.
    with new.open("xb") as file:
        file.write(data)
    os.replace(new, path)
