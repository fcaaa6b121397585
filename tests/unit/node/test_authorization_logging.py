"""Verdicts are logged in Kafka's format. If a custom authorizer raises, the action is denied."""

from __future__ import annotations

import threading
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
from cluster_model.acls.authorizer import AclAuthorizer
from cluster_model.acls.bindings import NO_ACLS
from cluster_model.principal import KafkaPrincipal
from event_log.text_log import Level, TextLog
from node.assembly.authorization import Authorization, load_authorizer
from node.assembly.authorizer_log import LINES_MAX, PERIOD_MS, AuthorizerLog
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


class _Denials:
    """An authorizer log whose clock is set by the test."""

    def __init__(self, folder: Path, level: Level = Level.INFO) -> None:
        self.file = folder / "kafka-authorizer.log"
        self.now_ms = 0
        text_log = TextLog(self.file, "kafka.authorizer.logger", level)
        self.log = AuthorizerLog(text_log, lambda: self.now_ms)
        authorizer = load_authorizer(
            {"authorizer.class.name": f"{__name__}.OnlyReads", "only.word": "because"}
        )
        self._authorization = Authorization(authorizer, lambda: NO_ACLS, self.log)

    def deny(self, count: int, user: str = "bob", name: str = "t") -> None:
        client = KafkaPrincipal("User", user)
        for number in range(count):
            may = self._authorization.for_client(
                a_request(3, 12, host="10.0.0.6", principal=client)
            )
            assert not may("ALTER", "TOPIC", f"{name}{number}")

    def lines(self) -> list[str]:
        return self.file.read_text().splitlines()


def test_one_client_cannot_push_the_denials_of_others_out_of_the_files(tmp_path: Path) -> None:
    """A request may have a hundred thousand names."""
    denials = _Denials(tmp_path)
    denials.deny(1, "alice")
    denials.deny(100_000)
    denials.now_ms = PERIOD_MS
    denials.log.flush()
    lines = denials.lines()
    assert len(lines) == 1 + LINES_MAX + 1
    assert "User:alice is Denied" in lines[0]
    assert "INFO Principal = User:bob from host = 10.0.0.6: 99900 more lines of this" in lines[-1]
    denials.deny(2)
    assert len(denials.lines()) == len(lines) + 2
    denials.log.close()


def test_the_number_of_left_out_lines_is_written_at_the_latest_when_the_log_closes(
    tmp_path: Path,
) -> None:
    denials = _Denials(tmp_path)
    denials.deny(LINES_MAX + 7)
    denials.log.flush()
    assert len(denials.lines()) == LINES_MAX
    denials.log.close()
    assert ": 7 more lines of this level within 1000 ms" in denials.lines()[-1]


def test_a_long_name_is_shortened_in_the_log(tmp_path: Path) -> None:
    denials = _Denials(tmp_path)
    denials.deny(1, name="n" * 32_000)
    (line,) = denials.lines()
    assert "n... (32001 characters) for request = Metadata" in line
    assert len(line) < 1_500
    denials.log.close()


def test_lines_of_a_thread_and_of_the_loop_do_not_mix(tmp_path: Path) -> None:
    """Large requests are authorized in a thread."""
    file = tmp_path / "t.log"
    log = TextLog(file, "kafka.authorizer.logger", Level.INFO)

    def write(word: bytes) -> None:
        for _ in range(5_000):
            log.append(Level.INFO, word * 40, 0)
            log.flush()

    threads = [threading.Thread(target=write, args=(word,)) for word in (b"a", b"b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    lines = file.read_text().splitlines()
    assert len(lines) == 10_000
    assert {len(set(line.split("INFO ")[1].split(" ")[0])) for line in lines} == {1}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("kafka.security.authorizer.AclAuthorizer", AclAuthorizer),
        (f"{__name__}.OnlyReads", OnlyReads),
    ],
)
def test_the_authorizer_is_the_one_that_the_properties_name(name: str, kind: type) -> None:
    properties = {"authorizer.class.name": name, "only.word": "because"}
    assert type(load_authorizer(properties)) is kind
    assert load_authorizer(properties | {"authorizer.class.name": " "}) is None
