"""One ZooKeeper server in the foreground, for containers, configured by `ZOO_*` variables.

The variables, their defaults and the folders for data and logs are the same as in the official
image, except that the admin server is off by default. So a compose file can use that image or ours.
Unsupported variables are errors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from bridgehead.cluster.errors import ClusterError

CLIENT_PORT = 2181
_SETTINGS = {
    "ZOO_TICK_TIME": ("tickTime", "2000"),
    "ZOO_INIT_LIMIT": ("initLimit", "5"),
    "ZOO_SYNC_LIMIT": ("syncLimit", "2"),
    "ZOO_MAX_CLIENT_CNXNS": ("maxClientCnxns", "60"),
    "ZOO_AUTOPURGE_PURGEINTERVAL": ("autopurge.purgeInterval", "0"),
    "ZOO_AUTOPURGE_SNAPRETAINCOUNT": ("autopurge.snapRetainCount", "3"),
    "ZOO_STANDALONE_ENABLED": ("standaloneEnabled", "true"),
    "ZOO_ADMINSERVER_ENABLED": ("admin.enableServer", "false"),
    "ZOO_4LW_COMMANDS_WHITELIST": ("4lw.commands.whitelist", "srvr"),
}
_OTHERS = {"ZOO_MY_ID", "ZOO_SERVERS", "ZOO_CFG_EXTRA", "ZOO_DATA_DIR", "ZOO_DATA_LOG_DIR"}
_SERVER = re.compile(r"server\.(\d+)=(\S+)")


def server_configuration(environment: Mapping[str, str]) -> str:
    """Return the text of zoo.cfg.

    Raises:
        ClusterError: a variable is unknown or malformed.
    """
    variables = {name for name in environment if name.startswith("ZOO_")}
    unknown = sorted(variables - _SETTINGS.keys() - _OTHERS - {"ZOO_CONF_DIR", "ZOO_LOG_DIR"})
    if unknown:
        raise ClusterError(
            f"{', '.join(unknown)} is not supported: put the setting into ZOO_CFG_EXTRA."
        )
    lines = [f"dataDir={data_folder(environment)}", f"dataLogDir={log_folder(environment)}"]
    lines += [
        f"{key}={environment.get(name) or default}" for name, (key, default) in _SETTINGS.items()
    ]
    servers = environment.get("ZOO_SERVERS", "").split()
    if servers:
        lines += [_server(server) for server in servers]
    else:
        lines.append(f"clientPort={CLIENT_PORT}")
    lines += environment.get("ZOO_CFG_EXTRA", "").split()
    return "\n".join(lines) + "\n"


def _server(text: str) -> str:
    if not _SERVER.fullmatch(text):
        raise ClusterError(f"ZOO_SERVERS contains {text}: write server.ID=host:2888:3888;2181 ...")
    return text


def data_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of snapshots and `myid`."""
    return Path(environment.get("ZOO_DATA_DIR") or "/data")


def log_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of the transaction logs."""
    return Path(environment.get("ZOO_DATA_LOG_DIR") or "/datalog")


def my_id(environment: Mapping[str, str]) -> str:
    """Return the member's number.

    Raises:
        ClusterError: ZOO_MY_ID is not a number from 1 to 255.
    """
    text = environment.get("ZOO_MY_ID") or "1"
    if not text.isdigit() or not 1 <= int(text) <= 255:
        raise ClusterError(f"ZOO_MY_ID is {text}: give each member a number from 1 to 255.")
    return text
