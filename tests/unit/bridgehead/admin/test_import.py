"""`import bridgehead.admin` is fast, so that commands and scripts start fast."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from bridgehead import admin

ROOT = Path(__file__).parents[4]
MEASURE = """
import json, sys, time
began = time.process_time()
import bridgehead.admin
seconds = time.process_time() - began
print(json.dumps([seconds, sorted(sys.modules)]))
"""


def test_the_import_takes_less_than_80_ms_and_imports_no_large_package() -> None:
    """The test uses the fastest of five runs, because other processes can slow a run down."""
    least = 1.0
    for _ in range(5):
        command = [sys.executable, "-c", MEASURE]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        seconds, modules = json.loads(run.stdout)
        large = {"grpc", "kazoo", "pyspark", "asyncio", "pydantic", "typer", "cryptography"}
        assert not large & set(modules)
        least = min(least, seconds)
    assert least < 0.080


def test_no_module_of_the_client_imports_a_zookeeper_client() -> None:
    """KIP-117: only brokers communicate with ZooKeeper."""
    every = "import json, pkgutil, sys, bridgehead.admin as a\n"
    every += "for each in pkgutil.walk_packages(a.__path__, 'bridgehead.admin.'):\n"
    every += "    __import__(each.name)\nprint(json.dumps(sorted(sys.modules)))"
    command = [sys.executable, "-c", every]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    modules = set(json.loads(run.stdout))
    assert "bridgehead.admin.connection" in modules
    assert not {"kazoo", "zookeeper_client"} & modules


def test_the_interface_has_no_class_of_the_protocol() -> None:
    """KIP-117: requests and responses are internal, so that they can change."""
    values = [getattr(admin, name) for name in admin.__all__]
    homes = {getattr(each, "__module__", "") for each in values}
    assert "bridgehead.admin.client" in homes
    assert not any("messages" in home for home in homes)
