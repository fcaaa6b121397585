"""Kafka's command-line tools as `bridgehead` commands: one file per tool, listed in `TOOLS`.

A tool's file declares its options. It has functions that check, parse and format without I/O, and
a function `_run` that combines them with calls of the admin client. `tool.py` has the common parts.
"""

from __future__ import annotations

from typing import Final

from bridgehead.cli.tools import (
    acls,
    broker_api_versions,
    cluster,
    configs,
    delegation_tokens,
    delete_records,
    features,
    groups,
    leader_election,
    log_dirs,
    reassign_partitions,
    topics,
)
from bridgehead.cli.tools.tool import Tool

TOOLS: Final[tuple[Tool, ...]] = (
    topics.TOOL,
    configs.TOOL,
    acls.TOOL,
    delegation_tokens.TOOL,
    reassign_partitions.TOOL,
    leader_election.TOOL,
    delete_records.TOOL,
    groups.TOOL,
    cluster.TOOL,
    log_dirs.TOOL,
    features.TOOL,
    broker_api_versions.TOOL,
)
