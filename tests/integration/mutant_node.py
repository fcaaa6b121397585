"""A node with the seeded bugs named on its command line, `--mutants fence_off,...`."""

from __future__ import annotations

import sys
from functools import partial

from node.__main__ import main
from node.seeded_bugs import faulty_parts

if __name__ == "__main__":
    arguments = sys.argv[1:]
    at = arguments.index("--mutants")
    bugs = frozenset(arguments[at + 1].split(","))
    sys.exit(main(arguments[:at] + arguments[at + 2 :], partial(faulty_parts, bugs=bugs)))
