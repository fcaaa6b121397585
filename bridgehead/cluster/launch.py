"""Starts a supervisor process and waits until its cluster is ready."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridgehead.application import module_command, module_environment

if TYPE_CHECKING:
    from bridgehead.cluster.launcher import SupervisorProcess
    from bridgehead.cluster.settings import ClusterSettings

_prepared: list[subprocess.Popen[bytes]] = []


def prepare() -> None:
    """Start the supervisor of the next detached cluster, which then imports its modules.

    If no cluster follows, it exits with this process.
    """
    _prepared.append(_start(module_environment()))


def launch(
    settings: ClusterSettings, *, detached: bool, python_path: Sequence[Path] = ()
) -> tuple[SupervisorProcess, dict[str, Any]]:
    """Start a cluster; return its supervisor process and the contents of cluster.json.

    A detached cluster runs until `down`; otherwise it stops when this process exits. The nodes
    can also import policies from the folders of `python_path`.

    Raises:
        ClusterError: the cluster could not be started; nothing is left running.
    """
    from bridgehead.cluster.errors import ClusterError
    from bridgehead.cluster.launcher import fork_supervisor
    from bridgehead.cluster.settings import settings_to_json

    process: SupervisorProcess | None = None
    if detached and not python_path and _prepared:
        process = _prepared.pop()
    else:
        inherited = os.environ.get("PYTHONPATH")
        folders = [*map(str, python_path), *([inherited] if inherited else [])]
        environment = module_environment({**os.environ, "PYTHONPATH": os.pathsep.join(folders)})
        if not detached and not settings.node_command:
            process = fork_supervisor(environment)
        process = process or _start(environment)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    request = {"settings": settings_to_json(settings), "detached": detached}
    try:
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        if detached:
            process.stdin.close()
        line = process.stdout.readline()
    except BaseException:  # Such as Ctrl-C. On SIGTERM the supervisor stops its children.
        process.terminate()
        process.wait()
        raise
    response = json.loads(line) if line.endswith(b"\n") else {}
    if "ready" not in response:
        errors = process.stderr.read().decode("utf-8", "replace").strip().splitlines()
        process.wait()
        reason = errors[-1] if errors else "The supervisor exited before the cluster was ready."
        raise ClusterError(str(response.get("error", reason)))
    process.stdout.close()
    process.stderr.close()
    return process, dict(response["ready"])


def _start(environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        module_command("bridgehead.cluster"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
