"""A node with the seeded bugs named on its command line, `--mutants fence_off,...`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

from node.__main__ import main as run_node
from node.seeded_bugs import faulty_parts


def main(arguments: Sequence[str]) -> int:
    """Run the node; return its exit status."""
    at = list(arguments).index("--mutants")
    bugs = frozenset(arguments[at + 1].split(","))
    others = [*arguments[:at], *arguments[at + 2 :]]
    return run_node(others, partial(faulty_parts, bugs=bugs))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
