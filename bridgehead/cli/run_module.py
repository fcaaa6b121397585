"""`python -m bridgehead.cli.run_module MODULE ARGUMENT...` runs a module for a command.

Unlike `python -m MODULE` it ends quietly when its output is closed.
"""

from __future__ import annotations

import runpy
import sys

from bridgehead.cli.closed_output import quiet_when_output_is_closed

if __name__ == "__main__":
    del sys.argv[0]
    with quiet_when_output_is_closed():
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
