"""`python -m bridgehead.cli.run_module MODULE ARGUMENT...`: `python -m MODULE`, for commands.

It ends quietly when its output is closed.
"""

from __future__ import annotations

import runpy
import sys

from bridgehead.cli.closed_output import quiet_when_output_is_closed

if __name__ == "__main__":
    del sys.argv[0]
    with quiet_when_output_is_closed():
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
