"""The znodes that the active controller skips because their contents or names are invalid."""

from __future__ import annotations

import logging
from collections.abc import Iterable

_log = logging.getLogger(__name__)


class SkippedZnodes:
    """The error of each skipped znode. New ones are logged; `status` shows all of them."""

    def __init__(self, errors: Iterable[str] = ()) -> None:
        """`errors`: texts that begin with the path of a znode."""
        self._errors: tuple[str, ...] = ()
        self.replace(("/",), errors)

    @property
    def errors(self) -> tuple[str, ...]:
        """The errors of the znodes that are skipped now."""
        return self._errors

    def replace(self, prefixes: tuple[str, ...], errors: Iterable[str]) -> None:
        """Replace the errors that begin with one of `prefixes`, after these znodes were read."""
        before = set(self._errors)
        kept = {error for error in before if not error.startswith(prefixes)}
        self._errors = tuple(sorted(kept | set(errors)))
        for error in self._errors:
            if error not in before:
                _log.error("skipping an invalid znode: %s", error)
