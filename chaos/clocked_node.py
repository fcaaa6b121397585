"""A node whose wall clock is shifted: `--clocks FOLDER --libfaketime PATH NODE_OPTIONS`.

The file `FOLDER/ID` has the offset of broker ID in seconds, such as `+3600`. libfaketime reads this
file once a second and shifts the clock. The monotonic clock is not changed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_LIBRARIES: Final = Path("/usr/lib")


def libfaketime() -> Path | None:
    """Return the path of libfaketime for programs with threads; None if it is not installed."""
    return next(iter(sorted(_LIBRARIES.glob("*/faketime/libfaketimeMT.so.1"))), None)


def set_clock(clocks: Path, name: int | str, offset_s: int) -> None:
    """Shift a process's wall clock."""
    new = clocks / "new"
    new.write_text(f"{offset_s:+d}\n", encoding="ascii")
    new.rename(clocks / str(name))


def main(arguments: Sequence[str]) -> int:
    """Run the node; return its exit status."""
    options = dict(zip(arguments[:4:2], arguments[1:4:2], strict=True))
    node = list(arguments[4:])
    if "LD_PRELOAD" not in os.environ:
        broker_id = Path(node[node.index("--data-dir") + 1]).name
        clock = {
            "LD_PRELOAD": options["--libfaketime"],
            "FAKETIME_TIMESTAMP_FILE": f"{options['--clocks']}/{broker_id}",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_CACHE_DURATION": "1",
        }
        # `exec` keeps the pid, which the supervisor watches.
        command = [sys.executable, "-P", "-m", "chaos.clocked_node", *arguments]
        os.execve(sys.executable, command, {**os.environ, **clock})  # noqa: S606
    from node.__main__ import main as run_node

    return run_node(node)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
