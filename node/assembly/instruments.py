"""The clock, the logs and the metrics of a node."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import prometheus_client

from bridgehead.cluster.event_lines import host_boot_id
from cluster_model.request_lines import REQUEST_LOGGER
from event_log.clock import SystemClock
from event_log.text_log import Level, TextLog
from event_log.writer import FileEventLog
from metrics import names
from metrics.node_metrics import NodeMetrics
from node.assembly.authorizer_log import FILE_NAME, LOGGER, AuthorizerLog
from node.config import NodeConfig


@dataclass(frozen=True, slots=True)
class Instruments:
    """The clock, logs and metrics. They are built first, because every other part uses them."""

    clock: SystemClock
    log: FileEventLog
    request_log: TextLog  # kafka-request.log
    authorizer_log: AuthorizerLog  # kafka-authorizer.log
    registry: prometheus_client.CollectorRegistry
    metrics: NodeMetrics

    def flush(self) -> bool:
        """Write everything to the operating system; return whether to call this again.

        Otherwise the next call is needed after `call_when_buffered` has called back.

        Raises:
            OSError: the events cannot be written; call this again.
        """
        self.log.flush()
        self.request_log.flush()
        self.authorizer_log.flush()
        return self.authorizer_log.has_open_periods

    def call_when_buffered(self, callback: Callable[[], object]) -> None:
        """Call back, from any thread, when an event or line waits for `flush`."""
        self.log.on_buffered = callback
        self.request_log.on_buffered = callback
        self.authorizer_log.call_when_buffered(callback)

    def close(self) -> None:
        """Flush and close the logs."""
        self.log.close()
        self.authorizer_log.close()
        self.request_log.close()


def build_instruments(config: NodeConfig, data_dir: Path, incarnation: str) -> Instruments:
    """Open the logs. Raises OSError if a folder cannot be written."""
    clock, registry, logs = SystemClock(), prometheus_client.CollectorRegistry(), data_dir / "logs"
    audited = Level.OFF if config.authorizer is None else Level[config.bridgehead.authorizer_log]
    return Instruments(
        clock,
        FileEventLog(
            Path(config.bridgehead.evidence_dir)
            if config.bridgehead.evidence_dir
            else data_dir / "events",
            run_id=config.bridgehead.run_id or "run",
            node=str(config.broker_id),
            boot=incarnation,
            host_boot_id=host_boot_id(),
            clock=clock,
        ),
        TextLog(logs / "kafka-request.log", REQUEST_LOGGER, Level[config.bridgehead.request_log]),
        AuthorizerLog(TextLog(logs / FILE_NAME, LOGGER, audited), clock.wall_ms),
        registry,
        NodeMetrics(
            registry,
            now_s=time.monotonic,
            samples=config.broker.int("metrics.num.samples"),
            window_ms=config.broker.int("metrics.sample.window.ms"),
            dialect=names.CounterSpelling(config.bridgehead.metrics_dialect),
        ),
    )
