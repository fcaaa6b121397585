"""A program with a node's interface to its supervisor, without Kafka or ZooKeeper.

The nodes share a folder. Its file `controller` names the active controller: `ID EPOCH PID`. The
command `state` makes a node the active controller if there is none or if the process PID is dead.
A node does not become active while another node is pinned as the controller.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from bridgehead.cluster.control_socket import ControlError, serve
from bridgehead.cluster.properties import parse_properties


class ControllerState:
    """The active controller, stored in a file. Each access locks the file."""

    def __init__(self, path: Path, node_id: int) -> None:
        self.path, self.id = path, node_id

    def update(self, *, eligible: bool, resign: bool = False) -> tuple[int | None, int]:
        """Resign or become active; return the active controller (or None) and its epoch.

        With `resign` this node resigns if it is active. Otherwise it becomes active if it is
        `eligible` and no node is active.
        """
        with self.path.open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            holder, epoch, pid = (int(word) for word in (file.read().split() or ("0", "0", "0")))
            vacant = holder == 0 or not Path(f"/proc/{pid}").exists() or _is_zombie(pid)
            before = (holder, epoch, pid)
            if resign and pid == os.getpid():
                holder, pid = 0, 0
            elif vacant and eligible:
                holder, epoch, pid = self.id, epoch + 1, os.getpid()
            elif vacant:
                holder = 0
            if (holder, epoch, pid) != before:
                file.truncate(0)
                file.write(f"{holder} {epoch} {pid}")
            return holder or None, epoch


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def write_ready(data_dir: Path, node_id: int, address: str, properties: dict[str, str]) -> None:
    ready = {
        "id": node_id,
        "pid": os.getpid(),
        "incarnation": f"fake-{os.getpid()}",
        "listeners": {"PLAINTEXT": address},
        "metrics_url": f"http://{properties['bridgehead.metrics.listener']}/metrics",
        "grpc": "127.0.0.1:0",
    }
    temporary = data_dir / "ready.tmp"
    temporary.write_text(json.dumps(ready))
    temporary.rename(data_dir / "ready.json")


async def main() -> int:
    parser = argparse.ArgumentParser()
    for option in ("--config", "--data-dir", "--log-file"):
        parser.add_argument(option, type=Path, required=True)
    arguments = parser.parse_args()
    properties = parse_properties(arguments.config.read_text())
    node_id = int(properties["broker.id"])
    if "fake.refuse" in properties:
        print(properties["fake.refuse"], file=sys.stderr)
        return 2
    state = ControllerState(arguments.data_dir.parent / "controller", node_id)
    pinned = properties.get("bridgehead.controller.pinned")
    wanted: list[int | None] = [int(pinned) if pinned else None]
    stopping = asyncio.Event()

    def elect() -> tuple[int | None, int]:
        return state.update(eligible=wanted[0] in (None, node_id))

    async def execute(message: dict[str, Any]) -> dict[str, Any]:
        match message["command"]:
            case "state":
                controller_id, epoch = elect()
                return {
                    "id": node_id,
                    "is_controller": controller_id == node_id,
                    "controller_id": controller_id,
                    "controller_epoch": epoch,
                    "cluster_id": "fake-cluster",
                }
            case "resign" | "expire":
                state.update(eligible=False, resign=True)
            case "pin":
                wanted[0] = message["controller_id"]
            case "stop":
                stopping.set()
            case other:
                raise ControlError(f"{other} is unknown")
        return {}

    loop = asyncio.get_running_loop()

    def read_pipe() -> None:
        if not os.read(0, 1):
            loop.remove_reader(0)
            stopping.set()

    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    if os.environ.get("BRIDGEHEAD_PARENT_PIPE") == "1":
        loop.add_reader(0, read_pipe)
    host, port = properties["listeners"].split("://")[1].rsplit(":", 1)
    async with await asyncio.start_server(lambda _, writer: writer.close(), host, int(port)):
        control = await serve(arguments.data_dir / "control.sock", execute)
        if "fake.never.ready" not in properties:
            write_ready(arguments.data_dir, node_id, f"{host}:{port}", properties)
        await stopping.wait()
        control.close()
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
