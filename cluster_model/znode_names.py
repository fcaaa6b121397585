"""Names and paths of znodes that ZooKeeper's Java client accepts."""

from __future__ import annotations

import re
from typing import Final

_NOT_IN_PATHS: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]")


def path_error(path: str) -> str | None:
    """Return the error text of ZooKeeper's Java client for a path; None if the path is valid.

    Positions are in UTF-16 code units, as in Java.
    """
    if path.endswith("/"):
        return "Path must not end with / character"
    units = "".join(character if character < "\U00010000" else "\ud800\udc00" for character in path)
    at = 1
    for node in units.split("/")[1:]:
        if not node:
            return _at("empty node name specified", path, at)
        if node in (".", ".."):
            return _at("relative paths not allowed", path, at + len(node) - 1)
        illegal = _NOT_IN_PATHS.search(node)
        if illegal is not None:
            problem = "invalid character" if illegal[0] != "\0" else "null character not allowed"
            return _at(problem, path, at + illegal.start())
        at += len(node) + 1
    return None


def _at(reason: str, path: str, index: int) -> str:
    return f'Invalid path string "{path}" caused by {reason} @{index}'


def is_valid_znode_name(name: str) -> bool:
    """Return whether ZooKeeper accepts a znode with this name."""
    return name != "" and "/" not in name and path_error(f"/{name}") is None
