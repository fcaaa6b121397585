"""A copy of the project, in which one file at a time has a mutant."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kips.mutant import Mutant
from tools.kip_rows import ROOT

# `.venv` is shared. The others are not part of the project.
NOT_COPIED = (".venv", ".git", ".*_cache", ".hypothesis", ".bridgehead", ".demo*", "build", "dist")


class Tree:
    """A copy of the project in `folder`. It uses the installed packages of the original."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*NOT_COPIED))
        (folder / ".venv").symlink_to(ROOT / ".venv")
        self._seconds = itertools.count(1)

    @contextmanager
    def mutated(self, mutant: Mutant) -> Iterator[None]:
        """Apply the mutant, and restore the file at the end."""
        file = self.folder / mutant.file
        original = file.read_bytes()
        old, new = mutant.old.encode(), mutant.new.encode()
        assert original.count(old) == 1, f"{mutant.file} must contain this text once: {mutant.old}"
        modified = file.stat().st_mtime
        file.write_bytes(original.replace(old, new))
        # Python recognizes stale bytecode by the source file's size and its modification time in
        # whole seconds, so every version gets a modification time in another second.
        later = modified + next(self._seconds)
        os.utime(file, (later, later))
        try:
            yield
        finally:
            file.write_bytes(original)
            os.utime(file, (modified, modified))
