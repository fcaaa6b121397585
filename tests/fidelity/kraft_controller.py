"""Runs KRaft controllers of a real Apache Kafka 3.9.1 that migrate the metadata of ZooKeeper."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from bridgehead.cluster.child_process import die_with_parent, start_child
from bridgehead.cluster.properties import format_properties
from tests.fidelity.real_kafka import jars

_LOG4J = """log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c{1})%n
log4j.logger.org.apache.kafka.metadata.migration=DEBUG
log4j.logger.state.change.logger=WARN
"""
_DUAL_WRITE = "to DUAL_WRITE state"
_POLL_S = 0.05


class KraftController:
    """One controller process. Its storage stays when it is stopped, so it can start again."""

    def __init__(
        self,
        folder: Path,
        node_id: int,
        port: int,
        zookeeper_connect: str,
        *,
        voters: str = "",
        properties: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`voters`: all controllers; empty if this is the only one."""
        self.voters = voters or f"{node_id}@127.0.0.1:{port}"
        self._folder = folder
        self._out = folder / "controller.out"
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True)
        (folder / "log4j.properties").write_text(_LOG4J)
        (folder / "server.properties").write_text(
            format_properties(
                {
                    "process.roles": "controller",
                    "node.id": str(node_id),
                    "controller.quorum.voters": self.voters,
                    "controller.listener.names": "CONTROLLER",
                    "listeners": f"CONTROLLER://127.0.0.1:{port}",
                    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
                    "inter.broker.listener.name": "PLAINTEXT",
                    "log.dirs": str(folder / "data"),
                    "zookeeper.metadata.migration.enable": "true",
                    "zookeeper.connect": zookeeper_connect,
                    "zookeeper.session.timeout.ms": "6000",
                    **properties,
                }
            )
        )

    def format(self, cluster_id: str, release: str = "3.9") -> None:
        """Write the storage of a new controller with this metadata.version."""
        arguments = ("format", "-t", cluster_id, "-r", release, "-c")
        command = self._java("kafka.tools.StorageTool", *arguments)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def _java(self, main: str, *arguments: str) -> list[str]:
        flags = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars()}/*")
        log4j = f"-Dlog4j.configuration=file:{self._folder}/log4j.properties"
        properties = str(self._folder / "server.properties")
        return [str(shutil.which("java")), *flags, log4j, main, *arguments, properties]

    def start(self) -> None:
        """Start the process; return at once."""
        self._process = start_child(die_with_parent(self._java("kafka.Kafka")), output=self._out)

    def stop(self) -> None:
        """Stop the process as an operator does."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(30)

    def kill(self) -> None:
        """Kill the process if it runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    @property
    def log(self) -> str:
        """What the controller has logged in all its lives."""
        return self._out.read_text(errors="replace") if self._out.exists() else ""

    @property
    def is_dual_writer(self) -> bool:
        """Whether the controller has ever written metadata to ZooKeeper and to its log."""
        return _DUAL_WRITE in self.log

    def wait_for(self, text: str, *, times: int = 1, timeout_s: float = 60) -> None:
        """Return once the log has the text so many times."""
        deadline = time.monotonic() + timeout_s
        while self.log.count(text) < times:
            assert self._process is not None
            lines = "\n".join(self.log.splitlines()[-30:])
            assert self._process.poll() is None, f"the controller ended:\n{lines}"
            assert time.monotonic() < deadline, f"no {text!r} in the controller's log:\n{lines}"
            time.sleep(_POLL_S)

    def wait_for_dual_write(self, *, times: int = 1) -> None:
        """Return once the controller writes metadata to ZooKeeper, too."""
        self.wait_for(_DUAL_WRITE, times=times)


@contextmanager
def ended(*controllers: KraftController) -> Iterator[None]:
    """Kill controllers at the end of a block."""
    try:
        yield
    finally:
        for controller in controllers:
            controller.kill()
