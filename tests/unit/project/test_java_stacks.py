"""A test that exceeds its time limit reports the stacks of Java, if `jstack` returns them."""

from __future__ import annotations

import subprocess
from typing import Any

import psutil
import pytest

from tests.integration.processes import java_stacks


class Child:
    """A child process. It has ended if its name is None."""

    pid = 7

    def __init__(self, name: str | None) -> None:
        self._name = name

    def name(self) -> str:
        if self._name is None:
            raise psutil.NoSuchProcess(self.pid)
        return self._name


@pytest.mark.parametrize(
    ("name", "raised"),
    [
        ("java", FileNotFoundError("jstack")),
        ("java", subprocess.TimeoutExpired("jstack", 60)),
        (None, None),
    ],
)
def test_missing_java_stacks_do_not_end_pytest(
    name: str | None, raised: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: Any, **__: Any) -> None:
        assert raised is not None
        raise raised

    monkeypatch.setattr(psutil.Process, "children", lambda *_, **__: [Child("sh"), Child(name)])
    monkeypatch.setattr(subprocess, "run", run)
    ((title, stacks),) = java_stacks()
    assert title == "Java process 7"
    assert stacks.startswith("no stacks: ")
