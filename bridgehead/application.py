"""Finds the application tree and runs its modules.

`node`, `controller`, `broker_proxy` and the other packages of the tree are never installed as
top-level modules. In a checkout the tree is the folder that contains this package. In a wheel it is
this package's folder `_application`. The tree's modules run as separate processes with the tree on
their path.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def application_root() -> Path:
    """Return the folder of the application tree.

    Raises:
        FileNotFoundError: there is no such folder, because the installation is broken.
    """
    for candidate in (_PACKAGE / "_application", _PACKAGE.parent):
        if (candidate / "node" / "__init__.py").is_file():
            return candidate
    raise FileNotFoundError(
        f"The application tree is missing beside {_PACKAGE}; install bridgehead again."
    )


def module_command(module: str, *arguments: str) -> list[str]:
    """Return the command line that runs a module of the application tree or of this package.

    `-P` keeps the current directory, which may contain another `node/`, off the path.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def module_environment(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return `environment` (default: this process's) with the application tree on PYTHONPATH."""
    result = dict(os.environ if environment is None else environment)
    root = str(application_root())
    inherited = result.get("PYTHONPATH", "")
    rest = [entry for entry in inherited.split(os.pathsep) if entry and entry != root]
    result["PYTHONPATH"] = os.pathsep.join([root, *rest])
    return result


def run_module(
    module: str, *arguments: str, timeout_s: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a module to its end, without input; its output is text, whatever its bytes are.

    Raises:
        subprocess.TimeoutExpired: it was still running after `timeout_s`, and was killed.
    """
    return subprocess.run(
        module_command(module, *arguments),
        env=module_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=timeout_s,
        check=False,
    )
