"""Runs brokers of a real Apache Kafka 3.9.1 on a ZooKeeper, for comparison.

Needs Java 17 to 23, and Kafka's jars in the folder BRIDGEHEAD_KAFKA_JARS (default: the folder that
`make kafka-jars` fills). `reason_to_skip` returns the reason if something is missing.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType

from bridgehead.cluster.child_process import die_with_parent, start_child
from bridgehead.cluster.ports import Ports
from bridgehead.cluster.properties import format_properties

_JARS = "~/.cache/bridgehead/kafka-3.9.1"
_POLL_S = 0.05


def reason_to_skip() -> str | None:
    """Return the reason why no real Kafka can be started here; None if one can."""
    if not list(jars().glob("kafka_2.13-3.9.1.jar")):
        return f"{jars()} has no kafka_2.13-3.9.1.jar (see BRIDGEHEAD_KAFKA_JARS)"
    if shutil.which("java") is None:
        return "there is no java on the PATH"
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(\d+)', java.stderr)
    if version is None or not 17 <= int(version[1]) <= 23:
        return f"Kafka 3.9.1 needs Java 17 to 23 on the PATH; java -version says {java.stderr!r}"
    return None


def jars() -> Path:
    """Return the folder of Kafka's jars, which may be missing."""
    return Path(os.environ.get("BRIDGEHEAD_KAFKA_JARS", _JARS)).expanduser()


@contextmanager
def kafka_brokers(
    folder: Path,
    zookeeper_connect: str,
    ids: tuple[int, ...],
    *,
    forwarding: bool = False,
    one_by_one: bool = False,
    properties: Mapping[str, str] = MappingProxyType({}),
    node_properties: Mapping[int, Mapping[str, str]] = MappingProxyType({}),
    more_listeners: Mapping[int, Mapping[str, int]] = MappingProxyType({}),
) -> Iterator[str]:
    """Run brokers; yield their bootstrap servers once all accept connections.

    `forwarding`: forward admin writes to the ZooKeeper-elected controller in Envelopes. A 3.9
    broker does that in migration mode; no migration starts, because nothing listens at the
    quorum's address.
    `properties`: of every broker. `node_properties`: of one broker, by broker id.
    `more_listeners`: by broker id, the ports of further listeners, by security protocol.
    """
    addresses: list[str] = []
    with Ports() as ports, ExitStack() as running:
        started = []
        for broker_id in ids:
            address = f"127.0.0.1:{ports.choose()}"
            addresses.append(address)
            broker_properties = _properties(folder, broker_id, address)
            broker_properties |= {**properties, **node_properties.get(broker_id, {})}
            broker_properties["zookeeper.connect"] = zookeeper_connect
            for protocol, port in more_listeners.get(broker_id, {}).items():
                broker_properties["listeners"] += f",{protocol}://127.0.0.1:{port}"
            if forwarding:
                broker_properties |= _forwarding(ports.choose())
            started.append(_start(folder / str(broker_id), broker_properties))
            running.callback(_end, started[-1])
            if one_by_one:
                _wait_for(address, started[-1], time.monotonic() + 90)
        deadline = time.monotonic() + 90
        for address, process in zip(addresses, started, strict=True):
            _wait_for(address, process, deadline)
        yield ",".join(addresses)


def data_of(folder: Path, broker_id: int) -> Path:
    """Return the log directory of a broker in this folder."""
    return folder / str(broker_id) / "data"


def _properties(folder: Path, broker_id: int, address: str) -> dict[str, str]:
    return {
        "broker.id": str(broker_id),
        "listeners": f"PLAINTEXT://{address}",
        "log.dirs": str(data_of(folder, broker_id)),
        "zookeeper.session.timeout.ms": "6000",
        "broker.rack": f"rack-{broker_id}",
    }


def _forwarding(unused_port: int) -> dict[str, str]:
    return {
        "zookeeper.metadata.migration.enable": "true",
        "controller.quorum.voters": f"3000@127.0.0.1:{unused_port}",
        "controller.listener.names": "CONTROLLER",
        # After this time without a quorum, a thread of Kafka 3.9.1 polls without a pause. It would
        # use half of a processor.
        "controller.quorum.election.timeout.ms": "86400000",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    }


def _start(folder: Path, properties: dict[str, str]) -> subprocess.Popen[bytes]:
    folder.mkdir(parents=True)
    file = folder / "server.properties"
    file.write_text(format_properties(properties))
    command = [
        str(shutil.which("java")),
        "-Xmx512m",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        f"{jars()}/*",
    ]
    return start_child(
        die_with_parent([*command, "kafka.Kafka", str(file)]), output=folder / "kafka.out"
    )


def _wait_for(address: str, process: subprocess.Popen[bytes], deadline: float) -> None:
    host, _, port = address.rpartition(":")
    while True:
        assert process.poll() is None, f"Kafka ended with status {process.returncode}"
        assert time.monotonic() < deadline, f"Kafka does not listen at {address}"
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
            return
        except OSError:
            time.sleep(_POLL_S)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
