"""The test build: a node with seeded bugs named on its command line, `--mutants fence_off,...`."""

from __future__ import annotations

import sys

from controller.store.port import Mutant
from node.__main__ import main

if __name__ == "__main__":
    arguments = sys.argv[1:]
    at = arguments.index("--mutants")
    names = arguments[at + 1].split(",")
    sys.exit(main(arguments[:at] + arguments[at + 2 :], frozenset(map(Mutant, names))))
