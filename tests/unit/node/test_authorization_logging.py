"""Verdicts are logged in Kafka's format. If a custom authorizer raises, the action is denied."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from bridgehead.authorizer import Acls, Action, Operation, Requester, ResourceType, Verdict
from broker_proxy.client_request import ClientRequest
from cluster_model.acls.authorization import (
    TOPIC_OPERATIONS,
    authorized_operations,
    cached_authorize,
)
from cluster_model.acls.bindings import NO_ACLS
from cluster_model.principal import KafkaPrincipal
from event_log.text_log import Level, TextLog
from node.assembly.authorization import Authorization, load_authorizer
from node.assembly.authorizer_log import AuthorizerLog
from tests.unit.broker_proxy.client_requests import a_request, authorize_by


class OnlyReads:
    """A custom authorizer: allows READ, raises on WRITE."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.word = properties["only.word"]

    def authorize(self, requester: Requester, action: Action, acls: Acls) -> Verdict:
        if action.operation == "WRITE":
            raise LookupError("what is writing?")
        return Verdict(action.operation == "READ", self.word)

    def authorize_by_resource_type(
        self, requester: Requester, operation: Operation, resource_type: ResourceType, acls: Acls
    ) -> Verdict:
        return Verdict(False)


def request() -> ClientRequest:
    return a_request(3, 12, host="10.0.0.5", principal=KafkaPrincipal("User", "alice"))


def five_checks(folder: Path, level: Level) -> tuple[list[bool], list[str]]:
    """Call a custom authorizer five times; return the verdicts and the log lines."""
    file = folder / f"{level.name}.log"
    log = TextLog(file, "kafka.authorizer.logger", level)
    authorizer = load_authorizer(
        {"authorizer.class.name": f"{__name__}.OnlyReads", "only.word": "because"}
    )
    audit = AuthorizerLog(log, lambda: 0)
    may = Authorization(authorizer, lambda: NO_ACLS, audit).for_client(request())
    verdicts = [
        may("READ", "TOPIC", "orders", count=2),
        may("ALTER", "TOPIC", "orders"),
        may("ALTER", "TOPIC", "hidden", log_if_denied=False),
        may("READ", "TOPIC", "asked", log_if_allowed=False),
        may("WRITE", "TOPIC", "orders"),
    ]
    log.close()
    lines = file.read_text().splitlines() if file.exists() else []
    return verdicts, [line.partition("] ")[2] for line in lines]


END = "(kafka.authorizer.logger)"
DENIED = (
    "INFO Principal = User:alice is Denied Operation = {} from host = 10.0.0.5 on resource = "
    "Topic:LITERAL:orders for request = Metadata with resourceRefCount = 1 " + END
)


def test_custom_authorizer_decides_and_denies_when_it_raises(tmp_path: Path) -> None:
    verdicts, lines = five_checks(tmp_path, Level.INFO)
    assert verdicts == [True, False, False, True, False]
    assert lines == [DENIED.format("Alter"), DENIED.format("Write")]


@pytest.mark.parametrize(("level", "count"), [(Level.OFF, 0), (Level.DEBUG, 8), (Level.TRACE, 10)])
def test_log_level_selects_the_lines(tmp_path: Path, level: Level, count: int) -> None:
    """DEBUG adds allowed operations and reasons. TRACE adds checks whose callers want no log."""
    _, lines = five_checks(tmp_path, level)
    assert len(lines) == count
    if level is Level.DEBUG:
        assert lines[0] == f"DEBUG because {END}"
        assert lines[1] == (
            "DEBUG Principal = User:alice is Allowed Operation = Read from host = 10.0.0.5 on "
            "resource = Topic:LITERAL:orders for request = Metadata with resourceRefCount = 2 "
            f"{END}"
        )


def test_denial_is_in_the_file_before_the_flush_of_all_logs(tmp_path: Path) -> None:
    file = tmp_path / "authorizer.log"
    log = TextLog(file, "kafka.authorizer.logger", Level.INFO)
    authorizer = load_authorizer(
        {"authorizer.class.name": f"{__name__}.OnlyReads", "only.word": "-"}
    )
    may = Authorization(authorizer, lambda: NO_ACLS, AuthorizerLog(log, lambda: 0)).for_client(
        request()
    )
    assert not may("ALTER", "TOPIC", "orders")
    assert file.read_text().rstrip().endswith(DENIED.format("Alter"))
    log.close()


def test_each_action_is_checked_once_per_request() -> None:
    calls: list[str] = []

    def rule(operation: str, _type: str, name: str) -> bool:
        calls.append(f"{operation} {name}")
        return operation == "READ"

    may = cached_authorize(authorize_by(rule))
    assert [may("READ", "TOPIC", "a"), may("READ", "TOPIC", "a"), may("WRITE", "TOPIC", "a")] == [
        *(True, True, False)
    ]
    assert calls == ["READ a", "WRITE a"]
    assert authorized_operations(may, TOPIC_OPERATIONS, "TOPIC", "a") == 1 << 3
    assert calls.count("READ a") == 1
