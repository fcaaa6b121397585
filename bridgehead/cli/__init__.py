"""The `bridgehead` command, a file per group. Heavy imports are inside the commands: start fast."""

from __future__ import annotations
