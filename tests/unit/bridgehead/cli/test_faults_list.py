"""`bridgehead faults list` shows each rule whole, within 80 columns."""

from __future__ import annotations

from typing import Any

import pytest

from bridgehead.cli.faults import list_rules
from bridgehead.cluster.faults import Faults


def test_a_long_rule_is_shown_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = {
        "action": "error",
        "error": "NOT_CONTROLLER",
        "api": "IncrementalAlterConfigs",
        "client_id": "billing-service",
        "principal": "User:billing",
        "topic": "invoices",
        "versions": "0-1",
    }
    listed: list[dict[str, Any]] = [
        {"name": "rule-4", "broker": 2, "rule": rule, "hits": 5, "matches": 7}
    ]
    monkeypatch.setattr(Faults, "list", lambda _self: listed)
    list_rules()
    output = capsys.readouterr().out
    assert all(f"{name}={value}" in output.split() for name, value in rule.items())
    assert max(map(len, output.splitlines())) <= 80
