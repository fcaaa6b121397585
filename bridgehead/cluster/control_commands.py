"""The commands of the supervisor, one function each: for its control socket and for HTTP.

A message is `{"command": NAME, ...}`; the result is an object. Errors are one sentence. To add a
command, add a function here, a line in COMMANDS, a method of `ClusterClient`, and its operation to
`bridgehead.control_api.operations`.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Set
from functools import partial
from pathlib import Path
from typing import Any, Final

from bridgehead.application import module_command, module_environment
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.node_logs import last_lines, log_files
from bridgehead.cluster.node_process import NodeProcess
from bridgehead.cluster.reset import reset
from bridgehead.cluster.running_cluster import RunningCluster, wait_until
from bridgehead.cluster.settings import check_addresses
from bridgehead.cluster.upgrade import upgrade_next
from bridgehead.fault_rules import free_name

Message = dict[str, Any]

_MOVE_TIMEOUT_S = 30.0
_START_TIMEOUT_S = 60.0
_JUDGE_TIMEOUT_S = 300.0


async def execute(cluster: RunningCluster, message: Message) -> Message:
    """Execute one command.

    Raises:
        ClusterError: the command cannot be executed; the message says why.
        ControlError: a node answered with an error, or not at all.
    """
    command = COMMANDS.get(str(message.get("command")))
    if command is None:
        raise ClusterError(f"The command {message.get('command')!r} is unknown.")
    if message["command"] not in _ALWAYS.get(cluster.phase, COMMANDS):
        raise ClusterError(
            "The run is sealed: only judging it and `down` are possible."
            if cluster.phase == "sealed"
            else f"The cluster is {cluster.phase}: try again when it is ready."
        )
    return await command(cluster, message)


_READING: Final = {"status", "health", "controller_show", "controller_wait", "logs"}
_ALWAYS: Final[Mapping[str, Set[str]]] = {
    "starting": {*_READING, "advertise"},
    "waiting": {*_READING, "advertise"},
    "sealed": {"status", "health", "logs", "evidence_seal", "judge", "evidence"},
    "stopping": _READING,
}
"""The commands that are possible in each phase; in other phases all are."""


async def _health(cluster: RunningCluster, _: Message) -> Message:
    """Check the contract of `up`: see docs/container.md#when-is-a-cluster-ready."""
    is_ready = cluster.phase == "ready" and await cluster.is_complete()
    controller = await cluster.active_controller() or {}
    return {"ready": is_ready, "phase": cluster.phase, "controller_id": controller.get("id")}


async def _client(cluster: RunningCluster, _: Message) -> Message:
    """Return what a client needs to connect to the first listener of each broker."""
    properties = next(iter(cluster.nodes.values())).plan.properties
    name = next(iter(cluster.document["brokers"][0]["listeners"]))
    protocols = properties.get("listener.security.protocol.map", "")
    named = dict(pair.strip().split(":") for pair in protocols.split(",") if pair.strip())
    protocol = named.get(name, name)
    mechanisms = properties.get(
        f"listener.name.{name.lower()}.sasl.enabled.mechanisms",
        properties.get("sasl.enabled.mechanisms", "GSSAPI"),
    )
    has_authority = cluster.settings.access.certificates is not None
    return {
        "bootstrap_servers": cluster.document["bootstrap_servers"],
        "security_protocol": protocol,
        "sasl_mechanisms": mechanisms.split(",") if protocol.startswith("SASL") else [],
        "certificate_authority": (cluster.directory.tls / "ca.pem").read_text("ascii")
        if has_authority
        else None,
    }


