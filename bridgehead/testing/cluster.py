"""`BridgeheadCluster`: a container for ZooKeeper and one for each broker, on their own network.

Nodes can be killed, paused and disconnected like any container. They run as in docker-compose.yml:
hardened, and with TLS on the channel between brokers. The certificates are in a volume.
"""

from __future__ import annotations

import contextlib
import http.client
import re
import secrets
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

from docker.errors import NotFound
from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient
from testcontainers.core.network import Network

from bridgehead.cluster.broker_certificates import INTER_BROKER_USER
from bridgehead.cluster.cluster import StartStop
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.ports import LOOPBACK, Ports
from bridgehead.testing.engine import harden, prepare, publish

NODE_IMAGE = "bridgehead-node:latest"
ZOOKEEPER_IMAGE = "bridgehead-zookeeper:latest"
READY_WITHIN_S = 60.0
_POLL_S = 0.05
_METRICS_PORT = 9404
_PYTHON = "/opt/bridgehead/bin/python"
_JVM_FLAGS = "-Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djute.maxbuffer=4194304"
_CONTROLLER = re.compile(r"broker (\d+) is controller")


class BridgeheadCluster(StartStop):
    """A cluster of containers. Use `with`, or `start()` and `stop()`.

    Stopping removes everything, even after a failure.
    """

    def __init__(
        self, node_image: str = NODE_IMAGE, zookeeper_image: str = ZOOKEEPER_IMAGE
    ) -> None:
        self._images = node_image, zookeeper_image
        self._count = 3
        self._properties: dict[str, str] = {}
        self._network: Any = None
        self._secrets = f"bridgehead-secrets-{secrets.token_hex(4)}"
        self._others: list[Any] = []
        self._free = Ports()
        self._ports: dict[int, int] = {}
        self._metrics: dict[int, int] = {}
        self._nodes: dict[int, Any] = {}

    def with_brokers(self, brokers: int) -> Self:
        """Set the number of brokers; their ids start at 1."""
        self._count = brokers
        return self

    def with_property(self, name: str, value: str) -> Self:
        """Set one of Kafka's server properties for every broker."""
        self._properties[name] = value
        return self

    def start(self) -> Self:
        """Start the containers; return when every broker knows the active controller.

        Raises:
            ClusterError: no container engine answers, an image is missing, or the brokers are not
                ready within a minute.
            TimeoutError: ZooKeeper does not serve within a minute.
        """
        prepare(*self._images)
        self._network = Network().create()
        for broker in range(1, self._count + 1):
            self._ports[broker], self._metrics[broker] = self._free.choose(), self._free.choose()
            self._nodes[broker] = self._node(broker)
        zookeeper, setup = self._zookeeper(), self._setup()
        self._others = [zookeeper, setup]
        with ThreadPoolExecutor() as pool:  # The setup runs while ZooKeeper starts.
            list(pool.map(lambda container: container.start(), self._others))
            self._wait_for_setup(setup)
            self._wait_for_zookeeper(zookeeper)
            list(pool.map(lambda container: container.start(), self._nodes.values()))
        try:
            self._wait_for_controller(self._count)
        except TimeoutError as late:
            raise ClusterError(f"{late}: {self._last_log_lines()}") from late
        return self

    def _last_log_lines(self) -> str:
        """Return each broker's state and its last line of output."""
        states = []
        for broker in self._nodes:
            container = self.get_container(broker)
            output = container.logs(tail=1).decode(errors="replace").strip()
            states.append(f"broker {broker} is {container.status} ({output})")
        return "; ".join(states)

    def _zookeeper(self) -> DockerContainer:
        container = (
            DockerContainer(self._images[1])
            .with_env("ZOO_TICK_TIME", "500")
            .with_env("ZOO_MAX_CLIENT_CNXNS", "0")
            .with_env("ZOO_CFG_EXTRA", "minSessionTimeout=1000 maxSessionTimeout=120000")
            .with_env("JVMFLAGS", _JVM_FLAGS)
            .with_network(self._network)
            .with_network_aliases("zookeeper")
        )
        return harden(container)

    def _setup(self) -> DockerContainer:
        """Return the container that generates the certificates and then exits."""
        container = (
            DockerContainer(self._images[0])
            .with_env("PYTHONPATH", "/opt/app")
            .with_env("BRIDGEHEAD_BROKERS", str(self._count))
            .with_env(
                "KAFKA_BRIDGEHEAD_INTER_BROKER_USER", self._properties.get(INTER_BROKER_USER, "")
            )
            .with_command([_PYTHON, "-m", "deploy.prepare_run", "--secrets-only"])
            .with_volume_mapping(self._secrets, "/secrets", "rw")
        )
        return harden(container, healthcheck={"test": ["NONE"]})

    def _node(self, broker: int) -> DockerContainer:
        node = DockerContainer(self._images[0])
        for name, value in self._environment(broker).items():
            node.with_env(name, value)
        node.with_network(self._network).with_network_aliases(f"kafka-{broker}")
        node.with_volume_mapping(self._secrets, "/secrets", "ro")
        publish(node, self._ports[broker], self._ports[broker])
        publish(node, _METRICS_PORT, self._metrics[broker])
        # On a busy machine a session may expire while a node starts. The node then exits, and the
        # engine starts it again.
        return harden(node, restart_policy={"Name": "on-failure", "MaximumRetryCount": 3})

    def _wait_for_setup(self, setup: DockerContainer) -> None:
        status = setup.get_wrapped_container().wait(timeout=READY_WITHIN_S)["StatusCode"]
        if status:
            _, output = setup.get_logs()
            raise ClusterError(f"No certificates were generated: {output.decode().strip()}")

    def _wait_for_zookeeper(self, zookeeper: DockerContainer) -> None:
        """Wait for ZooKeeper's health check: a node that starts earlier would exit."""
        deadline = time.monotonic() + READY_WITHIN_S
        container = zookeeper.get_wrapped_container()
        while container.health != "healthy":
            container.reload()
            if time.monotonic() > deadline:
                raise TimeoutError(f"ZooKeeper did not serve within {READY_WITHIN_S:g} s")
            time.sleep(_POLL_S)

    def _environment(self, broker: int) -> dict[str, str]:
        port = self._ports[broker]
        properties = {
            "broker.id": str(broker),
            "broker.rack": f"rack-{broker}",
            "zookeeper.connect": "zookeeper:2181",
            "zookeeper.session.timeout.ms": "6000",
            "listeners": f"HOST://0.0.0.0:{port},INTERNAL://0.0.0.0:9092",
            "advertised.listeners": f"HOST://{LOOPBACK}:{port},INTERNAL://kafka-{broker}:9092",
            "listener.security.protocol.map": "HOST:PLAINTEXT,INTERNAL:PLAINTEXT",
            "inter.broker.listener.name": "INTERNAL",
            "bridgehead.allow.remote.plaintext": "true",
            "bridgehead.metrics.listener": f"0.0.0.0:{_METRICS_PORT}",
            "bridgehead.grpc.listener": "0.0.0.0:9095",
            "bridgehead.grpc.advertised.listener": f"kafka-{broker}:9095",
            "bridgehead.grpc.authority": "/secrets/channel/ca.pem",
            "bridgehead.grpc.certificate": f"/secrets/channel/broker-{broker}.pem",
            "bridgehead.grpc.key": f"/secrets/channel/broker-{broker}.key",
            **self._properties,
        }
        return {
            "KAFKA_" + name.replace("_", "__").replace("-", "___").replace(".", "_").upper(): value
            for name, value in properties.items()
        }

    def stop(self) -> None:
        """Remove every container, the network and the volume; may be called twice."""
        for container in (*self._nodes.values(), *self._others):
            container.stop(force=True, delete_volume=True)
        self._nodes, self._others = {}, []
        if self._network is not None:
            self._network.remove()
            self._network = None
            with contextlib.suppress(NotFound):  # if no container was created
                DockerClient().client.volumes.get(self._secrets).remove()
        self._free.close()

    def get_bootstrap_server(self) -> str:
        """Return `host:port,...` of every broker, for clients on the host."""
        return ",".join(f"{LOOPBACK}:{port}" for port in self._ports.values())

    def get_internal_bootstrap_server(self) -> str:
        """Return `host:port,...` of every broker, for containers on the cluster's network."""
        return ",".join(f"kafka-{broker}:9092" for broker in self._ports)

    def get_metrics_url(self, broker: int) -> str:
        """Return the URL of a broker's Prometheus metrics."""
        return f"http://{LOOPBACK}:{self._metrics[broker]}/metrics"

    def get_network(self) -> Any:
        """Return the cluster's network, for your own containers."""
        return self._network

    def get_container(self, broker: int) -> Any:
        """Return a broker's container. It has `kill()`, `pause()`, `unpause()` and `start()`."""
        container = self._nodes[broker].get_wrapped_container()
        container.reload()
        return container

    def get_controller(self, broker: int) -> int | None:
        """Return the controller that a broker knows.

        Return None if the broker knows no controller or does not answer.
        """
        match = _CONTROLLER.search(self._health(broker) or "")
        return int(match[1]) if match else None

    def _health(self, broker: int) -> str | None:
        """Return a broker's health text, healthy or not; None if it does not answer."""
        url = f"http://{LOOPBACK}:{self._metrics[broker]}/health"
        try:
            with urllib.request.urlopen(url, timeout=1) as response:
                return str(response.read().decode())
        except urllib.error.HTTPError as unhealthy:
            return str(unhealthy.read().decode())
        except (OSError, http.client.HTTPException):
            return None

    def wait_for_controller(self, *, other_than: int | None = None) -> int:
        """Block until every broker that answers knows the same controller.

        Brokers that are paused, killed or disconnected do not answer.

        Raises:
            TimeoutError: the brokers did not agree within a minute.
        """
        return self._wait_for_controller(1, other_than)

    def _wait_for_controller(self, responses_min: int, other_than: int | None = None) -> int:
        deadline = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline:
            responses = [text for b in self._nodes if (text := self._health(b)) is not None]
            matches = {_CONTROLLER.search(text) for text in responses}
            ids = {int(match[1]) if match else None for match in matches}
            if len(responses) >= responses_min and len(ids) == 1:
                controller_id = ids.pop()
                if controller_id is not None and controller_id != other_than:
                    return controller_id
            time.sleep(_POLL_S)
        raise TimeoutError(f"the brokers did not agree on a controller within {READY_WITHIN_S:g} s")

    def kill_controller(self) -> int:
        """Kill the controller's container (SIGKILL); return the broker's id."""
        controller = self.wait_for_controller()
        # Docker must not restart it.
        self.get_container(controller).update(restart_policy={"Name": "no"})
        self.get_container(controller).kill()
        return controller

    def start_broker(self, broker: int) -> None:
        """Start a killed broker's container; return when all running brokers know the controller.

        Raises:
            TimeoutError: the brokers did not agree within a minute, for example because one of
                them is disconnected.
        """
        self.get_container(broker).start()
        self._wait_for_controller(self._running())

    def _running(self) -> int:
        containers = (self.get_container(broker) for broker in self._nodes)
        return sum(container.status == "running" for container in containers)

    def pause(self, broker: int) -> None:
        """Freeze a broker's container."""
        self.get_container(broker).pause()

    def unpause(self, broker: int) -> None:
        """Resume a paused container."""
        self.get_container(broker).unpause()

    def disconnect(self, broker: int) -> None:
        """Disconnect a broker from peers, ZooKeeper and clients."""
        self._client_network().disconnect(self.get_container(broker))

    def reconnect(self, broker: int) -> None:
        """Reconnect a broker."""
        self._client_network().connect(self.get_container(broker), aliases=[f"kafka-{broker}"])

    def _client_network(self) -> Any:
        return DockerClient().client.networks.get(self._network.id)
