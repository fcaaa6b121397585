"""A pytest plugin for confluent-kafka's suite: each test gets the cluster that already runs.

The suite starts brokers with trivup. Here `trivup.clusters.KafkaCluster` is a stand-in, which
returns the configuration of a client of the running cluster.
"""

from __future__ import annotations

import json
import os
import sys
from types import ModuleType
from typing import Any


class KafkaCluster:
    """The part of trivup's class that the suite uses."""

    def __init__(self, **wanted: Any) -> None:
        servers = json.loads(os.environ["SUITE_SERVERS"])
        mechanism = wanted.get("sasl_mechanism")
        protocol = "SASL_PLAINTEXT" if mechanism else "PLAINTEXT"
        self._conf = {"bootstrap.servers": servers[protocol], "security.protocol": protocol}
        if mechanism:
            user, _, password = wanted["sasl_users"].partition("=")
            self._conf |= {
                "sasl.mechanism": mechanism,
                "sasl.username": user,
                "sasl.password": password,
            }

    def wait_operational(self) -> None:
        """Do nothing: the brokers already run."""

    def client_conf(self) -> dict[str, str]:
        """Return the configuration of a client."""
        return dict(self._conf)

    def stop(self, *, cleanup: bool) -> None:
        """Do nothing: the next test needs the brokers."""


for _name in ("trivup", "trivup.clusters", "trivup.clusters.KafkaCluster"):
    sys.modules[_name] = ModuleType(_name)
sys.modules["trivup.clusters.KafkaCluster"].KafkaCluster = KafkaCluster  # type: ignore[attr-defined]
