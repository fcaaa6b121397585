"""One compose project of this checkout."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from testcontainers.compose import DockerCompose

from bridgehead.cluster.event_lines import EventLines
from bridgehead.cluster.ports import LOOPBACK, Ports

ROOT = Path(__file__).parent.parent.parent
WITHIN_S = 120.0
ZOOKEEPER = ("zookeeper", "zookeeper-2", "zookeeper-3")
KNOWN_CONTROLLER = re.compile(r"broker (\d+) is controller")


class ComposeCluster:
    """Three brokers of a running project, and the evidence that they leave."""

    def __init__(self, project: str, compose: DockerCompose, ports: Sequence[int]) -> None:
        self.project = project
        self._compose = compose
        self._clients = dict(zip((1, 2, 3), ports[:3], strict=True))
        self._metrics = dict(zip((1, 2, 3), ports[3:], strict=True))
        self.harness: EventLines | None = None
        self._noted: set[str] = set()

    @property
    def bootstrap_servers(self) -> str:
        """The brokers' addresses for clients on the host."""
        return ",".join(f"{LOOPBACK}:{port}" for port in self._clients.values())

    def docker(self, *arguments: str) -> str:
        """Run the engine's client and return what it printed."""
        command = ["docker", *arguments]
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()

    def compose(self, *arguments: str) -> str:
        """Run `docker compose` for this project."""
        command = [*self._compose.compose_command_property, *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def container(self, service: str) -> str:
        """Return the id of a container, running or not."""
        return self.compose("ps", "--all", "--quiet", service).strip()

    def health(self, broker: int) -> str:
        """Return a broker's health text, or "" if the broker does not answer."""
        try:
            url = f"http://{LOOPBACK}:{self._metrics[broker]}/health"
            with urllib.request.urlopen(url, timeout=1) as response:
                return str(response.read().decode())
        except OSError:
            return ""

    def state_of_health(self, broker: int) -> str:
        """Return the engine's health status: starting, healthy or unhealthy."""
        return self.docker(
            "inspect", "--format={{.State.Health.Status}}", self.container(f"kafka-{broker}")
        )

    def metrics(self, broker: int) -> str:
        """Return a broker's Prometheus text."""
        url = f"http://{LOOPBACK}:{self._metrics[broker]}/metrics"
        with urllib.request.urlopen(url, timeout=5) as response:
            return str(response.read().decode())

    def wait_for_controller(self, *brokers: int, other_than: int | None = None) -> int:
        """Wait until these brokers (default: all) know the same controller; return its id."""
        observed = brokers or (1, 2, 3)

        def controller_of_all() -> int | None:
            matches = {KNOWN_CONTROLLER.search(self.health(broker)) for broker in observed}
            ids = {int(match[1]) if match else None for match in matches}
            only = ids.pop() if len(ids) == 1 else None
            return None if only == other_than else only

        return wait_until(controller_of_all, "a controller that all know")

    def registered(self, broker: int) -> set[int]:
        """Return the broker ids in one broker's Metadata."""
        address = f"{LOOPBACK}:{self._clients[broker]}"
        client = AdminClient({"bootstrap.servers": address, "log_level": 0})
        try:
            return set(client.list_topics(timeout=10).brokers)
        except KafkaException:  # The broker does not serve yet.
            return set()

    def server_mode(self, member: str) -> str:
        """Return a ZooKeeper member's mode: leader, follower, standalone, or "" if unknown."""
        try:
            with socket.create_connection((self._address(member), 2181), timeout=2) as connection:
                connection.sendall(b"srvr")
                response = b"".join(iter(lambda: connection.recv(4096), b"")).decode()
        except (OSError, ValueError, subprocess.CalledProcessError):
            return ""
        match = re.search(r"^Mode: (\w+)", response, re.MULTILINE)
        return match[1] if match else ""

    def _address(self, service: str) -> str:
        """Return a container's address. Raises ValueError while it is disconnected."""
        template = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        address = self.docker("inspect", f"--format={template}", self.container(service))
        if not address:
            raise ValueError(f"{service} has no address")
        return address

    def wait_for_ensemble(self) -> str:
        """Wait until all three members serve; return the leader."""

        def leader() -> str | None:
            modes = {member: self.server_mode(member) for member in ZOOKEEPER}
            led = [member for member, mode in modes.items() if mode == "leader"]
            return led[0] if len(led) == 1 and "" not in modes.values() else None

        leader_name: str = wait_until(leader, "three members, one of them the leader")
        return leader_name

    @contextlib.contextmanager
    def fault(
        self, action: str, target: str, inject: Sequence[str], heal: Sequence[str]
    ) -> Iterator[None]:
        """Inject a fault with one command of the engine and heal it with another.

        The body of the `with` statement waits for the effects. The injection and the healing are
        recorded just before their commands, but a fault may begin only when its command ends. So
        the judge ignores the first tenth of a fault, and this method lets the fault last more than
        ten times as long as the command.
        """
        assert self.harness is not None
        began_s = time.monotonic()
        self.harness.append("fault_injected", action=action, target=target)
        self.docker(*inject)
        injected_s = time.monotonic()
        try:
            yield
            time.sleep(max(0.0, began_s + 12 * (injected_s - began_s) - time.monotonic()))
        finally:
            self.harness.append("fault_healed", action=action, target=target)
            self.docker(*heal)

    def note_end(self, broker: int, run: Path) -> None:
        """Copy a broker's events. For each new boot (one life of its process), record the end."""
        assert self.harness is not None
        container = self.container(f"kafka-{broker}")
        state = json.loads(self.docker("inspect", "--format={{json .State}}", container))
        assert not state["Running"], f"kafka-{broker} still runs"
        # The engine reports 128 + the signal; evidence has the negative signal.
        status = 128 - state["ExitCode"] if state["ExitCode"] > 128 else state["ExitCode"]
        self.docker("cp", f"{container}:/evidence/{run.name}/node={broker}", str(run))
        for path in sorted((run / f"node={broker}").glob("events-*-0000.jsonl")):
            boot = path.name.removeprefix("events-").removesuffix("-0000.jsonl")
            if boot not in self._noted:
                self._noted.add(boot)
                self.harness.append(
                    "node_ended", ended_node=str(broker), ended_boot=boot, status=status
                )


def wait_until(read: Callable[[], Any], condition: str) -> Any:
    """Poll until `read` returns neither None nor False; return its value."""
    deadline = time.monotonic() + WITHIN_S
    while (value := read()) is None or value is False:
        assert time.monotonic() < deadline, f"{condition}: not within {WITHIN_S:g} s"
        time.sleep(0.05)
    return value


@contextlib.contextmanager
def compose_cluster(
    *overrides: str, environment: dict[str, str] | None = None
) -> Iterator[ComposeCluster]:
    """A running project, removed with its volumes and networks at the end."""
    project = f"bridgehead-test-{secrets.token_hex(3)}"
    free = Ports()
    ports = [free.choose() for _ in range(6)]
    names = [f"BRIDGEHEAD_{kind}_{n}" for kind in ("PORT", "METRICS_PORT") for n in (1, 2, 3)]
    settings = {
        "COMPOSE_PROJECT_NAME": project,
        **{name: str(port) for name, port in zip(names, ports, strict=True)},
        "BRIDGEHEAD_UI_PORT": str(free.choose()),
        **(environment or {}),
    }
    before = dict(os.environ)
    os.environ.update(settings)
    compose = DockerCompose(ROOT, ["docker-compose.yml", *overrides], pull=False, wait=True)
    try:
        compose.start()
        yield ComposeCluster(project, compose, ports)
    finally:
        # Without these profiles, `down` would not remove their services.
        os.environ["COMPOSE_PROFILES"] = "pipeline,ui"
        compose.stop(down=True)
        free.close()
        os.environ.clear()
        os.environ.update(before)


def left_behind(project: str) -> str:
    """Return the remaining containers, volumes and networks of a project."""
    label = f"label=com.docker.compose.project={project}"
    kinds = (("ps", "--all"), ("volume", "ls"), ("network", "ls"))
    return "".join(
        subprocess.run(
            ["docker", *kind, "--quiet", "--filter", label],
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for kind in kinds
    )


def begin_evidence(folder: Path, run_id: str) -> EventLines:
    """Open the harness's events, in the folder that also gets the nodes' events at the end."""
    run = folder / f"run={run_id}"
    run.mkdir(parents=True)
    return EventLines(run, run_id, "harness", "compose")


def copy_into(cluster: ComposeCluster, run: Path, folder: str) -> None:
    """Copy a folder of `run` on the host to the same run in the project's volume.

    First make the folder readable for all users.
    """
    for path in (run / folder, *(run / folder).rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    cluster.compose("cp", str(run / folder), f"kafka-1:/evidence/{run.name}/")
