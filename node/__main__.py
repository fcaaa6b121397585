"""`python -m node --config FILE --data-dir DIR`: one node in the foreground.

Prints nothing on standard output; says in one sentence on standard error why it cannot start
(exit 2). SIGTERM, SIGINT, and the end of standard input where BRIDGEHEAD_PARENT_PIPE is set, stop
it in an orderly way (exit 0).
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
from pathlib import Path
from typing import Any

from bridgehead.cluster import control_socket
from bridgehead.cluster.properties import format_properties, parse_properties
from broker_proxy.watcher import RegistrationRefusedError
from cluster_model.broker_configs import InvalidBrokerConfigError
from cluster_model.session_state import ConnectionLostError
from controller.store.port import Mutant
from node.config import NodeConfigError, read_config
from node.environment import AmbiguousVariableError, properties_from
from node.node import Node

_CANNOT_START = 2
_GC_THRESHOLDS = (50_000, 20, 100)


def main(arguments: list[str] | None = None, mutants: frozenset[Mutant] = frozenset()) -> int:
    """Run one node; return the exit code. `mutants` is for the test build alone."""
    parser = argparse.ArgumentParser(prog="node", description=__doc__)
    parser.add_argument("--config", type=Path, help="Kafka's server.properties")
    parser.add_argument(
        "--environment", action="store_true", help="KAFKA_* variables are properties as well"
    )
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--log-file", type=Path)
    options = parser.parse_args(arguments)
    logging.basicConfig(
        filename=options.log_file,
        level=logging.INFO,
        format="[%(asctime)s] %(levelname)s %(message)s (%(name)s)",
    )
    logging.getLogger("kazoo").setLevel(logging.WARNING)
    # A large image is a million objects that live long: looking through them for garbage at the
    # usual pace costs whole seconds of pauses. What is imported by now is never looked at again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    try:
        return asyncio.run(_run(options, mutants))
    except (
        NodeConfigError,
        InvalidBrokerConfigError,
        RegistrationRefusedError,
        AmbiguousVariableError,
    ) as wrong:
        return _refuse(str(wrong))
    except ConnectionLostError as lost:
        return _refuse(f"{lost}: is ZooKeeper running where zookeeper.connect says?")
    except OSError as wrong:
        return _refuse(str(wrong))


def _refuse(why: str) -> int:
    sys.stderr.write(f"{why}\n")
    return _CANNOT_START


async def _run(options: argparse.Namespace, mutants: frozenset[Mutant]) -> int:
    text = options.config.read_text(encoding="utf-8") if options.config else ""
    if options.environment:
        from_file = parse_properties(text)
        text = format_properties({**from_file, **properties_from(os.environ, from_file)})
    options.data_dir.mkdir(parents=True, exist_ok=True)
    node = Node(read_config(text), options.data_dir, mutants)
    stop: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def ask_to_stop(reason: str) -> None:
        if not stop.done():
            stop.set_result(reason)

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ask_to_stop, signal.Signals(number).name)
    if os.environ.get("BRIDGEHEAD_PARENT_PIPE") == "1":
        loop.add_reader(sys.stdin.fileno(), _parent_gone, ask_to_stop)
    starting = asyncio.create_task(node.start())
    ends: set[asyncio.Future[Any]] = {starting, stop}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if starting.done():
        starting.result()
        control = await control_socket.serve(
            options.data_dir / "control.sock", _Commands(node, ask_to_stop)
        )
        _write(options.data_dir / "ready.json", node.ready())
        # The line that tools wait for which start a Kafka in a container.
        logging.getLogger("kafka.server.KafkaServer").info(
            "[KafkaServer id=%d] started", node.config.broker_id
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


def _parent_gone(ask_to_stop: Any) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        ask_to_stop("the supervisor is gone")


def _write(path: Path, document: dict[str, Any]) -> None:
    """Write a file so that whoever looks finds it whole or not at all."""
    beside = path.with_suffix(".tmp")
    beside.write_text(json.dumps(document), encoding="utf-8")
    beside.replace(path)


class _Commands:
    """What can be asked of a node over its control socket."""

    def __init__(self, node: Node, ask_to_stop: Any) -> None:
        self._node = node
        self._ask_to_stop = ask_to_stop

    async def __call__(self, message: dict[str, Any]) -> dict[str, Any]:
        match message:
            case {"command": "state"}:
                return self._node.state()
            case {"command": "resign"}:
                await self._node.resign()
            case {"command": "stand_for", "controller_id": int() | None as wanted}:
                self._node.stand_for(wanted)
            case {"command": "expire", "session": ("controller" | "broker") as session}:
                await self._node.expire(session)
            case {"command": "stop"}:
                self._ask_to_stop("asked to")
            case _:
                answer = await self._node.owner.obey(message)
                if answer is None:  # Nothing else of it is shown: it may be a secret.
                    command = message.get("command")
                    raise control_socket.ControlError(f"unknown command: {command}")
                return answer
        return {"ok": True}


if __name__ == "__main__":
    sys.exit(main())
