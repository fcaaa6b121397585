"""The `bridgehead` command, with a module for each group of subcommands.

Heavy imports are inside the commands, so that the command starts fast.
"""

from __future__ import annotations
