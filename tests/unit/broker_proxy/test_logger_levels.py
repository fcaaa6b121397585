"""The loggers that clients can list and set as BROKER_LOGGER resources."""

from __future__ import annotations

import logging
from pathlib import Path

import node.__main__
from broker_proxy.apis.admin.logger_levels import LoggerLevels

ROOT = Path(node.__main__.__file__).parents[1]


def test_every_logger_of_a_nodes_modules_is_known() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests", "docs"}
    names = [name for name in logging.root.manager.loggerDict if name.split(".")[0] in packages]
    ours = [name for name in names if isinstance(logging.getLogger(name), logging.Logger)]
    assert "data_plane.log.partition_log" in ours or "data_plane.partitions" in ours
    levels = LoggerLevels()
    assert [name for name in ours if not levels.exists(name)] == []
