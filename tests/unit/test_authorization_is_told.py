"""Every verdict is told as Kafka tells it; an authorizer of somebody's own decides, or denies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from bridgehead.authorizer import Acls, Action, Asker, Operation, ResourceType, Verdict
from bridgehead.kafka_wire.headers import RequestHeader
from broker_proxy.apis.base import ClientConnectionInfo, ClientRequest
from cluster_model.acls import NO_ACLS
from cluster_model.authorization import TOPIC_OPERATIONS, asked_once, authorized_operations
from cluster_model.principal import KafkaPrincipal
from event_log.text_log import Level, TextLog
from node.authorization import Authorization, load_authorizer
from node.authorizer_log import AuthorizerLog
from tests.unit.authorizing import saying


class OnlyReads:
    """Somebody's own: reading is allowed to everybody; of writing it knows nothing."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.word = properties["only.word"]

    def authorize(self, asker: Asker, action: Action, acls: Acls) -> Verdict:
        if action.operation == "WRITE":
            raise LookupError("what is writing?")
        return Verdict(action.operation == "READ", self.word)

    def authorize_by_resource_type(
        self, asker: Asker, operation: Operation, resource_type: ResourceType, acls: Acls
    ) -> Verdict:
        return Verdict(False)


def request() -> ClientRequest:
    connection = ClientConnectionInfo(
        "c", "L", "PLAINTEXT", "shipped", "10.0.0.5", b"\x0a\0\0\5", KafkaPrincipal("User", "alice")
    )
    return ClientRequest("r", RequestHeader(3, 12, 1, None), b"", b"", connection, 0)


def told(folder: Path, level: Level) -> tuple[list[bool], list[str]]:
    """Five questions to somebody's own authorizer: the verdicts, and the lines of the log."""
    file = folder / f"{level.name}.log"
    log = AuthorizerLog(TextLog(file, "kafka.authorizer.logger", level), lambda: 0)
    own = load_authorizer(
        {"authorizer.class.name": f"{__name__}.OnlyReads", "only.word": "because"}
    )
    may = Authorization(own, lambda: NO_ACLS, log).for_client(request())
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


def test_an_authorizer_of_ones_own_decides_and_what_it_raises_is_a_refusal(tmp_path: Path) -> None:
    """Found by its dotted path, built with the properties; the log says what Kafka's says."""
    verdicts, lines = told(tmp_path, Level.INFO)
    assert verdicts == [True, False, False, True, False]
    assert lines == [DENIED.format("Alter"), DENIED.format("Write")]


@pytest.mark.parametrize(("level", "count"), [(Level.OFF, 0), (Level.DEBUG, 8), (Level.TRACE, 10)])
def test_the_level_says_how_much_is_told(tmp_path: Path, level: Level, count: int) -> None:
    """DEBUG: what was allowed, and why; TRACE: also what nobody really asked for."""
    _, lines = told(tmp_path, level)
    assert len(lines) == count
    if level is Level.DEBUG:
        assert lines[0] == f"DEBUG because {END}"
        assert lines[1] == (
            "DEBUG Principal = User:alice is Allowed Operation = Read from host = 10.0.0.5 on "
            "resource = Topic:LITERAL:orders for request = Metadata with resourceRefCount = 2 "
            f"{END}"
        )


def test_a_question_is_asked_once_in_a_request() -> None:
    """So that the log tells it once."""
    asked: list[str] = []

    def rule(operation: str, _type: str, name: str) -> bool:
        asked.append(f"{operation} {name}")
        return operation == "READ"

    may = asked_once(saying(rule))
    assert [may("READ", "TOPIC", "a"), may("READ", "TOPIC", "a"), may("WRITE", "TOPIC", "a")] == [
        *(True, True, False)
    ]
    assert asked == ["READ a", "WRITE a"]
    assert authorized_operations(may, TOPIC_OPERATIONS, "TOPIC", "a") == 1 << 3
    assert asked.count("READ a") == 1
