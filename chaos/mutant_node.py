"""A node with seeded bugs, `--mutants fence_off,...`, or with failpoints, `--failpoints FOLDER`.

The failpoint NAME is armed while FOLDER has a file NAME. The first process that reaches the
failpoint renames the file to NAME@BROKER. It then does what the file says: it stops itself
(SIGSTOP), or blocks its event loop until the file is deleted.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from chaos.bugs import faulty_parts
from chaos.failpoints import with_failpoints
from node.__main__ import main as run_node

STOP: Final = "stop"
BLOCK: Final = "block"
_POLL_S: Final = 0.02


def main(arguments: Sequence[str]) -> int:
    """Run the node; return its exit status."""
    parser = argparse.ArgumentParser(prog="mutant_node", description=__doc__, allow_abbrev=False)
    parser.add_argument("--mutants", default="")
    parser.add_argument("--failpoints", type=Path)
    parser.add_argument("--data-dir", type=Path, required=True)
    options, others = parser.parse_known_args(arguments)
    bugs = frozenset(filter(None, options.mutants.split(",")))
    build = partial(faulty_parts, bugs=bugs)
    if options.failpoints is not None:
        hold = partial(_hold, options.failpoints, options.data_dir.name)
        build = partial(build, extend=partial(with_failpoints, reached=hold))
    return run_node([*others, "--data-dir", str(options.data_dir)], build)


async def _hold(folder: Path, broker: str, name: str) -> None:
    """Stop this process, or block its event loop, if the failpoint is armed."""
    reached = folder / f"{name}@{broker}"
    try:
        what = (folder / name).read_text(encoding="ascii")
        (folder / name).rename(reached)
    except FileNotFoundError:
        return
    if what == STOP:
        os.kill(os.getpid(), signal.SIGSTOP)
    while what == BLOCK and reached.exists():
        time.sleep(_POLL_S)  # noqa: ASYNC251  # This must block the event loop.


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
