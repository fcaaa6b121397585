"""A node with seeded bugs, `--mutants fence_off,...`, or with failpoints, `--failpoints FOLDER`.

The failpoint NAME is armed while FOLDER has a file NAME. The first process that reaches the
failpoint renames the file to NAME@BROKER and stops itself (SIGSTOP).
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from chaos.failpoints import with_failpoints
from node.__main__ import main as run_node
from node.seeded_bugs import faulty_parts


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
    """Stop this process if the failpoint is armed."""
    try:
        (folder / name).rename(folder / f"{name}@{broker}")
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGSTOP)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
