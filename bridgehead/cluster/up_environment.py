"""What `bridgehead up` reads from environment variables, beside the variables of its options.

- BRIDGEHEAD_CLUSTER: the contents of a cluster.yaml, for a container without mounts.
- BRIDGEHEAD_CONTROL_TOKEN: the token of the control API.
- KAFKA_*: properties of the brokers, spelt as in Kafka's images (`--environment`).
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import Final

from bridgehead.application import module_command, module_environment
from bridgehead.cluster.cluster_file import DOCUMENT_VARIABLE
from bridgehead.cluster.errors import ClusterError
from bridgehead.cluster.ports import LOOPBACK
from bridgehead.cluster.settings import CHOSEN_BY_UP, ControlSettings
from bridgehead.control_api.operations import TOKEN_CHARACTERS_MIN

TOKEN_VARIABLE: Final = "BRIDGEHEAD_CONTROL_TOKEN"  # noqa: S105 - not a password


def cluster_document() -> str:
    """Return BRIDGEHEAD_CLUSTER, and remove it: it may have passwords, and children inherit it."""
    return os.environ.pop(DOCUMENT_VARIABLE, "")


def broker_properties() -> dict[str, str]:
    """Return the properties of the variables KAFKA_*.

    Raises:
        ClusterError: a variable does not name exactly one property, or one that `up` chooses.
    """
    if not any(name.startswith("KAFKA_") for name in os.environ):
        return {}
    done = subprocess.run(
        module_command("node.environment"),
        env=module_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise ClusterError(lines[-1] if lines else "The variables KAFKA_* cannot be read.")
    properties: dict[str, str] = json.loads(done.stdout)
    for name in CHOSEN_BY_UP.keys() & properties.keys():
        raise ClusterError(f"KAFKA_* variables cannot set `{name}`: {CHOSEN_BY_UP[name]}.")
    return properties


def control_at(address: str) -> ControlSettings:
    """Return the settings of the control API at `[HOST:]PORT`, with the token of the environment.

    Raises:
        ClusterError: the address or the token cannot be used.
    """
    host, _, port = address.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) <= 65535):
        raise ClusterError(f"--control {address!r} is not [HOST:]PORT, such as 9091.")
    token = os.environ.pop(TOKEN_VARIABLE, None)
    if token is not None and not (
        len(token) >= TOKEN_CHARACTERS_MIN and token.isascii() and token.isprintable()
    ):
        raise ClusterError(
            f"{TOKEN_VARIABLE} is too weak: use at least {TOKEN_CHARACTERS_MIN} printable ASCII "
            "characters, such as the output of `openssl rand -hex 16`."
        )
    return ControlSettings(host=host or LOOPBACK, port=int(port), token=token)
