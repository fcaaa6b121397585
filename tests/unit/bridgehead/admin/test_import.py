"""`import bridgehead.admin` imports only what it needs, so that commands and scripts start fast.

`python -m bench --only startup` measures its time beside that of released clients.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from bridgehead import admin
from bridgehead.admin import AsyncAdminClient, KafkaTimeoutError
from bridgehead.admin.calls.topics import topic_id_bytes, topic_id_text
from bridgehead.admin.errors import InvalidCallError

ROOT = Path(__file__).parents[4]
LARGE = {"grpc", "kazoo", "pyspark", "asyncio", "ssl", "pydantic", "typer", "cryptography"}


def test_the_import_imports_no_large_package_and_no_message() -> None:
    """They are imported later, by the clients and the calls that need them."""
    modules = modules_after("import bridgehead.admin")
    assert "bridgehead.admin" in modules
    assert not LARGE & modules
    assert not [module for module in modules if module.startswith("bridgehead.kafka_wire.messages")]
    assert len(modules - modules_after("")) <= 110


def test_no_module_of_the_client_imports_a_zookeeper_client() -> None:
    """KIP-117: only brokers communicate with ZooKeeper."""
    every = "import pkgutil, bridgehead.admin as a\n"
    every += "for each in pkgutil.walk_packages(a.__path__, 'bridgehead.admin.'):\n"
    every += "    __import__(each.name)"
    modules = modules_after(every)
    assert "bridgehead.admin.connection" in modules
    assert not {"kazoo", "zookeeper_client"} & modules


def test_the_interface_has_no_class_of_the_protocol() -> None:
    """KIP-117: requests and responses are internal, so that they can change."""
    values = [getattr(admin, name) for name in admin.__all__]
    homes = {getattr(member, "__module__", "") for member in values}
    assert "bridgehead.admin.client" in homes
    assert not any("messages" in home for home in homes)


def modules_after(code: str) -> set[str]:
    """Return the names of the modules that a new Python process has after running `code`."""
    printing = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    command = [sys.executable, "-c", printing]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return set(json.loads(run.stdout))


# The sockets of an admin client.


def test_a_malformed_host_name_is_the_reason_of_the_timeout() -> None:
    async def call() -> None:
        async with AsyncAdminClient({"bootstrap.servers": "a..b:9092"}) as admin:
            await admin.with_timeout(1_000).describe_cluster()

    with pytest.raises(KafkaTimeoutError, match=r"The broker at a\.\.b:9092 cannot be reached: "):
        asyncio.run(call())


# Topic ids as text.

ID = "x-_Qm1z5Q6uT0b7c8d9e0A"


def test_the_text_of_a_topic_id_round_trips() -> None:
    assert topic_id_text(topic_id_bytes(ID)) == ID


@pytest.mark.parametrize(
    "text", ["", "x", ID + "!", ID + "\n", ID[:-1] + "B", ID + "A", "x+/" + ID[3:]]
)
def test_a_text_that_is_no_topic_id_does_not_name_another_topic(text: str) -> None:
    with pytest.raises(InvalidCallError, match="a topic id has 22 characters"):
        topic_id_bytes(text)
