"""Starts a supervisor as a process of its own and waits for its first word."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from bridgehead.application import module_command, module_environment
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.settings import ClusterSettings, settings_to_json


def launch(
    settings: ClusterSettings, *, tethered: bool
) -> tuple[subprocess.Popen[bytes], dict[str, Any]]:
    """A running cluster: its supervisor's process and what cluster.json says.

    Args:
        settings: the cluster.
        tethered: it ends with this process; else it stays until `down`.

    Raises:
        ClusterError: it could not be started; nothing is left running.
    """
    process = subprocess.Popen(
        module_command("bridgehead.cluster"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=module_environment(),
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    order = {"settings": settings_to_json(settings), "tethered": tethered}
    try:
        process.stdin.write(json.dumps(order).encode() + b"\n")
        process.stdin.flush()
        if not tethered:
            process.stdin.close()
        line = process.stdout.readline()
    except BaseException:  # Ctrl-C while it starts: SIGTERM ends it and what it started
        process.terminate()
        process.wait()
        raise
    answer = json.loads(line) if line.endswith(b"\n") else {}
    if "ready" not in answer:
        said = process.stderr.read().decode("utf-8", "replace").strip().splitlines()
        process.wait()
        last_words = said[-1] if said else "The supervisor ended before the cluster was ready."
        raise ClusterError(str(answer.get("error", last_words)))
    process.stdout.close()
    process.stderr.close()
    return process, dict(answer["ready"])
