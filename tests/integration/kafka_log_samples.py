"""Lines as a real Kafka 3.9.1 writes them to kafka-request.log and kafka-authorizer.log."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_TIME: Final = "[2026-11-21 08:15:30,123]"


def request_line(
    api: str, key: int, principal: str, *, forwarded: bool = False, total_ms: float = 1.25
) -> str:
    """A line of kafka-request.log."""
    return (
        f'{_TIME} DEBUG Completed request:{{"isForwarded":{str(forwarded).lower()},"requestHeader":'
        f'{{"requestApiKey":{key},"requestApiVersion":7,"correlationId":4,"clientId":"c",'
        f'"requestApiKeyName":"{api}"}},"request":{{"topics":[]}},"response":{{"topics":[]}},'
        f'"connection":"127.0.0.1:9092-127.0.0.1:40000-1","totalTimeMs":{total_ms},'
        '"requestQueueTimeMs":0.1,"localTimeMs":1.0,"remoteTimeMs":0.0,"throttleTimeMs":0,'
        '"responseQueueTimeMs":0.05,"sendTimeMs":0.1,"securityProtocol":"SASL_PLAINTEXT",'
        f'"principal":"{principal}","listener":"CLIENT","clientInformation":'
        '{"softwareName":"apache-kafka-java","softwareVersion":"3.9.1"}} (kafka.request.logger)'
    )


def authorizer_line(principal: str, word: str, operation: str, resource: str) -> str:
    """A line of kafka-authorizer.log."""
    return (
        f"{_TIME} INFO Principal = {principal} is {word} operation = {operation} from host = "
        f"127.0.0.1 on resource = {resource} for request = CreateTopics with "
        "resourceRefCount = 1 based on rule DefaultDeny (kafka.authorizer.logger)"
    )


def write_logs(folder: Path) -> Path:
    """Write two brokers' log folders; the second has a truncated line and an unrelated one."""
    for broker, forwarded in (("broker-1", False), ("broker-2", True)):
        logs = folder / broker
        logs.mkdir(parents=True)
        lines = [request_line("CREATE_TOPICS", 19, "User:alice", forwarded=forwarded)] * 3
        lines += [request_line("METADATA", 3, "User:bob")]
        (logs / "kafka-request.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with (folder / "broker-2" / "kafka-request.log").open("a", encoding="utf-8") as log:
        log.write('[2026-11-21 08:15:30,123] DEBUG Completed request:{"isFor\n')
        log.write("java.lang.RuntimeException: something else\n")
    decisions = [
        authorizer_line("User:bob", "Denied", "CREATE", "Cluster:LITERAL:kafka-cluster"),
        authorizer_line("User:bob", "Denied", "CREATE", "Topic:LITERAL:orders"),
        authorizer_line("User:alice", "Allowed", "Create", "Topic:LITERAL:orders"),
        f"{_TIME} DEBUG principal = User:broker is a super user, allowing operation without "
        "checking acls. (kafka.authorizer.logger)",
    ]
    decided = folder / "broker-1" / "kafka-authorizer.log"
    decided.write_text("\n".join(decisions) + "\n", encoding="utf-8")
    return folder
