"""Sets up the secured cluster of docker-compose.secure.yml.

Before the first node starts, `deploy.prepare_run` calls `write_secrets`, which generates properties
and certificates from a cluster file. Once all nodes run, `main` creates users and ACLs through the
nodes' control sockets. These sockets are in volumes of the project.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from bridgehead.cluster.access_plan import certificate_properties
from bridgehead.cluster.certificates import Authority
from bridgehead.cluster.cluster_file import load_settings
from bridgehead.cluster.control_socket import call_async
from bridgehead.cluster.data_directory import write_private
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.initial_access import apply_access
from bridgehead.cluster.properties import format_properties
from bridgehead.exit_codes import ExitCode

SECRETS = Path("/secrets")
PROPERTIES = "node.properties"
DONE = Path("/tmp/users-are-set-up")  # noqa: S108 - private to this container
# Compose sets these properties, because it knows the addresses.
_ADDRESSES = ("listeners", "listener.security.protocol.map", "advertised.listeners")


def write_secrets(cluster_file: Path, folder: Path, hosts: list[str], user: str) -> None:
    """Write the nodes' properties and certificates below `folder`, readable by the owner only.

    The brokers' principal is `User:<user>`. It becomes a super user if there is an authorizer.

    Raises:
        ClusterError: the cluster file is invalid.
        OSError: a file cannot be written.
    """
    settings = load_settings(folder, config=cluster_file)
    properties = {k: v for k, v in settings.properties.items() if k not in _ADDRESSES}
    if settings.access.certificates is not None:
        authority = Authority(folder / "tls")
        brokers = authority.issue_brokers(["127.0.0.1", "localhost", *hosts])
        for name in settings.access.certificates:
            authority.issue_user(name)
        security_properties = certificate_properties(str(brokers), str(authority.certificate_file))
        properties = {**security_properties, **properties}
    supers = [
        super_user for super_user in properties.get("super.users", "").split(";") if super_user
    ]
    if "authorizer.class.name" in properties and f"User:{user}" not in supers:
        properties["super.users"] = ";".join([*supers, f"User:{user}"])
    write_private(folder / PROPERTIES, format_properties(properties).encode())


class RunningNode:
    """A node in another container, with its control socket in a shared volume."""

    def __init__(self, broker_id: int, folder: Path) -> None:
        self.id = broker_id
        self.log = f"the log of container kafka-{broker_id}"
        self._socket = folder / "control.sock"

    async def command(self, message: dict[str, Any], *, timeout_s: float = 10.0) -> dict[str, Any]:
        """Execute a command. Raises ControlError if the node rejects it or does not answer."""
        return await call_async(self._socket, message, timeout_s=timeout_s)


def main() -> int:
    """Create the users and ACLs of BRIDGEHEAD_CLUSTER_FILE; return the exit status."""
    try:
        settings = load_settings(SECRETS, config=Path(os.environ["BRIDGEHEAD_CLUSTER_FILE"]))
        brokers = range(1, int(os.environ.get("BRIDGEHEAD_BROKERS") or 3) + 1)
        nodes = [RunningNode(broker, Path(f"/nodes/{broker}")) for broker in brokers]
        asyncio.run(apply_access(nodes, settings.access))
    except ClusterError as error:
        sys.stderr.write(f"{error}\n")
        return ExitCode.CANNOT_RUN
    except OSError as error:
        sys.stderr.write(f"Users and ACLs could not be created: {error}\n")
        return ExitCode.CANNOT_RUN
    sys.stdout.write("Users and ACLs are created.\n")
    sys.stdout.flush()
    # `up --wait` waits until this service is healthy. Only a running service can be healthy, so it
    # runs until it is stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    DONE.touch()
    while True:
        signal.pause()


if __name__ == "__main__":
    sys.exit(main())