async def _advertise(cluster: RunningCluster, message: Message) -> Message:
    """Give a waiting cluster the addresses of its brokers; return when it is ready."""
    if not cluster.settings.advertised_late or cluster.has_addresses.is_set():
        raise ClusterError(
            "The cluster does not wait for addresses: start it with BRIDGEHEAD_ADVERTISED=late."
        )
    addressed = {str(broker): str(address) for broker, address in message["addresses"].items()}
    expected = [str(number) for number in range(1, cluster.settings.brokers + 1)]
    if set(addressed) != set(expected):
        raise ClusterError(f"`addresses` has one member for each broker: {', '.join(expected)}.")
    addresses = [addressed[broker] for broker in expected]
    check_addresses(addresses, cluster.settings.brokers)
    cluster.late_addresses = addresses
    cluster.has_addresses.set()
    try:
        async with asyncio.timeout(_START_TIMEOUT_S):
            await cluster.has_started.wait()
    except TimeoutError:
        raise ClusterError(
            f"The cluster was not ready within {_START_TIMEOUT_S:.0f} s: see "
            f"{cluster.directory.root / 'nodes'}."
        ) from None
    return {"bootstrap_servers": cluster.document["bootstrap_servers"]}


async def _logs(cluster: RunningCluster, message: Message) -> Message:
    """Return the last lines of the nodes' logs."""
    paths = log_files(cluster.directory.root, message.get("broker"))
    count = int(message.get("lines", 20))
    lines = {broker: await asyncio.to_thread(last_lines, path, count) for broker, path in paths}
    return {"logs": {str(broker): text for broker, (text, _) in lines.items()}}


async def _evidence_seal(cluster: RunningCluster, _: Message) -> Message:
    """Stop the processes and seal the run; the supervisor stays, to judge it."""
    if not cluster.settings.keep_evidence:
        raise ClusterError("The evidence of a cluster in a temporary folder is not kept.")
    cluster.phase = "sealed"
    await cluster.stop()
    return {"folder": str(_sealed_run(cluster))}


