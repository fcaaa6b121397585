"""A node with the seeded bugs named on its command line; see chaos/mutant_node.py."""

from __future__ import annotations

import sys

from chaos.mutant_node import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
