"""What the one-shot services of a secured compose project do: certificates, properties, users.

Before the first node: `write_secrets` makes what nodes need of a cluster's file. After the last
one: `main` sets up users and ACLs through the product's own APIs, over the nodes' control sockets,
which lie in volumes that only this project has.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from bridgehead.cluster.certificates import Authority
from bridgehead.cluster.cluster_file import load_settings
from bridgehead.cluster.control_socket import ask
from bridgehead.cluster.data_directory import write_private
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.properties import format_properties
from bridgehead.cluster.set_up import set_up
from bridgehead.cluster.set_up_plan import certificate_properties

SECRETS = Path("/secrets")
PROPERTIES = "node.properties"
DONE = Path("/tmp/users-are-set-up")  # noqa: S108 - a file system of this container alone
# What compose itself says of listeners, because only it knows the addresses.
_ADDRESSES = ("listeners", "listener.security.protocol.map", "advertised.listeners")


def write_secrets(cluster_file: Path, folder: Path, hosts: list[str], user: str) -> None:
    """Write the nodes' properties and certificates below `folder`, for its owner alone.

    Brokers act as `user` among themselves, who must be allowed to.

    Raises:
        ClusterError: the file is wrong. OSError: the folder cannot be written.
    """
    settings = load_settings(folder, config=cluster_file)
    properties = {k: v for k, v in settings.properties.items() if k not in _ADDRESSES}
    if settings.set_up.certificates is not None:
        authority = Authority(folder / "tls")
        brokers = authority.issue_brokers(["127.0.0.1", "localhost", *hosts])
        for name in settings.set_up.certificates:
            authority.issue_user(name)
        made = certificate_properties(str(brokers), str(authority.certificate_file))
        properties = {**made, **properties}
    supers = [each for each in properties.get("super.users", "").split(";") if each]
    if "authorizer.class.name" in properties and f"User:{user}" not in supers:
        properties["super.users"] = ";".join([*supers, f"User:{user}"])
    write_private(folder / PROPERTIES, format_properties(properties).encode())


class RunningNode:
    """A node in another container, by the control socket in its volume."""

    def __init__(self, broker_id: int, folder: Path) -> None:
        self.id = broker_id
        self.log = folder / "control.sock"

    async def command(self, message: dict[str, Any], *, timeout_s: float = 10.0) -> dict[str, Any]:
        """Ask it something. Raises ControlError."""
        return await ask(self.log, message, timeout_s=timeout_s)


def main() -> int:
    """Set up the users and ACLs of BRIDGEHEAD_CLUSTER_FILE; return the exit status."""
    try:
        settings = load_settings(SECRETS, config=Path(os.environ["BRIDGEHEAD_CLUSTER_FILE"]))
        brokers = range(1, int(os.environ.get("BRIDGEHEAD_BROKERS") or 3) + 1)
        nodes = [RunningNode(each, Path(f"/nodes/{each}")) for each in brokers]
        asyncio.run(set_up(nodes, settings.set_up))
    except (ClusterError, OSError) as wrong:
        sys.stderr.write(f"Users and ACLs are not set up: {wrong}\n")
        return 2
    sys.stdout.write("Users and ACLs are set up.\n")
    sys.stdout.flush()
    # `up --wait` waits for health, which only what runs can have: stay until told to go.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    DONE.touch()
    while True:
        signal.pause()


if __name__ == "__main__":
    sys.exit(main())
