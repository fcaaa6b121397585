"""Find the files that give other users a permission, and the files that contain a secret."""

from __future__ import annotations

import stat
from pathlib import Path


def open_to_others(folder: Path) -> list[str]:
    """Return the files and folders in `folder` that give other users any permission."""
    return sorted(
        f"{stat.filemode(path.lstat().st_mode)} {path.relative_to(folder)}"
        for path in (folder, *folder.rglob("*"))
        if not path.is_symlink() and path.lstat().st_mode & 0o077
    )


def holders(folder: Path, *secrets: bytes) -> set[str]:
    """Return the files in `folder` that contain one of the secrets."""
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and any(secret in path.read_bytes() for secret in secrets)
    }
