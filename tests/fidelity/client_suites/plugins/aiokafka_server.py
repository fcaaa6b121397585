"""A pytest plugin for aiokafka's suite: its server is the running cluster, not a container."""

from __future__ import annotations

import json
import os
import pathlib
from types import SimpleNamespace
from typing import Any

# Import the installed client now: later, the checkout's client is first on the path.
import aiokafka  # noqa: F401
import pytest


def _server() -> SimpleNamespace:
    servers = json.loads(os.environ["SUITE_SERVERS"])["PLAINTEXT"].split(",")
    host, _, port = servers[0].rpartition(":")
    return SimpleNamespace(
        host=host,
        port=int(port),
        ssl_port=None,
        sasl_plain_port=None,
        sasl_ssl_port=None,
        container=None,
        hosts=servers,
    )


# The tests of the admin client need only `kafka_server`; the other values are placeholders.
_UNUSED = object()
_REPLACED = {
    "docker": lambda: _UNUSED,
    "kafka_image": lambda: _UNUSED,
    "kafka_server": _server,
    "kerberos_utils": lambda: _UNUSED,
    "ssl_folder": pathlib.Path.cwd,
}


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: Any, request: pytest.FixtureRequest) -> object:
    """Return the value of a replaced fixture; None: pytest calls the suite's fixture."""
    make = _REPLACED.get(fixturedef.argname)
    if make is None:
        return None
    value = make()
    fixturedef.cached_result = (value, fixturedef.cache_key(request), None)
    return value
