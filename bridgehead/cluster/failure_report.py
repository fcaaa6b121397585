"""What a failed test shows of its cluster. `failure_text` is pure; `describe` reads the cluster."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bridgehead.cluster.client import ControlClient
from bridgehead.cluster.errors import ClusterError

LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")
_WIDTH: Final = 80
_LINES_MAX: Final = 8
_TAIL_BYTES: Final = 1 << 16
_FAULTS_MAX: Final = 10
_LEVEL: Final = re.compile(r"\[[^\]]*\] (DEBUG|INFO|WARNING|ERROR|CRITICAL) ")


def describe(data_dir: Path, *, since_ms: int, level: str = "INFO") -> str:
    """Describe the cluster in `data_dir` for the report of a failed test.

    Args:
        data_dir: the cluster's folder.
        since_ms: when the test began; earlier faults are omitted. Unix time.
        level: the lowest level of the log lines that are shown. DEBUG also shows the request logs.
    """
    client = ControlClient(data_dir)
    try:
        status = client.status()
    except ClusterError as error:
        return f"{error}\nthe logs are in {data_dir / 'nodes'}"
    try:
        rules = list(client.list_faults()["rules"])
    except ClusterError:  # The brokers do not allow fault rules.
        rules = []
    logs = {
        path: last_lines(path, level)
        for broker in status["brokers"]
        for path in _logs(Path(broker["log"]), level)
    }
    return failure_text(status, rules, logs, since_ms=since_ms)


def failure_text(
    status: Mapping[str, Any],
    rules: Sequence[Mapping[str, Any]],
    logs: Mapping[Path, Sequence[str]],
    *,
    since_ms: int,
) -> str:
    """Return the text for a `status`, the fault rules of all brokers, and the last log lines."""
    lines = [_row("phase", status["phase"])]
    controller, epoch = status["controller_id"], status["controller_epoch"]
    lines.append(
        _row("controller", f"broker {controller}, epoch {epoch}" if controller else "none")
    )
    brokers = (f"{broker['id']} {broker['condition']}" for broker in status["brokers"])
    lines.append(_row("brokers", ", ".join(brokers)))
    if status["zookeeper_problem"]:
        lines.append(_row("problem", status["zookeeper_problem"]))
    faults = [fault for fault in status["faults"] if fault["wall_ms"] >= since_ms]
    if len(faults) > _FAULTS_MAX:
        lines.append(_row("faults", f"{len(faults) - _FAULTS_MAX} more before these"))
    for fault in faults[-_FAULTS_MAX:]:
        seconds = (fault["wall_ms"] - since_ms) / 1000
        text = f"{fault['action']} of broker {fault['target']}, {seconds:.1f} s after the start"
        lines.append(_row("fault", text))
    lines += _rule_rows(rules)
    for path, tail in logs.items():
        lines.append(_row("log", str(path)))
        for line in tail:
            lines += textwrap.wrap(line, _WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 8)
    lines.append(_row("evidence", status["evidence_dir"]))
    lines.append(_row("judge it", f"bridgehead judge {status['evidence_dir']}"))
    lines.append(_row("", "(after the test run: the folder is sealed when the cluster stops)"))
    return "\n".join(lines)


def _row(name: str, text: object) -> str:
    return f"{name:12}{text}"


def _rule_rows(rules: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a row for each fault rule, with its counts on all brokers."""
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for rule in rules:
        by_name.setdefault(rule["name"], []).append(rule)
    for name, of_brokers in by_name.items():
        hits, matches = (sum(rule[count] for rule in of_brokers) for count in ("hits", "matches"))
        fields = " ".join(f"{field}={value}" for field, value in of_brokers[0]["rule"].items())
        yield _row("fault rule", f"{name}: {hits} hits, {matches} matches")
        yield from textwrap.wrap(
            fields, _WIDTH, initial_indent=" " * 12, subsequent_indent=" " * 12
        )


def _logs(log: Path, level: str) -> tuple[Path, ...]:
    requests = log.parent / "logs" / "kafka-request.log"
    return (log, requests) if level == "DEBUG" and requests.is_file() else (log,)


def last_lines(path: Path, level: str) -> list[str]:
    """Return the last lines of a log, without those below `level`.

    A line without a level, such as one of a stack trace, has the level of the line before it.
    """
    try:
        with path.open("rb") as log:
            log.seek(0, 2)
            log.seek(max(0, log.tell() - _TAIL_BYTES))
            text = log.read().decode("utf-8", "replace")
    except OSError:
        return []
    lowest, shown, lines = LEVELS.index(level), True, []
    for line in text.splitlines():
        if match := _LEVEL.match(line):
            shown = match[1] not in LEVELS[:lowest]
        if shown:
            lines.append(line)
    return lines[-_LINES_MAX:]
