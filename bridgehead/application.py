"""Where the application tree is, and how a module of it is run.

Read first: `node`, `controller`, `broker_proxy` and their kin are never installed as top-level
modules. In a checkout they lie beside this package, in a wheel inside it (`_application`).
Whoever needs one of them starts it as a process of its own, with that folder on its path.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def application_root() -> Path:
    """The folder that holds the application tree: the checkout's root, or the wheel's data.

    Raises:
        FileNotFoundError: neither holds a `node` package, so the installation is broken.
    """
    for candidate in (_PACKAGE / "_application", _PACKAGE.parent):
        if (candidate / "node" / "__init__.py").is_file():
            return candidate
    raise FileNotFoundError(
        f"The application tree is missing beside {_PACKAGE}; install bridgehead again."
    )


def module_command(module: str, *arguments: str) -> list[str]:
    """The command line that runs `module` of the application tree (or of this package).

    `-P` keeps the current directory off the path: a user's own `node/` must not be run instead.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def module_environment(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """`environment` (default: this process's) with the application tree first on the path."""
    result = dict(os.environ if environment is None else environment)
    root = str(application_root())
    inherited = result.get("PYTHONPATH", "")
    rest = [entry for entry in inherited.split(os.pathsep) if entry and entry != root]
    result["PYTHONPATH"] = os.pathsep.join([root, *rest])
    return result
