"""`python -m bridgehead`: the `bridgehead` command."""

from __future__ import annotations

from bridgehead.cli.main import main

if __name__ == "__main__":
    main()
