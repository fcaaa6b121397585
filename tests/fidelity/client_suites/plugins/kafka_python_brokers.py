"""A pytest plugin for kafka-python's suite: it uses the brokers of the running cluster."""

from __future__ import annotations

import importlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

# Import the installed client now: later, the checkout's client is first on the path.
import kafka
import pytest


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Replace the factory of the suite's brokers."""
    fixtures = importlib.import_module("test.integration.fixtures")
    servers = json.loads(os.environ["SUITE_SERVERS"])
    authority = Path(os.environ["SUITE_AUTHORITY"])
    folder = Path.cwd() / "ssl"
    folder.mkdir()
    shutil.copy(authority, folder / "ca-cert")

    class RunningBroker(fixtures.KafkaFixture):  # type: ignore[misc, name-defined]
        """A running broker, with the interface of the suite's own fixture."""

        def __init__(self, transport: str, mechanism: str | None, partitions: int) -> None:
            host, _, port = servers[transport].split(",")[0].rpartition(":")
            super().__init__(
                host,
                int(port),
                1,
                transport=transport,
                sasl_mechanism=mechanism,
                partitions=partitions,
                replicas=len(servers[transport].split(",")),
                external=True,
            )
            self.ssl_dir = str(folder)

        def get_topic_names(self) -> list[str]:
            with kafka.KafkaAdminClient(**self._enrich_client_params({})) as admin:
                return list(admin.list_topics())

    def instance(
        broker_id: int,
        transport: str = "PLAINTEXT",
        sasl_mechanism: str | None = None,
        partitions: int = 4,
        **unused: Any,
    ) -> RunningBroker:
        return RunningBroker(transport, sasl_mechanism, partitions)

    fixtures.KafkaFixture.instance = instance
