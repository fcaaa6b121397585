"""Why it is safe to fork a process that has imported the modules of a node."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from bridgehead.application import module_command, module_environment

PROGRAM = """
import json, os
def opened():
    paths = (f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd"))
    return {os.readlink(path) for path in paths if os.path.lexists(path)}
before = opened()
import node.__main__
threads = len(os.listdir("/proc/self/task"))
# A libffi with static trampolines keeps its own library open. It only maps it.
print(json.dumps([threads, [each for each in opened() - before if "/libffi.so" not in each]]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="nodes are forked only on Linux")
def test_importing_a_node_starts_no_thread_and_opens_no_file() -> None:
    """A forked process has no copies of threads, and shares open files."""
    command = [*module_command("node")[:2], "-c", PROGRAM]
    result = subprocess.run(
        command, env=module_environment(dict(os.environ)), capture_output=True, check=True
    )
    assert json.loads(result.stdout) == [1, []]
