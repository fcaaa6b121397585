"""Deletes znodes that the controller no longer needs, in fenced multis."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from cluster_model.znodes.operations import Operation
from controller.loop.loop import OPERATIONS_PER_MULTI, ControllerLoop
from controller.store.port import ContentConflictError

_log = logging.getLogger(__name__)


class Deletions:
    """Leaves out znodes that cannot be deleted, for example because somebody gave them children.

    Otherwise one such znode would end this controller's term, and the next controller's as well.
    """

    def __init__(self) -> None:
        self._kept: set[str] = set()

    async def commit(self, loop: ControllerLoop, operations: Sequence[Operation]) -> bool:
        """Commit the operations; return False if one of them failed. Later calls leave it out.

        Raises:
            ConnectionLostError: the connection broke.
        """
        wanted = [operation for operation in operations if operation.path not in self._kept]
        for at in range(0, len(wanted), OPERATIONS_PER_MULTI):
            multi = wanted[at : at + OPERATIONS_PER_MULTI]
            try:
                await loop.commit_operations(multi)
            except ContentConflictError as conflict:
                self._kept.add(multi[conflict.index].path)
                _log.error("a znode stays, because another program has changed it: %s", conflict)
                return False
        return True
