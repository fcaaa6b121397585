"""The commands of the README work."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
from pathlib import Path

import pytest

from bridgehead.cluster.node_plan import port_is_free
from tests.docker.compose import left_behind

pytestmark = [pytest.mark.docker, pytest.mark.timeout(600)]
ROOT = Path(__file__).parent.parent.parent
PORTS = (29092, 29093, 29094, 9404, 9405, 9406)
BLOCK = re.compile(r"^## In containers$.*?^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_commands_of_the_container_section_work(images: None) -> None:
    """The test runs them in order and stops at the first failure."""
    found = BLOCK.search((ROOT / "README.md").read_text())
    assert found is not None, "the README has no commands for containers"
    taken = [port for port in PORTS if not port_is_free("127.0.0.1", port)]
    if taken:
        pytest.skip(f"NOT TESTED: the ports {taken} of the README's cluster are in use.")
    project = f"bridgehead-readme-{secrets.token_hex(3)}"
    environment = {**os.environ, "COMPOSE_PROJECT_NAME": project}
    try:
        done = subprocess.run(
            ["bash", "-eux", "-c", found[1]],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert re.search(r"broker \d is controller", done.stdout)
        assert "kafka_controller_kafkacontroller_activecontrollercount" in done.stdout
        assert left_behind(project) == ""
    finally:
        subprocess.run(
            ["docker", "compose", "down", "--volumes"],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            check=False,
        )
