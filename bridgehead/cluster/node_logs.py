"""The last lines of the nodes' logs, for `bridgehead logs` and the control API."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bridgehead.cluster.errors import ClusterError

# A log may be large; of each only this much is read.
_TAIL_BYTES: Final = 4 << 20


def log_files(root: Path, broker: int | None) -> list[tuple[int, Path]]:
    """Return the id and the log of one broker, or of all brokers.

    Raises:
        ClusterError: there is no such log.
    """
    logs = {int(path.parent.name): path for path in (root / "nodes").glob("*/node.log")}
    chosen = [(node, logs[node]) for node in sorted(logs) if broker in (None, node)]
    if not chosen:
        which = "any broker" if broker is None else f"broker {broker}"
        raise ClusterError(f"{root / 'nodes'} has no log of {which}: check --data-dir.")
    return chosen


def last_lines(path: Path, count: int, *, whole: bool = False) -> tuple[list[str], int]:
    """Return the last lines of a log, and the offset of their end.

    With `whole`, an incomplete last line does not count.
    """
    with path.open("rb") as log:
        end = log.seek(0, 2)
        start = max(0, end - _TAIL_BYTES)
        log.seek(start)
        data = log.read(end - start)
    if whole:
        data = data[: data.rfind(b"\n") + 1]
    lines = data.decode("utf-8", "replace").splitlines()
    if start:  # It begins in the middle of a line.
        del lines[:1]
    return lines[-count:] if count else [], start + len(data)
