"""What the README tells a stranger to type, typed."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
from pathlib import Path

import pytest

from tests.docker.compose import left_behind

pytestmark = [pytest.mark.docker, pytest.mark.timeout(600)]
ROOT = Path(__file__).parent.parent.parent
BLOCK = re.compile(r"^## In containers$.*?^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_command_of_the_section_on_containers_works(images: None) -> None:
    """In its order, stopping at the first that fails, as a reader would."""
    found = BLOCK.search((ROOT / "README.md").read_text())
    assert found is not None, "the README has no commands for containers"
    project = f"bridgehead-readme-{secrets.token_hex(3)}"
    environment = {**os.environ, "COMPOSE_PROJECT_NAME": project}
    try:
        done = subprocess.run(
            ["bash", "-euxo", "pipefail", "-c", found[1]],
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
