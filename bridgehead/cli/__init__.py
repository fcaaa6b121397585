"""The `bridgehead` command: one file per group of commands, heavy imports inside the commands."""

from __future__ import annotations
