"""What a supervisor can be asked over its socket: one function per command, one table.

Read first: a message is `{"command": NAME, ...}`; the answer is an object. Refusals are sentences
(`ClusterError`). A new command is a function here, a line in COMMANDS, a method of `ClusterClient`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.node_process import NodeProcess
from bridgehead.cluster.upgrade import ENVELOPE, LEVEL

if TYPE_CHECKING:
    from bridgehead.cluster.supervisor import Supervisor

Message = dict[str, Any]

_MOVE_TIMEOUT_S = 30.0
_START_TIMEOUT_S = 60.0
_POLL_S = 0.02


async def obey(supervisor: Supervisor, message: Message) -> Message:
    """Carries out one command.

    Raises:
        ClusterError: it cannot be done, and why.
        ControlError: a node refused or did not answer.
    """
    command = COMMANDS.get(str(message.get("command")))
    if command is None:
        raise ClusterError(f"The command {message.get('command')!r} is unknown.")
    return await command(supervisor, message)


async def _status(supervisor: Supervisor, _: Message) -> Message:
    states = await supervisor.node_states()
    ready = {node.id: _said(node) for node in supervisor.nodes.values()}
    controller = await supervisor.controller_in_office()
    zookeeper = supervisor.zookeeper
    return {
        "phase": supervisor.phase,
        "data_dir": str(supervisor.directory.root),
        "zookeeper_connect": supervisor.settings.zookeeper_connect
        or (zookeeper.connect if zookeeper is not None else ""),
        "zookeeper_pid": zookeeper.pid() if zookeeper is not None else None,
        "cluster_id": supervisor.document.get("cluster_id"),
        "controller_id": controller["id"] if controller is not None else None,
        "controller_epoch": controller.get("controller_epoch") if controller is not None else None,
        "brokers": [
            {
                "id": node.id,
                "condition": node.condition,
                "pid": node.pid,
                "listeners": ready[node.id].get("listeners", {}),
                "metrics_url": ready[node.id].get("metrics_url"),
                "log": str(node.log),
                "state": states[node.id],
            }
            for node in supervisor.nodes.values()
        ],
    }


async def _down(supervisor: Supervisor, _: Message) -> Message:
    supervisor.request_stop()
    return {"stopping": True}


async def _node_start(supervisor: Supervisor, message: Message) -> Message:
    """Waits until the broker serves and knows the controller, as `up` does."""
    node = _node(supervisor, message)
    supervisor.record.note_ends([node])
    node.start()
    deadline = asyncio.get_running_loop().time() + _START_TIMEOUT_S
    while (ready := node.ready()) is None or not await _knows_controller(node):
        if asyncio.get_running_loop().time() > deadline:
            lacks = "did not serve" if ready is None else "served, but knew no controller"
            raise ClusterError(
                f"Broker {node.id} {lacks} within {_START_TIMEOUT_S:.0f} s: see {node.log}."
            )
        await asyncio.sleep(_POLL_S)
    await supervisor.write_document()
    return {"id": node.id, "pid": node.pid, "listeners": ready["listeners"]}


async def _node_restart(supervisor: Supervisor, message: Message) -> Message:
    """Stops a broker, starts it with other properties, waits until all know each other."""
    node = _running_node(supervisor, message)
    properties = dict(message.get("properties", {}))
    if unknown := set(properties) - {ENVELOPE, LEVEL}:
        raise ClusterError(f"A restart cannot change {', '.join(sorted(unknown))}.")
    now = asyncio.get_running_loop().time
    began = now()
    await _node_stop(supervisor, message)
    node.plan.properties.update(properties)
    answer = await _node_start(supervisor, message)
    deadline = now() + _START_TIMEOUT_S
    while not await supervisor.all_know_each_other():
        if now() > deadline:
            raise ClusterError(
                f"Broker {node.id} serves, but the brokers did not all hear of each other within "
                f"{_START_TIMEOUT_S:.0f} s: see {node.log}."
            )
        await asyncio.sleep(_POLL_S)
    await supervisor.write_document()
    return {
        **answer,
        "seconds": now() - began,
        "controller_id": supervisor.document["controller_id"],
    }


async def _knows_controller(node: NodeProcess) -> bool:
    state = await node.state()
    return state is not None and state.get("controller_id") is not None


async def _node_stop(supervisor: Supervisor, message: Message) -> Message:
    node = _running_node(supervisor, message)
    pid = node.pid
    supervisor.record.fault_injected("stop", node.id)
    await asyncio.to_thread(node.stop)
    return {"id": node.id, "pid": pid}


async def _node_kill(supervisor: Supervisor, message: Message) -> Message:
    node = _running_node(supervisor, message)
    pid = node.pid
    supervisor.record.fault_injected("kill", node.id)
    node.kill()
    return {"id": node.id, "pid": pid}


async def _controller_show(supervisor: Supervisor, _: Message) -> Message:
    controller = await supervisor.controller_in_office()
    if controller is None:
        return {"controller_id": None, "controller_epoch": None, "state": None}
    return {
        "controller_id": controller["id"],
        "controller_epoch": controller.get("controller_epoch"),
        "state": controller,
    }


async def _controller_kill(supervisor: Supervisor, _: Message) -> Message:
    node = await _controller_node(supervisor)
    pid = node.pid
    supervisor.record.fault_injected("kill", node.id)
    node.kill()
    return {"id": node.id, "pid": pid}


async def _controller_freeze(supervisor: Supervisor, message: Message) -> Message:
    seconds = float(message.get("seconds", 5.0))
    node = await _controller_node(supervisor)
    supervisor.record.fault_injected("freeze", node.id)
    node.freeze()
    supervisor.thaw_later(node, seconds)
    return {"id": node.id, "pid": node.pid, "seconds": seconds}


async def _controller_expire(supervisor: Supervisor, _: Message) -> Message:
    node = await _controller_node(supervisor)
    supervisor.record.fault_injected("expire", node.id)
    await node.command({"command": "expire", "session": "controller"})
    return {"id": node.id, "pid": node.pid}


async def _controller_move(supervisor: Supervisor, message: Message) -> Message:
    """Pins every node to the wanted one, lets the present controller resign, waits, unpins.

    Where the cluster was started with a pinned controller, the pin moves along: unpinned, or pinned
    to the old one, it would go back at once.
    """
    target = _running_node(supervisor, message)
    present = await _controller_node(supervisor)
    nodes = supervisor.nodes.values()
    running = [node for node in nodes if node.is_running() and node.condition != "frozen"]
    moved = present.id != target.id
    pinned = supervisor.pinned
    try:
        if moved:
            await _stand_for(running, target.id)
            await present.command({"command": "resign"})
            await _until_controller(supervisor, target.id)
        if pinned is not None:
            pinned = target.id
            supervisor.pin(pinned)
    finally:
        await _stand_for(running, pinned)
    return {"id": target.id, "from": present.id, "moved": moved}


async def _stand_for(nodes: list[NodeProcess], controller_id: int | None) -> None:
    message = {"command": "stand_for", "controller_id": controller_id}
    results = await asyncio.gather(
        *(node.command(message) for node in nodes if node.is_running()), return_exceptions=True
    )
    failures = [result for result in results if isinstance(result, BaseException)]
    if failures:
        raise failures[0]


async def _until_controller(supervisor: Supervisor, controller_id: int) -> None:
    deadline = asyncio.get_running_loop().time() + _MOVE_TIMEOUT_S
    while True:
        controller = await supervisor.controller_in_office()
        if controller is not None and controller["id"] == controller_id:
            return
        if asyncio.get_running_loop().time() > deadline:
            raise ClusterError(
                f"Broker {controller_id} did not become controller within {_MOVE_TIMEOUT_S:.0f} s."
            )
        await asyncio.sleep(_POLL_S)


async def _controller_node(supervisor: Supervisor) -> NodeProcess:
    """The node in office: the one of the highest epoch among those that say so."""
    states = await supervisor.node_states()
    in_office = [state for state in states.values() if state and state.get("is_controller")]
    if not in_office:
        raise ClusterError(
            "No controller is in office now: try again when `bridgehead status` shows one."
        )
    latest = max(in_office, key=lambda state: int(state.get("controller_epoch") or 0))
    return supervisor.nodes[int(latest["id"])]


def _node(supervisor: Supervisor, message: Message) -> NodeProcess:
    node = supervisor.nodes.get(int(message.get("id", 0)))
    if node is None:
        known = ", ".join(str(node_id) for node_id in supervisor.nodes)
        raise ClusterError(f"There is no broker {message.get('id')}: the brokers are {known}.")
    return node


def _running_node(supervisor: Supervisor, message: Message) -> NodeProcess:
    node = _node(supervisor, message)
    if not node.is_running():
        raise ClusterError(
            f"Broker {node.id} is not running: start it with `bridgehead node start {node.id}`."
        )
    return node


def _said(node: NodeProcess) -> Message:
    try:
        return node.ready() or {}
    except ClusterError:
        return {}


COMMANDS: dict[str, Callable[[Supervisor, Message], Awaitable[Message]]] = {
    "status": _status,
    "down": _down,
    "node_start": _node_start,
    "node_restart": _node_restart,
    "node_stop": _node_stop,
    "node_kill": _node_kill,
    "controller_show": _controller_show,
    "controller_kill": _controller_kill,
    "controller_freeze": _controller_freeze,
    "controller_expire": _controller_expire,
    "controller_move": _controller_move,
}