async def _judge(cluster: RunningCluster, _: Message) -> Message:
    """Run the judge on the sealed run; return its document."""
    key = cluster.settings.seal_key  # Only its path: a process list shows the arguments.
    options = [] if key is None else [f"--seal-key={key}"]
    process = await asyncio.create_subprocess_exec(
        *module_command("judge", str(_sealed_run(cluster)), "--json", *options),
        env=module_environment(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_JUDGE_TIMEOUT_S):
            output, errors = await process.communicate()
    except TimeoutError:
        process.kill()
        raise ClusterError(f"The judge took more than {_JUDGE_TIMEOUT_S:.0f} s.") from None
    if not output:
        lines = errors.decode("utf-8", "replace").strip().splitlines()
        raise ClusterError(lines[-1] if lines else "The judge returned no verdict.")
    return dict(json.loads(output))


async def _evidence(cluster: RunningCluster, _: Message) -> Message:
    """Write the sealed run to an archive, which the caller deletes; return its path."""
    folder = _sealed_run(cluster)
    descriptor, name = tempfile.mkstemp(suffix=".tar.gz", dir=cluster.directory.root)

    def write() -> None:
        import tarfile  # only here: its import would delay every start

        with open(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
            archive.add(folder, arcname=f"evidence/{folder.name}")

    await asyncio.to_thread(write)
    return {"file": name}


def _sealed_run(cluster: RunningCluster) -> Path:
    folder = cluster.record.folder
    if cluster.phase != "sealed":
        raise ClusterError("The run is not sealed: POST /evidence/seal seals it.")
    if not (folder / "manifest.json").is_file():
        raise ClusterError(f"{folder} is not sealed: see the supervisor's output.")
    return folder


async def _status(cluster: RunningCluster, _: Message) -> Message:
    states = await cluster.node_states()
    controller = await cluster.active_controller() or {}
    zookeeper = cluster.zookeeper
    phase, problem = cluster.phase, None
    if phase == "ready":
        problem = cluster.zookeeper_problem(states.values())
        phase = "degraded" if problem else "ready" if controller else "no controller"
    return {
        "phase": phase,
        "data_dir": str(cluster.directory.root),
        "zookeeper_connect": cluster.settings.zookeeper_connect
        or (zookeeper.connect if zookeeper is not None else ""),
        "zookeeper_pid": zookeeper.pid() if zookeeper is not None else None,
        "zookeeper_problem": problem,
        "cluster_id": cluster.document.get("cluster_id"),
        "controller_id": controller.get("id"),
        "controller_epoch": controller.get("controller_epoch"),
        "brokers": [
            {
                "id": node.id,
                "condition": node.condition,
                "pid": node.pid,
                **node.addresses,
                "log": str(node.log),
                "state": states[node.id],
            }
            for node in cluster.nodes.values()
        ],
        "evidence_dir": str(cluster.record.folder),
        "faults": list(cluster.record.faults),
    }


async def _node_start(cluster: RunningCluster, message: Message) -> Message:
    """Start a broker; return when it serves and knows the controller, like `up`."""
    node = _node(cluster, message)
    cluster.record.note_ends([node])
    cluster.start_process(node)

    async def serves() -> bool:
        if not node.is_ready():
            return False
        state = await node.state()
        return state is not None and state.get("controller_id") is not None

    async def late() -> str:
        problem = "did not find the controller" if node.is_ready() else "did not serve"
        return f"Broker {node.id} {problem} within {_START_TIMEOUT_S:.0f} s: see {node.log}."

    await wait_until(serves, _START_TIMEOUT_S, late)
    await cluster.write_document()
    return {"id": node.id, "pid": node.pid, "listeners": node.addresses["listeners"]}


async def _upgrade(cluster: RunningCluster, _: Message) -> Message:
    return await upgrade_next(await _status(cluster, {}), partial(_node_restart, cluster))


async def _node_restart(
    cluster: RunningCluster, broker: int, properties: Mapping[str, str]
) -> Message:
    """Stop a broker and start it with other properties; return when all brokers know each other."""
    message = {"id": broker}
    node = _running_node(cluster, message)
    began = asyncio.get_running_loop().time()
    await _node_stop(cluster, message)
    node.plan.properties.update(properties)
    cluster.was_upgraded = True
    started = await _node_start(cluster, message)

    async def late() -> str:
        return (
            f"Broker {node.id} serves, but the brokers did not all find each other within "
            f"{_START_TIMEOUT_S:.0f} s: see {node.log}."
        )

    await wait_until(cluster.is_complete, _START_TIMEOUT_S, late)
    await cluster.write_document()
    seconds = asyncio.get_running_loop().time() - began
    return {**started, "seconds": seconds, "controller_id": cluster.document["controller_id"]}


async def _node_stop(cluster: RunningCluster, message: Message) -> Message:
    node = _running_node(cluster, message)
    pid = node.pid
    cluster.end_pause(node)
    cluster.record.fault_injected("stop", node.id)
    await asyncio.to_thread(node.stop)
    return {"id": node.id, "pid": pid}


async def _node_kill(cluster: RunningCluster, message: Message) -> Message:
    return _kill(cluster, _running_node(cluster, message))


async def _controller_kill(cluster: RunningCluster, _: Message) -> Message:
    return _kill(cluster, await _controller_node(cluster))


def _kill(cluster: RunningCluster, node: NodeProcess) -> Message:
    pid = node.pid
    cluster.end_pause(node)
    cluster.record.fault_injected("kill", node.id)
    node.kill()
    return {"id": node.id, "pid": pid}


async def _zookeeper_start(cluster: RunningCluster, _: Message) -> Message:
    """Start the embedded members that have exited; return when all members serve."""
    zookeeper = cluster.zookeeper
    if zookeeper is None:
        raise ClusterError("The cluster uses an external ZooKeeper: start that server yourself.")
    exited = list(zookeeper.exits())
    if not exited:
        raise ClusterError(f"ZooKeeper is running already, as pid {zookeeper.pid()}.")
    for member_id in exited:
        await asyncio.to_thread(zookeeper.start_member, member_id)

    async def late() -> str:
        return f"ZooKeeper did not serve within {_START_TIMEOUT_S:.0f} s: see {zookeeper.folder}."

    await wait_until(lambda: asyncio.to_thread(zookeeper.is_serving), _START_TIMEOUT_S, late)
    await cluster.write_document()
    return {"connect": zookeeper.connect, "pids": [zookeeper.pid(member) for member in exited]}


async def _heal(cluster: RunningCluster, _: Message) -> Message:
    """Resume and start processes, and remove fault rules.

    If the controller was moved from the broker that the settings pin, move it back.
    """
    cluster.thaw_now()
    for node in cluster.nodes.values():
        if node.is_running() and node.allows_faults:
            await node.command({"command": "faults_remove"})
    if cluster.zookeeper is not None and cluster.zookeeper.exits():
        await _zookeeper_start(cluster, {})
    down = [node for node in cluster.nodes.values() if not node.is_running()]
    cluster.record.note_ends(down)
    for node in down:
        cluster.start_process(node)

    async def is_whole() -> bool:
        ready = [node.is_ready() for node in cluster.nodes.values()]
        return all(ready) and await cluster.is_complete()

    async def late() -> str:
        return (
            f"The brokers did not all serve and find each other within {_START_TIMEOUT_S:.0f} s: "
            f"see {cluster.directory.root / 'nodes'}."
        )

    await wait_until(is_whole, _START_TIMEOUT_S, late)
    pinned = cluster.settings.controller
    if cluster.pinned != pinned and pinned is not None:
        await _controller_move(cluster, {"id": pinned})
        await wait_until(is_whole, _START_TIMEOUT_S, late)
    await cluster.write_document()
    return {"started": [node.id for node in down]}


async def _reset(cluster: RunningCluster, message: Message) -> Message:
    healed = await _heal(cluster, message)
    await reset(cluster)
    return healed


async def _controller_show(cluster: RunningCluster, _: Message) -> Message:
    controller = await cluster.active_controller()
    fields = controller or {}
    return {
        "controller_id": fields.get("id"),
        "controller_epoch": fields.get("controller_epoch"),
        "state": controller,
    }


async def _controller_wait(cluster: RunningCluster, message: Message) -> Message:
    """Wait until every broker that answers names the same active controller."""
    timeout_s, other_than = float(message.get("timeout_s", 30.0)), message.get("other_than")

    awaited: list[int] = []

    async def is_active() -> bool:
        controller = await cluster.active_controller()
        if controller is not None and controller["id"] != other_than:
            awaited.append(controller["id"])
        return bool(awaited)

    async def late() -> str:
        other = "" if other_than is None else f" other than broker {other_than}"
        return f"No controller{other} became active within {timeout_s:g} s."

    await wait_until(is_active, timeout_s, late)
    return {"controller_id": awaited[-1]}


async def _controller_freeze(cluster: RunningCluster, message: Message) -> Message:
    seconds = float(message.get("seconds", 5.0))
    node = await _controller_node(cluster)
    cluster.record.fault_injected("pause", node.id)
    node.freeze()
    cluster.thaw_later(node, seconds)
    return {"id": node.id, "pid": node.pid, "seconds": seconds}


async def _controller_expire(cluster: RunningCluster, _: Message) -> Message:
    node = await _controller_node(cluster)
    cluster.record.fault_injected("expire", node.id)
    await node.command({"command": "expire", "session": "controller"})
    return {"id": node.id, "pid": node.pid}


async def _controller_move(cluster: RunningCluster, message: Message) -> Message:
    """Pin the controller to the target, make the active controller resign, wait for the target.

    Then remove the pin, unless the controller was already pinned: its old pin would move it back
    immediately, so the new pin stays.
    """
    target = _running_node(cluster, message)
    current = await _controller_node(cluster)
    nodes = cluster.nodes.values()
    running = [node for node in nodes if node.is_running() and node.condition != "frozen"]
    moved = current.id != target.id
    pinned = cluster.pinned

    async def is_active() -> bool:
        controller = await cluster.active_controller()
        return controller is not None and controller["id"] == target.id

    async def late() -> str:
        return f"Broker {target.id} did not become controller within {_MOVE_TIMEOUT_S:.0f} s."

    try:
        if moved:
            cluster.record.fault_injected("move", current.id)
            await _pin(running, target.id)
            await current.command({"command": "resign"})
            await wait_until(is_active, _MOVE_TIMEOUT_S, late)
        if pinned is not None:
            pinned = target.id
            cluster.pin(pinned)
    finally:
        await _pin(running, pinned)
    return {"id": target.id, "from": current.id, "moved": moved}


async def _pin(nodes: list[NodeProcess], controller_id: int | None) -> None:
    message = {"command": "pin", "controller_id": controller_id}
    results = await asyncio.gather(
        *(node.command(message) for node in nodes if node.is_running()), return_exceptions=True
    )
    for result in results:
        if isinstance(result, BaseException):
            raise result


async def _controller_node(cluster: RunningCluster) -> NodeProcess:
    """Return the node of the active controller. If several are active, the highest epoch decides.

    A controller that gets no answer from ZooKeeper counts as active.
    """
    states = await cluster.node_states()
    active = [
        state
        for state in states.values()
        if state and (state.get("is_controller") or state.get("controller_state") == "suspended")
    ]
    if not active:
        raise ClusterError(
            "There is no active controller: try again when `bridgehead status` shows one."
        )
    latest = max(active, key=lambda state: int(state.get("controller_epoch") or 0))
    return cluster.nodes[int(latest["id"])]


def _node(cluster: RunningCluster, message: Message) -> NodeProcess:
    node = cluster.nodes.get(int(message.get("id", 0)))
    if node is None:
        ids = ", ".join(str(node_id) for node_id in cluster.nodes)
        raise ClusterError(f"There is no broker {message.get('id')}: the brokers are {ids}.")
    return node


def _running_node(cluster: RunningCluster, message: Message) -> NodeProcess:
    node = _node(cluster, message)
    if not node.is_running():
        raise ClusterError(
            f"Broker {node.id} is not running; `bridgehead node start {node.id}` starts it."
        )
    return node


async def _faults_add(cluster: RunningCluster, message: Message) -> Message:
    """Add a fault rule to one broker, or to all running brokers under the same name."""
    if message.get("broker") is not None:
        nodes = [_running_node(cluster, {"id": message["broker"]})]
    else:
        nodes = [node for node in cluster.nodes.values() if node.is_running()]
    taken = {str(rule["name"]) for rule in (await _faults_list(cluster, {}))["rules"]}
    name = free_name(taken)
    count_file = cluster.directory.fault_counts / name
    count_file.parent.mkdir(exist_ok=True)
    count_file.unlink(missing_ok=True)
    count_file.touch()
    added = {"rule": message.get("rule"), "name": name, "count_file": str(count_file)}
    for node in nodes:
        await node.command({"command": "faults_add", **added})
    return {"name": name, "brokers": [node.id for node in nodes]}


async def _faults_list(cluster: RunningCluster, _: Message) -> Message:
    running = [node for node in cluster.nodes.values() if node.is_running()]
    responses = [await node.command({"command": "faults_list"}) for node in running]
    return {
        "rules": [
            {"broker": node.id, **rule}
            for node, response in zip(running, responses, strict=True)
            for rule in response["rules"]
        ]
    }


async def _faults_remove(cluster: RunningCluster, message: Message) -> Message:
    """Remove one fault rule, or all rules, from every running broker."""
    rules = (await _faults_list(cluster, {}))["rules"]
    chosen = [rule for rule in rules if message.get("name") in (None, rule["name"])]
    if not chosen and message.get("name") is not None:
        raise ClusterError(f"No running broker has a fault rule {message['name']!r}.")
    for rule in chosen:
        await cluster.nodes[rule["broker"]].command(
            {"command": "faults_remove", "name": rule["name"]}
        )
    return {"removed": len(chosen)}


COMMANDS: dict[str, Callable[[RunningCluster, Message], Awaitable[Message]]] = {
    "status": _status,
    "health": _health,
    "client": _client,
    "advertise": _advertise,
    "logs": _logs,
    "evidence_seal": _evidence_seal,
    "judge": _judge,
    "evidence": _evidence,
    "controller_wait": _controller_wait,
    "node_start": _node_start,
    "node_stop": _node_stop,
    "node_kill": _node_kill,
    "zookeeper_start": _zookeeper_start,
    "upgrade": _upgrade,
    "heal": _heal,
    "reset": _reset,
    "faults_add": _faults_add,
    "faults_list": _faults_list,
    "faults_remove": _faults_remove,
    "controller_show": _controller_show,
    "controller_kill": _controller_kill,
    "controller_freeze": _controller_freeze,
    "controller_expire": _controller_expire,
    "controller_move": _controller_move,
}
