"""`python -m node --config FILE --data-dir DIR`: one node in the foreground.

Prints nothing on standard output. A node that cannot start prints one sentence on standard error
and exits with 4. SIGTERM and SIGINT shut it down cleanly (exit 0). If BRIDGEHEAD_PARENT_PIPE is 1,
the end of standard input does the same.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bridgehead.cluster import control_socket
from bridgehead.cluster.data_directory import make_private
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.properties import format_properties, parse_properties
from bridgehead.exit_codes import ExitCode
from bridgehead.slices import share_interpreter
from broker_proxy.metadata.session import RegistrationRejectedError
from cluster_model.configs.broker_configs import InvalidBrokerConfigError
from cluster_model.session_state import ConnectionLostError, ZooKeeperRejectedError
from cluster_model.znodes.values import ZnodeContentError
from node.assembly.parts import Parts, build_parts
from node.config import NodeConfig, NodeConfigError, read_config
from node.descriptors import raise_limit
from node.environment import AmbiguousVariableError, properties_from
from node.node_log import start_log
from node.run.control_commands import ControlCommands
from node.run.lifecycle import Node

BuildParts = Callable[[NodeConfig, Path], Parts]
_GC_THRESHOLDS = (60_000, 1, 1_000)
_FILES = ("node.properties", "node.log", "node.out", "node.pid", "ready.json", "control.sock")
_FOLDERS = ("events", "logs")


def main(arguments: list[str] | None = None, build: BuildParts = build_parts) -> int:
    """Run one node; return the exit code. Tests pass a `build` that seeds bugs."""
    parser = argparse.ArgumentParser(prog="node", description=__doc__)
    parser.add_argument("--config", type=Path, help="Kafka's server.properties")
    parser.add_argument(
        "--environment", action="store_true", help="KAFKA_* variables are properties as well"
    )
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--log-file", type=Path)
    options = parser.parse_args(arguments)
    try:
        make_private(options.data_dir / name for name in (*_FILES, *_FOLDERS))
    except ClusterError as error:
        sys.stderr.write(f"{error}\n")
        return ExitCode.CANNOT_RUN
    start_log(options.log_file, time.monotonic)
    raise_limit()
    logging.getLogger("kazoo").setLevel(logging.WARNING)
    # A large image has a million long-lived objects. At the default thresholds garbage collection
    # would pause the node for seconds. Objects that exist now are never collected. The objects of
    # 256 requests in progress should fit into the first generation, or each burst starts a
    # collection. Collecting the first two generations together takes up to 60 ms then.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    share_interpreter()
    try:
        return asyncio.run(_run(options, build))
    except ConnectionLostError as lost:
        reason = f"{lost}: is ZooKeeper running at the address in zookeeper.connect?"
    except ZooKeeperRejectedError as rejected:
        reason = f"ZooKeeper rejected a request of this node: {rejected}"
    except (
        ClusterError,
        NodeConfigError,
        InvalidBrokerConfigError,
        RegistrationRejectedError,
        AmbiguousVariableError,
        ZnodeContentError,
        OSError,
    ) as error:
        reason = str(error)
    sys.stderr.write(f"{reason}\n")
    return ExitCode.CANNOT_RUN


async def _run(options: argparse.Namespace, build: BuildParts) -> int:
    text = options.config.read_text(encoding="utf-8") if options.config else ""
    if options.environment:
        from_file = parse_properties(text)
        text = format_properties({**from_file, **properties_from(os.environ, from_file)})
    options.data_dir.mkdir(parents=True, exist_ok=True)
    config = read_config(text)
    if config.bridgehead.evidence_dir:
        make_private([Path(config.bridgehead.evidence_dir)])
    parts = build(config, options.data_dir)
    node = Node(parts)
    stop: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def request_stop(reason: str) -> None:
        if not stop.done():
            stop.set_result(reason)

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, request_stop, signal.Signals(number).name)
    if os.environ.get("BRIDGEHEAD_PARENT_PIPE") == "1":
        loop.add_reader(sys.stdin.fileno(), _parent_gone, request_stop)
    starting = asyncio.create_task(node.start())
    ends: set[asyncio.Future[Any]] = {starting, stop}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if starting.done() and starting.exception() is not None:
        with contextlib.suppress(ConnectionLostError):
            await node.stop("it could not start")
        starting.result()
    if starting.done():
        dispatcher = starting.result().services.dispatcher
        commands = ControlCommands(node, parts, dispatcher, request_stop)
        control = await control_socket.serve(options.data_dir / "control.sock", commands)
        _write(options.data_dir / "ready.json", node.ready())
        # Kafka logs this line, and tools that start Kafka in a container wait for it.
        logging.getLogger("kafka.server.KafkaServer").info(
            "[KafkaServer id=%d] started", config.broker_id
        )
        reason = await stop
        control.close()
        (options.data_dir / "ready.json").unlink(missing_ok=True)
    else:
        reason = stop.result()
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
    with contextlib.suppress(ConnectionLostError):
        await node.stop(reason)
    return 0


def _parent_gone(request_stop: Any) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        request_stop("the supervisor has exited")


def _write(path: Path, document: dict[str, Any]) -> None:
    """Write a file atomically."""
    beside = path.with_suffix(".tmp")
    beside.write_text(json.dumps(document), encoding="utf-8")
    beside.replace(path)


if __name__ == "__main__":
    sys.exit(main())
