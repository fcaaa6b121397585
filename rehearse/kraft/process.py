"""One JVM of Kafka in KRaft mode, as a controller or as a broker, and its log."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bridgehead.cluster.child_process import die_with_parent, send_signal, start_child, stop_child
from bridgehead.cluster.data_directory import write_private
from bridgehead.cluster.properties import format_properties
from rehearse.phases import LogLine, parse_log_line, without_secrets

_MAIN_CLASS: Final = "kafka.Kafka"
_LOG_CHUNK_BYTES: Final = 1 << 20
# A controller needs three seconds to end, and a broker some more: its leaders move first.
_STOP_TIMEOUT_S: Final = 20.0
_LOGGING: Final = """\
log4j.rootLogger=INFO, server
log4j.appender.server=org.apache.log4j.FileAppender
log4j.appender.server.File={log}
log4j.appender.server.layout=org.apache.log4j.PatternLayout
log4j.appender.server.layout.ConversionPattern=[%d{{yyyy-MM-dd HH:mm:ss,SSS}}] %p %m (%c)%n
log4j.logger.org.apache.kafka.metadata.migration=DEBUG
log4j.logger.kafka.zk=DEBUG
log4j.logger.state.change.logger=WARN
log4j.logger.kafka.server.KafkaConfig=WARN
log4j.logger.org.apache.kafka.common.config.AbstractConfig=WARN
log4j.logger.kafka.server.ControllerServer=INFO
log4j.logger.org.apache.kafka.clients=ERROR
"""


class KafkaProcess:
    """One process. Its folder has its properties, its log and its log directory."""

    def __init__(
        self, node_id: int, folder: Path, *, java: Path, jars: Path, heap_mib: int
    ) -> None:
        self.id = node_id
        self.folder = folder
        self.properties: dict[str, str] = {}
        self._java = java
        self._jars = jars
        self._heap_mib = heap_mib
        self._process: subprocess.Popen[bytes] | None = None
        # What an earlier process logged is past.
        self._log_at = self.log.stat().st_size if self.log.is_file() else 0
        self._rest = b""
        self._is_wanted = False

    @property
    def log(self) -> Path:
        """Kafka's own log."""
        return self.folder / "server.log"

    @property
    def log_dir(self) -> Path:
        """`log.dirs`."""
        return self.folder / "data"

    @property
    def pid(self) -> int | None:
        """The pid; None if the process does not run."""
        return self._process.pid if self._process is not None and self.is_running() else None

    def is_running(self) -> bool:
        """Return whether the process exists; it may be frozen."""
        return self._process is not None and self._process.poll() is None

    def exit_status(self) -> int | None:
        """Return the exit status, negative for a signal; None if it runs or was never started."""
        return None if self._process is None else self._process.poll()

    def has_ended(self) -> bool:
        """Return whether the process has exited although nobody stopped it."""
        return self._is_wanted and self.exit_status() is not None

    def start(self, properties: Mapping[str, str]) -> None:
        """Start the process; `log_lines` shows what it does."""
        assert not self.is_running()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.properties = {**properties, "log.dirs": str(self.log_dir)}
        file = self.folder / "server.properties"
        # The properties may contain secrets.
        write_private(file, format_properties(self.properties).encode())
        logging = self.folder / "log4j.properties"
        write_private(logging, _LOGGING.format(log=self.log).encode())
        command = [
            str(self._java),
            f"-Xmx{self._heap_mib}m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",  # the second compiler uses more CPU than it saves here
            "-XX:+ExitOnOutOfMemoryError",
            "-Duser.timezone=UTC",
            f"-Dlog4j.configuration=file:{logging}",
            "-cp",
            f"{self._jars}/*",
            _MAIN_CLASS,
            str(file),
        ]
        self._process = start_child(die_with_parent(command), output=self.folder / "server.out")
        self._is_wanted = True

    def log_lines(self) -> list[LogLine]:
        """Return the lines that were logged since the last call."""
        try:
            with self.log.open("rb") as file:
                file.seek(self._log_at)
                data = self._rest + file.read(_LOG_CHUNK_BYTES)
                self._log_at = file.tell()
        except FileNotFoundError:
            return []
        *whole, self._rest = data.split(b"\n")
        texts = (line.decode("utf-8", "replace") for line in whole)
        return [line for text in texts if (line := parse_log_line(text)) is not None]

    def last_output(self) -> str:
        """Return the last line that a process wrote which could not start; it may be empty."""
        for name in ("server.out", "server.log"):
            path = self.folder / name
            if path.is_file():
                lines = path.read_text("utf-8", "replace").strip().splitlines()
                causes = [line for line in lines if "xception" in line or "FATAL" in line]
                if causes:
                    return without_secrets(causes[-1].strip())
        return ""

    def stop(self) -> None:
        """Stop the process (SIGTERM, later SIGKILL); return when it has exited."""
        self._is_wanted = False
        if self._process is not None:
            stop_child(self._process, timeout_s=_STOP_TIMEOUT_S)

    def request_stop(self) -> None:
        """Send SIGTERM without waiting."""
        self._is_wanted = False
        if self._process is not None and self.is_running():
            send_signal(self._process, signal.SIGCONT)
            send_signal(self._process, signal.SIGTERM)

    def kill(self) -> None:
        """Kill the process (SIGKILL); return when it has exited."""
        self._is_wanted = False
        if self._process is not None:
            send_signal(self._process, signal.SIGKILL)
            self._process.wait()

    def freeze(self) -> None:
        """Freeze the process (SIGSTOP); its sockets stay open."""
        if self._process is not None:
            send_signal(self._process, signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume a frozen process (SIGCONT)."""
        if self._process is not None:
            send_signal(self._process, signal.SIGCONT)
